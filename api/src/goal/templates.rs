//! Templates for goals: what to fill `POST /api/goals` with, for the goal and for its parts.

use schemars::JsonSchema;
use serde::Serialize;

/// A goal and its parts, to fill in. What stands in angle brackets is for the person to say.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Template {
    id: &'static str,
    /// What it is called.
    name: &'static str,
    /// The goal's title.
    title: &'static str,
    /// The goal's description.
    description: &'static str,
    /// The goals below it, in order.
    children: &'static [Part],
}

/// A part of a template's goal.
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
        description: "Find out what is known, from several sources that do not copy from each other, and write it down so \
            that someone who was not there can act on it.",
        children: &[
            part("Collect sources", "At least five, with what each says and how far it can be trusted."),
            part("Compare them", "Where they agree, where they do not, and what nobody says."),
            part("Write the answer", "One page: the answer first, then the reasons, then what is still open."),
        ],
    },
    Template {
        id: "watch",
        name: "Keep an eye on something",
        title: "Watch <what> and report changes",
        description: "Look at it regularly, keep what was seen last in memory, and tell the owner only what is new.",
        children: &[
            part("Say what counts as a change", "Write it down under a key of the memory, so that it stays the same."),
            part("Take the first reading", "Store it with its date."),
        ],
    },
    Template {
        id: "release",
        name: "Ship a release",
        title: "Ship <product> <version>",
        description: "The version is out, its users know what changed, and the way back is known.",
        children: &[
            part("Close what must be in it", "List what is open; finish it or put it off."),
            part("Test it", "On a fresh machine, and over the version that people have."),
            part("Write the notes", "What is new, what was fixed, what someone has to do."),
            part("Publish it", "And look at it an hour and a day later."),
        ],
    },
    Template {
        id: "backlog",
        name: "Work off a backlog",
        title: "Bring <backlog> below <number> entries",
        description: "Sort it once, then take the entries one by one through the task queue.",
        children: &[
            part("Sort it", "Drop what is out of date and join what is the same."),
            part("Post the tasks", "One task for each entry, with all that whoever does it has to know."),
            part("Look after failures", "Retry those that failed for a passing reason; report the others."),
        ],
    },
    Template {
        id: "report",
        name: "Write a regular report",
        title: "Report on <subject> every <period>",
        description: "The same form each time, so that reports can be compared; the numbers first.",
        children: &[
            part("Agree on the form", "Which numbers, from where, for whom."),
            part("Write the first one", "And ask whoever reads it what was missing."),
        ],
    },
];
