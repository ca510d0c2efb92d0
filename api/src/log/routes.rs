//! The log as it is written (spec 2, System).

use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::sse;
use crate::log::hub::{LogDelivery, LogHub, LogSubscription};

pub(crate) const ROUTES: &[Route] = &[Route::get("/api/logs/stream", "Stream log lines", |call| Box::pin(logs(call)))
    .replies(&[Reply::plain(200, "events `log` (one JSON object each) and `lagged`", "text/event-stream")])];

async fn logs(call: Call) -> Result<Response, Error> {
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
