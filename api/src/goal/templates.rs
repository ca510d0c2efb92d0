//! Templates for goals: what to fill `POST /api/goals` with, for the goal and for its parts.

use schemars::JsonSchema;
use serde::Serialize;

/// A goal with subgoals to fill in. Replace the text in angle brackets.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Template {
    id: &'static str,
    /// Name.
    name: &'static str,
    /// The goal's title.
    title: &'static str,
    /// The goal's description.
    description: &'static str,
    /// Subgoals, in order.
    children: &'static [Part],
}

/// A subgoal of a template.
#[derive(Serialize, JsonSchema)]
struct Part {
    title: &'static str,
    description: &'static str,
}

const fn part(title: &'static str, description: &'static str) -> Part {
    Part { title, description }
}

/// Every template.
pub(crate) const TEMPLATES: &[Template] = &[
    Template {
        id: "research",
        name: "Research a question",
        title: "Answer: <question>",
        description: "Find out what is known from several independent sources, and write it down so that others can \
            act on it.",
        children: &[
            part("Collect sources", "At least five, with the claims and the reliability of each."),
            part("Compare them", "Note where they agree, where they differ and what they leave out."),
            part("Write the answer", "One page: the answer first, then the reasons, then the open questions."),
        ],
    },
    Template {
        id: "watch",
        name: "Monitor something",
        title: "Watch <what> and report changes",
        description: "Check it regularly, store the last state in memory, and notify the owner of changes only.",
        children: &[
            part("Define what counts as a change", "Store the definition in memory so that it stays the same."),
            part("Take the first reading", "Store it with its date."),
        ],
    },
    Template {
        id: "release",
        name: "Ship a release",
        title: "Ship <product> <version>",
        description: "The version is published, users know what changed, and the rollback is documented.",
        children: &[
            part("Finish the open work", "List what is open; finish it or postpone it."),
            part("Test it", "On a fresh machine, and as an upgrade of the current version."),
            part("Write the notes", "New features, fixes and required actions."),
            part("Publish it", "Check it again after an hour and after a day."),
        ],
    },
    Template {
        id: "backlog",
        name: "Clear a backlog",
        title: "Bring <backlog> below <number> entries",
        description: "Sort it once, then process the entries one by one through the task queue.",
        children: &[
            part("Sort it", "Remove outdated entries and merge duplicates."),
            part("Post the tasks", "One task per entry, with everything needed to complete it."),
            part("Handle failures", "Retry temporary failures; report the others."),
        ],
    },
    Template {
        id: "report",
        name: "Write a regular report",
        title: "Report on <subject> every <period>",
        description: "Use the same format each time so that reports can be compared; numbers first.",
        children: &[
            part("Agree on the format", "Which numbers, from which source, for whom."),
            part("Write the first one", "Ask the readers what was missing."),
        ],
    },
];
