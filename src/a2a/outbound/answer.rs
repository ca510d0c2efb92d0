//! What external agents answer, in each dialect. Nothing of it is trusted.

use agentsvc_components::a2a::outbound::{A2aDialect, A2aSentState};
use agentsvc_systems::a2a::limits::{A2A_PARTS_MAX, A2A_SENT_ERROR_BYTES_MAX};
use agentsvc_systems::a2a::outbound::SentReport;
use serde_json::Value;

/// JSON-RPC: no such method.
const NO_METHOD: i64 = -32_601;
/// A2A: no such task.
const NO_TASK: i64 = -32_001;

/// What an answer says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A task, or a message that needs none.
    Task(SentReport),
    /// It does not know the method.
    NoMethod,
    /// It does not know the task.
    NoTask,
    /// An error of the protocol.
    Error(String),
    /// It cannot be read; why.
    Unreadable(&'static str),
}

/// Reads the body of an answer.
pub(super) fn read(dialect: A2aDialect, body: &[u8]) -> Content {
    let Ok(answer) = serde_json::from_slice::<Value>(body) else {
        return Content::Unreadable("its answer is not JSON");
    };
    if let Some(error) = answer.get("error").filter(|error| error.is_object()) {
        return match error["code"].as_i64() {
            Some(NO_METHOD) => Content::NoMethod,
            Some(NO_TASK) => Content::NoTask,
            code => {
                let code = code.map_or_else(String::new, |code| format!(" {code}"));
                let text = short(error["message"].as_str().unwrap_or("without a message"));
                Content::Error(format!("it returned the error{code}: {text}"))
            }
        };
    }
    let found = match dialect {
        A2aDialect::Rest => Some(&answer),
        _ => answer.get("result").filter(|result| result.is_object()),
    };
    let Some(found) = found else { return Content::Unreadable("its answer has no result") };
    if let Some(message) = found.get("message").filter(|message| message["parts"].is_array() && is_message(found)) {
        return Content::Task(of_message(message));
    }
    if found["kind"] == "message" || (found["parts"].is_array() && found["status"].is_null()) {
        return Content::Task(of_message(found));
    }
    of_task(found.get("task").filter(|task| task.is_object()).unwrap_or(found))
}

/// Does an object hold a message and no task?
fn is_message(found: &Value) -> bool {
    found["task"].is_null() && found["status"].is_null() && found["id"].is_null()
}

fn of_message(message: &Value) -> SentReport {
    SentReport {
        state: Some(A2aSentState::Completed),
        result: Some(text_of(&message["parts"])),
        context: id(message, &["contextId"]),
        remote: id(message, &["taskId"]),
        ..SentReport::default()
    }
}

fn of_task(task: &Value) -> Content {
    let word = task["status"]["state"].as_str().or_else(|| task["status"].as_str());
    let Some(state) = word.map(state_of) else {
        return Content::Unreadable("its answer has neither a task nor a message");
    };
    let message = text_of(&task["status"]["message"]["parts"]);
    let result = answer_of(task).or_else(|| Some(message.clone()).filter(|text| !text.is_empty()));
    let is_failure = matches!(state, A2aSentState::Failed | A2aSentState::Rejected | A2aSentState::Cancelled);
    let why = if message.is_empty() { "it gave no reason".to_owned() } else { short(&message) };
    Content::Task(SentReport {
        state: Some(state),
        result: if state.is_interrupted() && !message.is_empty() { Some(message) } else { result },
        error: is_failure.then(|| format!("the external agent ended the task as {}: {why}", state.as_str())),
        remote: id(task, &["id", "task_id", "taskId"]),
        context: id(task, &["contextId", "context_id", "sessionId"]),
        dialect: None,
    })
}

/// The text of a task's answer: its artifacts, else its plain result, else the last message of the agent.
fn answer_of(task: &Value) -> Option<String> {
    let artifacts = task["artifacts"].as_array().into_iter().flatten().take(A2A_PARTS_MAX);
    let texts: Vec<String> = artifacts.map(|one| text_of(&one["parts"])).filter(|text| !text.is_empty()).collect();
    if !texts.is_empty() {
        return Some(texts.join("\n"));
    }
    let plain = text_of(&task["result"]["parts"]);
    if !plain.is_empty() {
        return Some(plain);
    }
    let all = task["history"].as_array().or_else(|| task["messages"].as_array())?;
    let is_agent = |one: &&Value| matches!(one["role"].as_str(), Some("agent" | "ROLE_AGENT" | "assistant"));
    let last = all.iter().rev().find(is_agent)?;
    Some(text_of(&last["parts"])).filter(|text| !text.is_empty())
}

/// The text of parts. Data is written as JSON; files are named, not fetched.
fn text_of(parts: &Value) -> String {
    let mut text = String::new();
    for part in parts.as_array().into_iter().flatten().take(A2A_PARTS_MAX) {
        let piece = match (part["text"].as_str(), part.get("data").filter(|data| !data.is_null())) {
            (Some(piece), _) => piece.to_owned(),
            (None, Some(data)) => data.to_string(),
            (None, None) => {
                let file = part.get("file").unwrap_or(part);
                let name = ["name", "filename", "uri", "url"].into_iter().find_map(|key| file[key].as_str());
                format!("[file {}]", name.map_or_else(|| "without a name".to_owned(), short))
            }
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&piece);
    }
    text
}

/// A state in the words of any version.
fn state_of(word: &str) -> A2aSentState {
    let word = word.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace(['_', '-'], "");
    match word.as_str() {
        "submitted" | "pending" => A2aSentState::Submitted,
        "working" | "running" => A2aSentState::Working,
        "inputrequired" => A2aSentState::InputRequired,
        "authrequired" => A2aSentState::AuthRequired,
        "completed" => A2aSentState::Completed,
        "failed" => A2aSentState::Failed,
        "rejected" => A2aSentState::Rejected,
        "canceled" | "cancelled" => A2aSentState::Cancelled,
        _ => A2aSentState::Unknown,
    }
}

fn id(of: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| of[*key].as_str()).filter(|id| !id.is_empty()).map(str::to_owned)
}

/// A text of others as part of a sentence of ours.
fn short(text: &str) -> String {
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.truncate(text.floor_char_boundary(A2A_SENT_ERROR_BYTES_MAX / 2));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(dialect: A2aDialect, answer: &Value) -> SentReport {
        match read(dialect, answer.to_string().as_bytes()) {
            Content::Task(report) => report,
            other => panic!("{answer}: {other:?}"),
        }
    }

    #[test]
    fn tasks_and_messages_of_all_dialects() {
        let v1 = json!({ "result": { "task": { "id": "r", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" },
            "artifacts": [{ "parts": [{ "text": "a" }, { "data": { "x": 1 } }] }, { "parts": [{ "url": "http://f" }] }] } } });
        let report = task(A2aDialect::V1, &v1);
        assert_eq!(report.result.as_deref(), Some("a\n{\"x\":1}\n[file http://f]"));
        assert_eq!(
            (report.state, report.remote.as_deref(), report.context.as_deref()),
            (Some(A2aSentState::Completed), Some("r"), Some("c"))
        );
        let v1 = json!({ "result": { "message": { "messageId": "m", "contextId": "c", "role": "ROLE_AGENT", "parts": [{ "text": "hi" }] } } });
        assert_eq!(task(A2aDialect::V1, &v1).result.as_deref(), Some("hi"));
        let get = json!({ "result": { "id": "r", "status": { "state": "TASK_STATE_WORKING" } } });
        assert_eq!(task(A2aDialect::V1, &get).state, Some(A2aSentState::Working));
        let v0 =
            json!({ "result": { "kind": "message", "role": "agent", "parts": [{ "kind": "text", "text": "hi" }] } });
        assert_eq!(task(A2aDialect::V0, &v0).result.as_deref(), Some("hi"));
        let v0 = json!({ "result": { "kind": "task", "id": "r", "status": { "state": "input-required",
            "message": { "parts": [{ "kind": "text", "text": "which one?" }] } }, "history": [{ "role": "user", "parts": [{ "text": "x" }] }] } });
        let report = task(A2aDialect::V0, &v0);
        assert_eq!((report.state, report.result.as_deref()), (Some(A2aSentState::InputRequired), Some("which one?")));
        let old = json!({ "result": { "id": "r", "sessionId": "s", "status": { "state": "inputRequired" } } });
        assert_eq!(task(A2aDialect::Tasks, &old).state, Some(A2aSentState::InputRequired));
        let bare = json!({ "id": "r", "sessionId": "s", "status": "completed",
            "messages": [{ "role": "user", "parts": [{ "text": "q" }] }, { "role": "agent", "parts": [{ "type": "text", "text": "a" }] }] });
        assert_eq!(task(A2aDialect::Rest, &bare).result.as_deref(), Some("a"));
        let plain =
            json!({ "task_id": "t", "status": "completed", "result": { "role": "agent", "parts": [{ "text": "p" }] } });
        let report = task(A2aDialect::Rest, &plain);
        assert_eq!((report.result.as_deref(), report.remote.as_deref()), (Some("p"), Some("t")));
        let failed = json!({ "result": { "id": "r", "status": { "state": "failed", "message": { "parts": [{ "text": "no\u{7}" }] } } } });
        assert!(task(A2aDialect::V0, &failed).error.unwrap().ends_with("failed: no "));
    }

    #[test]
    fn errors_and_nonsense_are_told_apart() {
        let of = |answer: Value| read(A2aDialect::V0, answer.to_string().as_bytes());
        assert_eq!(of(json!({ "error": { "code": -32601 } })), Content::NoMethod);
        assert_eq!(of(json!({ "error": { "code": -32001 } })), Content::NoTask);
        assert_eq!(
            of(json!({ "error": { "code": -5, "message": "x" } })),
            Content::Error("it returned the error -5: x".to_owned())
        );
        for nothing in [
            json!({}),
            json!([]),
            json!({ "result": 7 }),
            json!({ "result": {} }),
            json!({ "result": { "status": 7 } }),
        ] {
            assert!(matches!(of(nothing.clone()), Content::Unreadable(_)), "{nothing}");
        }
        assert!(matches!(read(A2aDialect::V1, b"<html>"), Content::Unreadable(_)));
        assert_eq!(
            task(A2aDialect::V0, &json!({ "result": { "id": "r", "status": { "state": "new-word" } } })).state,
            Some(A2aSentState::Unknown)
        );
    }
}
