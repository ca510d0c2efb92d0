//! Requests to external agents, in each dialect. They ask not to wait for the end of the task, so that its id is known early.

use agentsvc_components::a2a::outbound::{A2aCard, A2aDialect};
use agentsvc_systems::a2a::outbound::A2aSentView;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

/// What kinds of answers are read.
const MODES: [&str; 3] = ["text/plain", "text", "application/json"];
/// Messages of the history that an answer may have.
const HISTORY: u32 = 2;
const VERSION: HeaderName = HeaderName::from_static("a2a-version");

/// A request, without its destination's rules.
pub(super) struct Written {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Value>,
}

impl Written {
    fn rpc(card: &A2aCard, dialect: A2aDialect, id: &str, method: &str, mut params: Value) -> Self {
        let mut headers = HeaderMap::new();
        if dialect == A2aDialect::V1 {
            headers.insert(VERSION, HeaderValue::from_static("1.0"));
            if let Some(tenant) = &card.tenant {
                params["tenant"] = json!(tenant);
            }
        }
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        Self { method: Method::POST, url: card.endpoint.to_string(), headers, body: Some(body) }
    }
}

/// The id of the task that the client of older dialects chooses.
pub(super) fn chosen_id(view: &A2aSentView, dialect: A2aDialect) -> Option<String> {
    let chooses = matches!(dialect, A2aDialect::Tasks | A2aDialect::Rest);
    chooses.then(|| view.task.remote.as_deref().map_or_else(|| view.id.to_string(), str::to_owned))
}

/// The request that sends a message.
pub(super) fn send(card: &A2aCard, dialect: A2aDialect, view: &A2aSentView) -> Written {
    let (id, text, task) = (view.id.to_string(), &view.task.message, &view.task);
    let mut message = match dialect {
        A2aDialect::V1 => json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] }),
        A2aDialect::V0 => json!({
            "kind": "message", "messageId": id, "role": "user", "parts": [{ "kind": "text", "text": text }],
        }),
        A2aDialect::Tasks | A2aDialect::Rest => json!({
            "messageId": id, "role": "user", "parts": [{ "type": "text", "kind": "text", "text": text }],
        }),
    };
    if let Some(context) = &task.context {
        message["contextId"] = json!(context);
    }
    if let Some(remote) = task.remote.as_ref().filter(|_| task.continues) {
        message["taskId"] = json!(remote);
    }
    match dialect {
        A2aDialect::V1 => {
            let configuration = json!({ "returnImmediately": true, "acceptedOutputModes": MODES });
            let params = json!({ "message": message, "configuration": configuration });
            Written::rpc(card, dialect, &id, "SendMessage", params)
        }
        A2aDialect::V0 => {
            let configuration = json!({ "blocking": false, "acceptedOutputModes": MODES });
            let params = json!({ "message": message, "configuration": configuration });
            Written::rpc(card, dialect, &id, "message/send", params)
        }
        A2aDialect::Tasks | A2aDialect::Rest => {
            let session = task.context.as_deref().unwrap_or(&id);
            let params = json!({ "id": chosen_id(view, dialect), "sessionId": session, "message": message });
            if dialect == A2aDialect::Tasks {
                return Written::rpc(card, dialect, &id, "tasks/send", params);
            }
            let url = format!("{}/tasks/send", card.endpoint.trim_end_matches('/'));
            let body = Some(json!({ "params": params, "message": message }));
            Written { method: Method::POST, url, headers: HeaderMap::new(), body }
        }
    }
}

/// The request that asks for a task.
pub(super) fn ask(card: &A2aCard, view: &A2aSentView, remote: &str) -> Written {
    let id = view.id.to_string();
    match card.dialect {
        A2aDialect::V1 => {
            Written::rpc(card, A2aDialect::V1, &id, "GetTask", json!({ "id": remote, "historyLength": HISTORY }))
        }
        A2aDialect::V0 | A2aDialect::Tasks => {
            Written::rpc(card, card.dialect, &id, "tasks/get", json!({ "id": remote, "historyLength": HISTORY }))
        }
        A2aDialect::Rest => {
            let base = card.endpoint.trim_end_matches('/');
            let url = format!("{base}/tasks/{}", crate::kernel::percent::encoded(remote));
            Written { method: Method::GET, url, headers: HeaderMap::new(), body: None }
        }
    }
}
