//! The log as it is written (spec 2, System).

use bytes::Bytes;
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::{lists, reply, sse};
use crate::log::files::LogFiles;
use crate::log::hub::{LogDelivery, LogHub, LogSubscription};

/// Lines of one answer, unless the request says otherwise.
const LINES_DEFAULT: usize = 200;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/logs", "List the lines of the log files", |call| Box::pin(stored(call)))
        .large()
        .query::<StoredQuery>()
        .replies(&[Reply::json::<StoredBody>(200, "the lines, newest first")]),
    Route::get("/api/logs/stream", "Stream log lines", |call| Box::pin(follow(call))).replies(&[Reply::plain(
        200,
        "events `log` (one JSON object each) and `lagged`",
        "text/event-stream",
    )]),
];

/// Which lines to show.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct StoredQuery {
    /// Maximum number of lines, up to 1000. Default: 200.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// Lines of the log files.
#[derive(Serialize, JsonSchema)]
struct StoredBody {
    /// Newest first. Each has `timestamp`, `level`, `message` or `kind`, and the other logged fields.
    logs: Vec<Map<String, Value>>,
    /// Number of lines in this response.
    total: usize,
    /// Cursor of the older lines; null at the beginning of the oldest file.
    next_cursor: Option<String>,
}

/// The stored lines, so that the log of the time before a client came can be read without access to the files.
async fn stored(call: Call) -> Result<Response, Error> {
    let StoredQuery { limit, cursor } = call.query()?;
    let limit = lists::limit(limit)?.unwrap_or(LINES_DEFAULT);
    let files = call.api.service::<dyn LogFiles>()?;
    let read = spawn_blocking(move || files.before(cursor.as_deref(), limit)).await;
    let unread = || Error::internal("the log files could not be read");
    let page = read.map_err(|_| unread())?.map_err(|error| {
        tracing::error!(%error, "the log files could not be read");
        unread()
    })?;
    let wrong = || Error::bad_field("cursor", "query parameter 'cursor' is not a valid cursor of this list");
    let page = page.ok_or_else(wrong)?;
    let logs: Vec<_> = page.lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    reply::ok(&StoredBody { total: logs.len(), logs, next_cursor: page.next })
}

async fn follow(call: Call) -> Result<Response, Error> {
    let lines = stream::unfold(call.api.state::<LogHub>().subscribe(), next_line);
    Ok(sse::response(&call.api.shutdown, lines, None))
}

async fn next_line(mut subscription: LogSubscription) -> Option<(Bytes, LogSubscription)> {
    let wire = match subscription.next().await? {
        // The line is JSON already.
        LogDelivery::Line(line) => Bytes::from(format!("event: log\ndata: {line}\n\n")),
        LogDelivery::Lagged(missed) => sse::event("lagged", &json!({"missed": missed})),
    };
    Some((wire, subscription))
}
