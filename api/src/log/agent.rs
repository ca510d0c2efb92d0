//! Recent log lines about one agent (spec 1, Other agent routes).
//!
//! They come from two places: the lines that the daemon logged about the agent since its start, as far as they are
//! still in memory, and one line for each of its newest ended turns, from their stored traces. So there is something
//! to read whatever the log level is, and after a restart.

use std::collections::BTreeMap;

use agentsvc_components::AgentId;
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_systems::agent::GetAgent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::{lists, reply};
use crate::log::hub::LogHub;
use crate::turn::store::TraceStore;
use crate::turn::traces;

/// Lines of one answer, unless the request says otherwise.
const LINES_DEFAULT: usize = 100;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/agents/{id}/logs", "List recent log lines of an agent", |call| Box::pin(logs(call)))
        .large()
        .query::<LogQuery>()
        .replies(&[Reply::json::<LogsBody>(200, "the lines, newest first")])];

/// Which lines to show.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct LogQuery {
    /// Minimum level: `error`, `warn`, `info`, `debug` or `trace`. Default: all levels.
    level: Option<Level>,
    /// Maximum number of lines. Default: 100.
    limit: Option<usize>,
}

/// How bad a line is; worse ones are less.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Level {
    Error,
    #[serde(alias = "warning")]
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    fn of(word: &str) -> Self {
        match word {
            "ERROR" => Self::Error,
            "WARN" => Self::Warn,
            "INFO" => Self::Info,
            "DEBUG" => Self::Debug,
            _ => Self::Trace,
        }
    }
}

/// The lines.
#[derive(Serialize, JsonSchema)]
struct LogsBody {
    /// Newest first. Each has `timestamp`, `level`, `message` or `kind`, and the other logged fields; lines made from
    /// traces have the `target` `trace`.
    logs: Vec<Map<String, Value>>,
    /// Number of lines in this response.
    total: usize,
}

async fn logs(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let LogQuery { level, limit } = call.query()?;
    let limit = lists::limit(limit)?.unwrap_or(LINES_DEFAULT);
    call.ask(GetAgent(agent)).await?;
    let least = level.unwrap_or(Level::Trace);
    let recent = call.api.state::<LogHub>().about(agent);
    let content = call.api.service::<dyn TraceStore>()?;
    // Of lines that are as new, the later one first: the number keeps their order.
    let mut lines: BTreeMap<(String, usize), Map<String, Value>> = BTreeMap::new();
    let ended = traces::read(content, move |content| content.traces(agent, None, limit)).await?;
    let ended = ended.iter().rev().map(|trace| ended_line(agent, trace));
    let logged = recent.iter().filter_map(|line| serde_json::from_str(line).ok());
    for line in ended.chain(logged.filter(|line| !tells_an_end(line))) {
        let word = |key: &str| line.get(key).and_then(Value::as_str).unwrap_or_default();
        if Level::of(word("level")) <= least {
            let key = (word("timestamp").to_owned(), lines.len());
            lines.insert(key, line);
        }
    }
    let logs: Vec<_> = lines.into_values().rev().take(limit).collect();
    reply::ok(&LogsBody { total: logs.len(), logs })
}

/// Is this a logged line that a trace tells as well?
fn tells_an_end(line: &Map<String, Value>) -> bool {
    let kind = line.get("kind").and_then(Value::as_str);
    matches!(kind, Some("turn_failed" | "turn_completed"))
}

/// The line of an ended turn.
fn ended_line(agent: AgentId, trace: &TraceRecord) -> Map<String, Value> {
    let level = match trace.end {
        TurnEnd::Done | TurnEnd::Stopped | TurnEnd::Interrupted => "INFO",
        TurnEnd::Failed => "WARN",
    };
    let word = traces::end_word(trace.end);
    let message = match &trace.error {
        Some(error) => format!("turn {word}: {error}"),
        None => format!("turn {word}"),
    };
    let line = json!({
        "timestamp": trace.ended_at.to_string(),
        "level": level,
        "message": message,
        "target": "trace",
        "agent": agent.0,
        "turn": trace.turn.0,
        "session": trace.session.0,
        "code": trace.code,
        "duration_ms": trace.ended_at.ms_since(trace.started_at),
        "input_tokens": trace.usage.input_tokens,
        "output_tokens": trace.usage.output_tokens,
        "iterations": trace.iterations,
        "tool_calls": trace.tool_calls,
    });
    match line {
        Value::Object(line) => line,
        _ => Map::new(),
    }
}
