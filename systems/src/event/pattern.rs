//! Patterns as the API writes them: objects whose single key names the kind (spec 1, Pattern shapes). The kind alone is read as well.

use agentsvc_components::Refusal;
use agentsvc_components::event::EventKind;
use agentsvc_components::kernel::limit;
use agentsvc_components::trigger::{AssigneeMatch, Filter, On, Pattern};
use serde_json::{Map, Value, json};

use crate::kernel::expr::hint;
use crate::kernel::glob::Glob;

/// The kinds that `lifecycle` stands for.
const LIFECYCLE: &[EventKind] = &[
    EventKind::AgentSpawned,
    EventKind::AgentStarted,
    EventKind::AgentStopped,
    EventKind::AgentUpdated,
    EventKind::AgentTerminated,
];

/// The kinds that `system` stands for.
const SYSTEM: &[EventKind] = &[
    EventKind::ScheduleFired,
    EventKind::CronFired,
    EventKind::WorkflowStarted,
    EventKind::WorkflowCompleted,
    EventKind::WorkflowFailed,
    EventKind::ApprovalRequested,
    EventKind::ApprovalResolved,
    EventKind::BudgetWarning,
    EventKind::BudgetExceeded,
    EventKind::MemoryUpdated,
    EventKind::KnowledgeUpdated,
];

/// Is `kind` one of those that `lifecycle` stands for?
pub(crate) fn is_lifecycle(kind: EventKind) -> bool {
    LIFECYCLE.contains(&kind)
}

/// Is `kind` one of those that `system` stands for?
pub(crate) fn is_system(kind: EventKind) -> bool {
    SYSTEM.contains(&kind)
}

/// The key that a pattern of this kind may have, if any.
const fn key_of(on: On) -> Option<&'static str> {
    match on {
        On::All | On::Lifecycle | On::System => None,
        On::Content => Some("substring"),
        On::Kind(EventKind::TaskPosted) => Some("assignee_match"),
        On::Kind(EventKind::Custom) => Some("event_type"),
        // Of these no agent is known.
        On::Kind(EventKind::WorkflowStarted | EventKind::WorkflowCompleted | EventKind::WorkflowFailed) => None,
        On::Kind(_) => Some("name_pattern"),
    }
}

fn word_of(on: On) -> &'static str {
    match on {
        On::All => "all",
        On::Lifecycle => "lifecycle",
        On::System => "system",
        On::Content => "content_match",
        On::Kind(kind) => kind.as_str(),
    }
}

fn on_of(word: &str) -> Option<On> {
    let groups = [On::All, On::Lifecycle, On::System, On::Content];
    let group = groups.into_iter().find(|on| word_of(*on) == word);
    group.or_else(|| EventKind::parse(word).map(On::Kind))
}

/// Reads a pattern.
///
/// # Errors
/// A refusal that names `pattern`: it is no object with one key, its kind or a key below it is unknown, or a glob or
/// another text is empty, too long or not well-formed.
pub fn parse_pattern(pattern: &Value) -> Result<Pattern, Refusal> {
    read(pattern).map_err(|why| Refusal::bad_field("pattern", format!("pattern: {why}")))
}

fn read(pattern: &Value) -> Result<Pattern, String> {
    let shape = "must be an event kind, or an object with it as the only key, such as {\"all\": {}}";
    let (word, below) = match pattern {
        Value::String(word) => (word, None),
        Value::Object(kinds) => match (kinds.iter().next(), kinds.len()) {
            (Some((word, below)), 1) => (word, Some(below)),
            _ => return Err(shape.to_owned()),
        },
        _ => return Err(shape.to_owned()),
    };
    let on = on_of(word).ok_or_else(|| no_kind(word))?;
    let none = Map::new();
    let below = match below {
        None => &none,
        Some(Value::Object(below)) => below,
        Some(_) => return Err(format!("`{word}` must be an object")),
    };
    let key = key_of(on);
    if let Some(unknown) = below.keys().find(|found| Some(found.as_str()) != key) {
        let known = key.map_or_else(|| "it takes no keys".to_owned(), |key| format!("the allowed key is `{key}`"));
        return Err(format!("`{word}` has no key `{}`; {known}", shown(unknown)));
    }
    let value = match key.and_then(|key| below.get(key)) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.as_str()),
        Some(_) => return Err(format!("`{word}.{}` must be a string", key.unwrap_or_default())),
    };
    filter(on, value).map(|filter| Pattern { on, filter }).map_err(|why| {
        let key = key.unwrap_or_default();
        format!("`{word}.{key}` {why}")
    })
}

fn filter(on: On, value: Option<&str>) -> Result<Filter, String> {
    let Some(text) = value else {
        return if on == On::Content { Err("is required".to_owned()) } else { Ok(Filter::None) };
    };
    match on {
        On::Kind(EventKind::TaskPosted) => Ok(Filter::Assignee(match text {
            "self" => AssigneeMatch::Owner,
            "unassigned" => AssigneeMatch::Nobody,
            other => AssigneeMatch::Exactly(plain(other)?),
        })),
        On::Kind(EventKind::Custom) => plain(text).map(Filter::CustomType),
        On::Content => plain(text).map(Filter::Content),
        _ => Glob::parse(text).map(|_| Filter::Name(text.into())),
    }
}

/// A text that is compared as it is.
fn plain(text: &str) -> Result<Box<str>, String> {
    match text.len() {
        0 => Err("must not be empty".to_owned()),
        bytes if bytes > limit::GLOB_BYTES_MAX => Err(format!("is longer than {} bytes", limit::GLOB_BYTES_MAX)),
        _ => Ok(text.into()),
    }
}

/// A word that names no kind of event, with the kind that was probably meant.
fn no_kind(word: &str) -> String {
    let groups = [On::All, On::Lifecycle, On::System, On::Content].map(word_of);
    let known = EventKind::ALL.iter().map(|kind| kind.as_str());
    format!("`{}` is not an event kind{}", shown(word), hint(word, known.chain(groups)))
}

/// What is said of a word that names no kind of event.
#[must_use]
pub fn unknown_kind(word: &str) -> String {
    let known = EventKind::ALL.iter().map(|kind| kind.as_str());
    format!("unknown event kind '{}'{}", shown(word), hint(word, known))
}

/// A key of a client, short enough for an error.
fn shown(key: &str) -> String {
    key.chars().take(64).collect()
}

/// A pattern as the API writes it.
#[must_use]
pub fn render_pattern(pattern: &Pattern) -> Value {
    let value = match &pattern.filter {
        Filter::None => None,
        Filter::Assignee(AssigneeMatch::Owner) => Some("self"),
        Filter::Assignee(AssigneeMatch::Nobody) => Some("unassigned"),
        Filter::Name(text) | Filter::CustomType(text) | Filter::Content(text) => Some(&**text),
        Filter::Assignee(AssigneeMatch::Exactly(text)) => Some(&**text),
    };
    let below: Map<String, Value> =
        key_of(pattern.on).zip(value).map(|(key, value)| (key.to_owned(), json!(value))).into_iter().collect();
    json!({ word_of(pattern.on): below })
}

/// A pattern as it is stored: the text of [`render_pattern`].
pub(crate) fn text_of(pattern: &Pattern) -> Box<str> {
    render_pattern(pattern).to_string().into()
}

/// A pattern that was stored.
pub(crate) fn from_text(text: &str) -> Result<Pattern, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    read(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_written_back() {
        let kinds = EventKind::ALL.map(|kind| json!({ kind.as_str(): {} }));
        let others = [
            json!({ "all": {} }),
            json!({ "lifecycle": {} }),
            json!({ "system": {} }),
            json!({ "agent_spawned": { "name_pattern": "web-*" } }),
            json!({ "agent_terminated": { "name_pattern": "a?b" } }),
            json!({ "turn_completed": { "name_pattern": "*" } }),
            json!({ "tool_called": { "name_pattern": "[a-z]*" } }),
            json!({ "task_posted": { "assignee_match": "self" } }),
            json!({ "task_posted": { "assignee_match": "unassigned" } }),
            json!({ "task_posted": { "assignee_match": "any" } }),
            json!({ "custom": { "event_type": "deploy.done" } }),
            json!({ "content_match": { "substring": "Ärger" } }),
        ];
        for pattern in kinds.iter().chain(&others) {
            let read = parse_pattern(pattern).unwrap();
            assert_eq!(render_pattern(&read), *pattern);
            assert_eq!(from_text(&text_of(&read)).unwrap(), read);
        }
    }

    #[test]
    fn a_kind_alone_is_read() {
        for word in ["all", "system", "turn_failed"] {
            assert_eq!(parse_pattern(&json!(word)).unwrap(), parse_pattern(&json!({ word: {} })).unwrap());
        }
    }

    #[test]
    fn null_is_as_left_out() {
        for (pattern, shown) in [
            (json!({ "task_posted": { "assignee_match": null } }), json!({ "task_posted": {} })),
            (json!({ "agent_spawned": { "name_pattern": null } }), json!({ "agent_spawned": {} })),
        ] {
            assert_eq!(render_pattern(&parse_pattern(&pattern).unwrap()), shown);
        }
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        let long = "x".repeat(300);
        for (pattern, why) in [
            (json!("turn_faild"), "`turn_faild` is not an event kind; did you mean `turn_failed`?"),
            (json!("content_match"), "`content_match.substring` is required"),
            (json!(null), "with it as the only key"),
            (json!({}), "with it as the only key"),
            (json!({ "all": {}, "lifecycle": {} }), "with it as the only key"),
            (json!({ "nonsense": {} }), "`nonsense` is not an event kind"),
            (json!({ "All": {} }), "`All` is not an event kind"),
            (json!({ "all": null }), "`all` must be an object"),
            (json!({ "all": { "name_pattern": "x" } }), "`all` has no key `name_pattern`; it takes no keys"),
            (json!({ "agent_spawned": { "name": "x" } }), "the allowed key is `name_pattern`"),
            (json!({ "agent_spawned": { "name_pattern": 7 } }), "`agent_spawned.name_pattern` must be a string"),
            (json!({ "agent_spawned": { "name_pattern": "" } }), "must not be empty"),
            (json!({ "agent_spawned": { "name_pattern": "[a" } }), "unclosed `[`"),
            (json!({ "turn_completed": { "name_pattern": long } }), "longer than 256 bytes"),
            (json!({ "task_posted": { "assignee_match": "" } }), "must not be empty"),
            (json!({ "task_posted": { "assignee_match": ["self"] } }), "must be a string"),
            (json!({ "custom": { "event_type": "" } }), "must not be empty"),
            (json!({ "content_match": {} }), "`content_match.substring` is required"),
            (json!({ "content_match": { "substring": "" } }), "must not be empty"),
            (json!({ "workflow_failed": { "name_pattern": "x" } }), "it takes no keys"),
        ] {
            let refusal = parse_pattern(&pattern).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("pattern"));
            assert!(refusal.message.contains(why), "{pattern}: {}", refusal.message);
        }
    }
}
