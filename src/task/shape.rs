//! Tasks as tools show them to models.

use agentsvc_systems::task::TaskView;
use serde_json::{Map, Value, json};

/// A task, with the keys that say something.
pub(crate) fn shape(view: &TaskView) -> Value {
    let task = &view.task;
    let mut shown = Map::new();
    let mut show = |key: &str, value: Value| {
        if !value.is_null() {
            shown.insert(key.to_owned(), value);
        }
    };
    show("task_id", json!(view.id));
    show("title", json!(task.title));
    show("description", json!(Some(&task.description).filter(|text| !text.is_empty())));
    show("status", json!(task.state.as_str()));
    show("assignee", json!(task.owner()));
    show("claimed_by", json!(task.claimed_by));
    show("attempts", json!(task.attempts));
    show("result", json!(task.result));
    show("created_at", json!(task.created_at.to_string()));
    Value::Object(shown)
}

/// A task as the result of a call.
pub(crate) fn told(view: &TaskView) -> String {
    shape(view).to_string()
}
