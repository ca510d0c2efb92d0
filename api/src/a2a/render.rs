//! A task as the dialects of the protocol write it.

use agentsvc_components::Timestamp;
use agentsvc_components::a2a::A2aState;
use agentsvc_systems::a2a::A2aTaskView;
use serde_json::{Value, json};

/// The one artifact of a task: its answer.
pub(crate) const ARTIFACT: &str = "response";

/// How JSON-RPC clients read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Versions before 1.0.
    V0,
    /// Version 1.0.
    V1,
}

/// The word of REST routes.
pub(crate) const fn word(view: &A2aTaskView) -> &'static str {
    match view.task.state {
        A2aState::Working if view.is_waiting => "submitted",
        A2aState::Working => "working",
        A2aState::Completed => "completed",
        A2aState::Failed => "failed",
        A2aState::Cancelled => "cancelled",
    }
}

impl Dialect {
    /// The dialect's word of a state.
    pub(crate) fn state(self, view: &A2aTaskView) -> String {
        match (self, word(view)) {
            (Self::V0, "cancelled") => "canceled".to_owned(),
            (Self::V0, word) => word.to_owned(),
            (Self::V1, "cancelled") => "TASK_STATE_CANCELED".to_owned(),
            (Self::V1, word) => format!("TASK_STATE_{}", word.to_uppercase()),
        }
    }

    /// Parts that hold a text. Older clients tell parts by `kind`, or by `type`.
    pub(crate) fn parts(self, text: &str) -> Value {
        match self {
            Self::V0 => json!([{ "kind": "text", "type": "text", "text": text }]),
            Self::V1 => json!([{ "text": text }]),
        }
    }

    fn message(self, view: &A2aTaskView, is_agent: bool, id: &str, text: &str) -> Value {
        let (task, context) = (view.shown_id(), &view.task.context);
        let role = match (self, is_agent) {
            (Self::V0, true) => "agent",
            (Self::V0, false) => "user",
            (Self::V1, true) => "ROLE_AGENT",
            (Self::V1, false) => "ROLE_USER",
        };
        let mut message = json!({
            "messageId": id, "taskId": task, "contextId": context, "role": role, "parts": self.parts(text),
        });
        if self == Self::V0 {
            message["kind"] = json!("message");
        }
        message
    }

    /// What the client said.
    fn said(self, view: &A2aTaskView) -> Value {
        self.message(view, false, &view.task.message_id, &view.task.message)
    }

    /// What the agent answered, or why it did not.
    fn answered(self, view: &A2aTaskView) -> Option<Value> {
        let text = view.task.result.as_deref()?;
        Some(self.message(view, true, &format!("{}-response", view.shown_id()), text))
    }

    /// The state of a task.
    pub(crate) fn status(self, view: &A2aTaskView) -> Value {
        let mut status = json!({ "state": self.state(view), "timestamp": moment(view.task.updated_at) });
        let is_failure = matches!(view.task.state, A2aState::Failed | A2aState::Cancelled);
        if let Some(why) = self.answered(view).filter(|_| is_failure) {
            status["message"] = why;
        }
        status
    }

    /// The answer as an artifact.
    pub(crate) fn artifact(self, text: &str) -> Value {
        json!({ "artifactId": ARTIFACT, "name": ARTIFACT, "parts": self.parts(text) })
    }

    /// Has the agent answered?
    pub(crate) fn is_answered(self, view: &A2aTaskView) -> bool {
        view.task.state == A2aState::Completed
    }

    fn artifacts(self, view: &A2aTaskView) -> Value {
        let answer = view.task.result.as_deref().filter(|_| self.is_answered(view));
        Value::Array(answer.map(|text| self.artifact(text)).into_iter().collect())
    }

    /// A whole task; its history has at most so many messages.
    pub fn task(self, view: &A2aTaskView, history: Option<u64>) -> Value {
        let mut shown = json!({
            "id": view.shown_id(),
            "contextId": view.task.context,
            "status": self.status(view),
            "artifacts": self.artifacts(view),
            "metadata": { "agentId": view.task.agent, "agentName": view.task.agent_name },
        });
        if history != Some(0) {
            shown["history"] = json!([self.said(view)]);
        }
        if self == Self::V0 {
            shown["kind"] = json!("task");
            shown["sessionId"] = json!(view.task.context);
            shown["agentId"] = json!(view.task.agent);
        }
        shown
    }

    /// A further piece of the answer, or the whole in the place of the pieces.
    pub(crate) fn artifact_event(self, view: &A2aTaskView, text: &str, append: bool, last: bool) -> Value {
        let update = json!({
            "taskId": view.shown_id(), "contextId": view.task.context, "artifact": self.artifact(text),
            "append": append, "lastChunk": last,
        });
        self.event("artifact-update", "artifactUpdate", update)
    }

    /// The state of the task is another.
    pub(crate) fn status_event(self, view: &A2aTaskView) -> Value {
        let update = json!({ "taskId": view.shown_id(), "contextId": view.task.context, "status": self.status(view) });
        let mut event = self.event("status-update", "statusUpdate", update);
        if self == Self::V0 {
            event["final"] = json!(!view.task.state.is_open());
        }
        event
    }

    /// The task, as the first event of a stream or what a notification says.
    pub fn task_event(self, view: &A2aTaskView) -> Value {
        let task = self.task(view, None);
        if self == Self::V0 { task } else { json!({ "task": task }) }
    }

    fn event(self, kind: &str, key: &str, mut update: Value) -> Value {
        if self == Self::V1 {
            return json!({ key: update });
        }
        update["kind"] = json!(kind);
        update
    }
}

/// A moment as clients read it.
fn moment(at: Timestamp) -> String {
    at.to_string()
}

/// The answer of the specification's routes.
pub(crate) fn plain(view: &A2aTaskView) -> Value {
    let result = view.task.result.as_deref();
    let result = result.map(|text| json!({ "role": "agent", "parts": [{ "type": "text", "text": text }] }));
    json!({
        "task_id": view.shown_id(), "status": word(view), "result": result,
        "context_id": view.task.context, "agent_id": view.task.agent,
        "created_at": moment(view.task.created_at), "updated_at": moment(view.task.updated_at),
    })
}

/// The bare task of older clients.
pub(crate) fn bare(view: &A2aTaskView) -> Value {
    let messages: Vec<Value> = std::iter::once(Dialect::V0.said(view)).chain(Dialect::V0.answered(view)).collect();
    json!({
        "id": view.shown_id(), "sessionId": view.task.context, "contextId": view.task.context, "status": word(view),
        "messages": messages, "artifacts": Dialect::V0.artifacts(view), "agentId": view.task.agent,
    })
}

/// Both.
pub(crate) fn union(view: &A2aTaskView) -> Value {
    let mut both = bare(view);
    if let (Some(both), Value::Object(plain)) = (both.as_object_mut(), plain(view)) {
        both.extend(plain);
    }
    both
}
