//! What a server says by itself: its requests, its notifications and its log.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::asks::{Asked, RpcError, questions};
use super::connection::Connection;
use super::session::Version;

/// Bytes of the id of a request.
const ID_BYTES_MAX: usize = 256;
/// Bytes of one line of a server's log.
const LOG_BYTES_MAX: usize = 1 << 10;
/// Lines of a server's log in [`LOG_PERIOD`]; the rest is counted and left out.
const LOG_LINES_MAX: u32 = 60;
/// See [`LOG_LINES_MAX`].
const LOG_PERIOD: Duration = Duration::from_secs(60);

/// How much a server has written to the log.
#[derive(Debug, Default)]
pub(super) struct LogQuota {
    since: Option<Instant>,
    lines: u32,
}

impl LogQuota {
    /// May it write one line more? Otherwise the number of lines that are left out so far.
    pub(super) fn take(&mut self) -> Result<(), u32> {
        let now = Instant::now();
        if self.since.is_none_or(|since| now.duration_since(since) >= LOG_PERIOD) {
            *self = Self { since: Some(now), lines: 0 };
        }
        self.lines = self.lines.saturating_add(1);
        if self.lines <= LOG_LINES_MAX { Ok(()) } else { Err(self.lines - LOG_LINES_MAX) }
    }
}

/// Takes a request or a notification, which came with the answer to the request `within`, where that is known.
pub(super) fn take(connection: &Connection, message: &Value, within: Option<u64>) {
    let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
    let id = &message["id"];
    if !id.is_null() && !is_id(id) {
        // What is sent back to it waits until it is read: only what is small may.
        return tracing::debug!(server = connection.name(), "a request of an MCP server has no proper id");
    }
    if !id.is_null() {
        let answer = match (method, connection.roots()) {
            ("ping", _) => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
            ("roots/list", Some(told)) => json!({ "jsonrpc": "2.0", "id": id, "result": roots(&told) }),
            _ => match ask(connection, id, method, params, within) {
                Ok(()) => return,
                Err(error) => error.answer(id),
            },
        };
        return connection.answer(answer);
    }
    match method {
        // Resources and prompts are listed when they are asked for; what there is to ask may be others, too.
        "notifications/tools/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/prompts/list_changed" => connection.change_tools(),
        "notifications/message" => log(connection, params),
        "notifications/progress" => {
            let (done, total) = (params["progress"].as_f64(), params["total"].as_f64());
            let message = params["message"].as_str().map(bounded);
            tracing::debug!(server = connection.name(), call = %params["progressToken"], ?done, ?total, said = message,
                "an MCP server makes progress");
        }
        "notifications/cancelled" => questions::take_back(connection, &params["requestId"]),
        _ => {}
    }
}

/// An id as JSON-RPC has it, and of a bounded size.
fn is_id(id: &Value) -> bool {
    id.is_number() || id.as_str().is_some_and(|id| id.len() <= ID_BYTES_MAX)
}

/// The directories that a server is told of.
pub(super) fn roots(roots: &[PathBuf]) -> Value {
    let roots = roots.iter().filter_map(|root| Url::from_file_path(root).ok());
    json!({ "roots": roots.map(|url| json!({ "uri": url.as_str() })).collect::<Vec<_>>() })
}

/// Takes a request that a person or a model answers.
fn ask(connection: &Connection, id: &Value, method: &str, params: &Value, within: Option<u64>) -> Result<(), RpcError> {
    let mut offers = connection.offers();
    let version = connection.version().filter(|version| !version.is_stateless()).ok_or_else(RpcError::no_method)?;
    offers.elicitation &= version >= Version::V2025_06_18;
    let asked = Asked::read(method, params, offers, version >= Version::V2025_11_25)?;
    questions::hand_over(connection, id, asked, within)
}

/// Writes what a server has to say to our log.
fn log(connection: &Connection, params: &Value) {
    let quota = connection.log_quota().lock().take();
    let server = connection.name();
    match quota {
        Ok(()) => {}
        Err(1) => return tracing::warn!(server, "an MCP server logs too much; the rest of a minute is left out"),
        Err(_) => return,
    }
    let text = match &params["data"] {
        Value::String(text) => bounded(text),
        data => bounded(&data.to_string()),
    };
    let logger = params["logger"].as_str().map(bounded);
    match params["level"].as_str().unwrap_or_default() {
        "debug" => tracing::debug!(server, logger, text, "an MCP server logs"),
        "info" | "notice" => tracing::info!(server, logger, text, "an MCP server logs"),
        // What is an error for a server is not yet one for the daemon.
        _ => tracing::warn!(server, logger, text, "an MCP server logs"),
    }
}

/// The beginning of a text that is not ours, on one line.
fn bounded(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(LOG_BYTES_MAX)];
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_log_has_so_many_lines_a_minute() {
        let mut quota = LogQuota::default();
        for _ in 0..LOG_LINES_MAX {
            assert_eq!(quota.take(), Ok(()));
        }
        assert_eq!((quota.take(), quota.take()), (Err(1), Err(2)));
        tokio::time::advance(LOG_PERIOD).await;
        assert_eq!(quota.take(), Ok(()));
    }

    #[test]
    fn ids_are_small() {
        for (id, is) in [
            (json!(1), true),
            (json!("a"), true),
            (json!("x".repeat(ID_BYTES_MAX)), true),
            (json!("x".repeat(ID_BYTES_MAX + 1)), false),
            (json!([1]), false),
            (json!({ "a": 1 }), false),
            (json!(true), false),
        ] {
            assert_eq!(is_id(&id), is, "{id}");
        }
    }

    #[test]
    fn foreign_text_is_one_bounded_line() {
        assert_eq!(bounded("a\nb\u{1b}[31m"), "a b [31m");
        assert_eq!(bounded(&"é".repeat(LOG_BYTES_MAX)).len(), LOG_BYTES_MAX);
    }
}
