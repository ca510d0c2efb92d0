//! What adapters write to their error output: text, or lines of the SDK's log. The last lines are kept.

use std::collections::VecDeque;

use agentsvc_api::channel::shape::LogLine;
use agentsvc_api::http::timestamp::Moment;
use agentsvc_components::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Bytes of a line that are kept.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 10;
/// Lines that are kept, and the bytes of all of them.
const LINES_MAX: usize = 200;
const BYTES_MAX: usize = 64 << 10;

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// As the SDK's log says it.
    pub(crate) level: Option<String>,
    pub(crate) message: String,
    /// The cause beside it.
    pub(crate) error: Option<String>,
    /// The kind of command that failed.
    pub(crate) command: Option<String>,
}

#[derive(Deserialize)]
struct Record {
    level: String,
    message: String,
    #[serde(default)]
    fields: Map<String, Value>,
}

impl Line {
    /// Reads a line.
    pub(crate) fn parse(text: &str) -> Self {
        let Ok(Record { level, message, fields }) = serde_json::from_str(text) else {
            return Self { message: text.to_owned(), ..Self::default() };
        };
        let command = fields.get("cmd_type").and_then(Value::as_str).map(str::to_owned);
        Self { level: Some(level), message, error: cause(&fields), command }
    }

    /// The message with its cause.
    pub(crate) fn cause(&self) -> String {
        match &self.error {
            Some(error) => format!("{}: {error}", self.message),
            None => self.message.clone(),
        }
    }

    /// Reports it a failure?
    pub(crate) fn is_error(&self) -> bool {
        self.level.as_deref() == Some("error")
    }
}

/// Names of the cause among the fields of a line: the first pair says what the platform answered, a code and its words.
const CODES: [&str; 5] = ["status", "http", "errcode", "error_code", "code"];
const WORDS: [&str; 7] = ["error", "body", "description", "errmsg", "msg", "errors", "reason"];

/// The cause of what a line says: its error, or the platform's code and words.
fn cause(fields: &Map<String, Value>) -> Option<String> {
    let shown = |key: &&str| match fields.get(*key)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        other => Some(other.to_string()),
    };
    let (code, words) = (CODES.iter().find_map(shown), WORDS.iter().find_map(shown));
    let mut cause = match (code, words) {
        (Some(code), Some(words)) => format!("{code}: {words}"),
        (code, words) => code.or(words)?,
    };
    cause.truncate(cause.floor_char_boundary(LINE_BYTES_MAX));
    Some(cause)
}

/// The last lines of an adapter, over all of its runs.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: VecDeque<(Timestamp, Line)>,
    bytes: usize,
}

impl Log {
    /// Keeps a line.
    pub(crate) fn add(&mut self, at: Timestamp, mut line: Line) {
        line.message = line.cause();
        line.message.truncate(line.message.floor_char_boundary(LINE_BYTES_MAX));
        self.bytes += line.message.len();
        self.lines.push_back((at, Line { error: None, ..line }));
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some((_, oldest)) = self.lines.pop_front() else { break };
            self.bytes -= oldest.message.len();
        }
    }

    /// The last thing it wrote, for people.
    pub(crate) fn last(&self) -> Option<&str> {
        self.lines.iter().rev().map(|(_, line)| line.message.as_str()).find(|text| !text.trim().is_empty())
    }

    /// All lines, oldest first.
    pub(crate) fn shown(&self) -> Vec<LogLine> {
        let shown = |(at, line): &(Timestamp, Line)| LogLine {
            at: Some(Moment(*at)),
            level: line.level.clone(),
            message: line.message.clone(),
        };
        self.lines.iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log_are_taken_apart_and_kept_in_bounds() {
        let line = Line::parse(r#"{"ts":1.0,"level":"error","message":"m","fields":{"error":"e","cmd_type":"Send"}}"#);
        assert!(line.is_error() && line.cause() == "m: e" && line.command.as_deref() == Some("Send"));
        assert_eq!(Line::parse("Traceback").message, "Traceback");
        let cause =
            |fields: &str| Line::parse(&format!(r#"{{"level":"warn","message":"m","fields":{fields}}}"#)).cause();
        assert_eq!(cause(r#"{"status":403,"body":"no"}"#), "m: 403: no");
        assert_eq!(cause(r#"{"http":400,"error_code":400,"description":"chat not found"}"#), "m: 400: chat not found");
        assert_eq!(cause(r#"{"status":502,"body":""}"#), "m: 502");
        assert_eq!(cause(r#"{"delay":2}"#), "m");
        assert_eq!(cause(&format!(r#"{{"body":"{}"}}"#, "x".repeat(1 << 16))).len(), LINE_BYTES_MAX + 3);
        let mut log = Log::default();
        for number in 0..LINES_MAX + 10 {
            log.add(Timestamp(0), Line::parse(&format!("line {number}")));
        }
        assert_eq!((log.shown().len(), log.last()), (LINES_MAX, Some("line 209")));
        for _ in 0..LINES_MAX {
            log.add(Timestamp(0), Line::parse(&"é".repeat(LINE_BYTES_MAX)));
        }
        assert!(log.bytes <= BYTES_MAX && log.shown().iter().all(|line| line.message.len() <= LINE_BYTES_MAX));
    }
}
