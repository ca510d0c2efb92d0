//! Queries over the entities of the world (`docs/query.md`): one answer, a stream of answers, and what can be asked for.

use crate::query::error_codes;
use std::sync::Arc;

use agentsvc_components::kernel::limit;
use agentsvc_systems::query::{Plan, prepare};
use hyper::header::{ACCEPT, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::call::Call;
use crate::http::csv::CSV;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::query::run::{Answered, Queries};
use crate::query::shape::{AnswerBody, Schema, csv, schema};
use crate::world::live_stats::step;

/// What a query costs the client's rate budget: it may look at every entity.
const COST: u32 = 10;

/// Rows without the limit.
const X_TOTAL_COUNT: HeaderName = HeaderName::from_static("x-total-count");
/// `true` or `false`: was everything looked at and kept?
const X_QUERY_COMPLETE: HeaderName = HeaderName::from_static("x-query-complete");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/world/query", "Query the world", |call| Box::pin(query(call)))
        .large()
        .cost(COST)
        .query::<QueryParams>()
        .replies(&[
            Reply::json::<AnswerBody<'static>>(200, "columns and rows; CSV if requested"),
            Reply::error(429, "too many queries are running; try again later"),
        ]),
    Route::get("/api/world/query/schema", "Get the query schema", |call| Box::pin(show_schema(call)))
        .replies(&[Reply::json::<Schema>(200, "kinds, fields and limits")]),
];

/// A query.
#[derive(Deserialize, JsonSchema)]
struct QueryParams {
    /// The query, such as `agents where state = "Running" sort by tokens desc limit 20`.
    q: String,
    /// `json` or `csv`. Default: the `Accept` header.
    #[serde(default)]
    format: Option<Format>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    Json,
    Csv,
}

/// Reads and checks a query.
///
/// # Errors
/// 400 with the column of the mistake.
pub(crate) fn plan(text: &str) -> Result<Arc<Plan>, Error> {
    let wrong = |error: agentsvc_systems::query::QueryError| {
        Error::bad_field("q", format!("q: {error}")).code(error_codes::BAD_QUERY).with("column", error.column)
    };
    prepare(text).map_err(wrong)
}

async fn query(call: Call) -> Result<Response, Error> {
    let QueryParams { q, format } = call.query()?;
    let plan = plan(&q)?;
    let wants_csv = format.map_or_else(|| accepts_csv(call.headers()), |format| format == Format::Csv);
    let answered = call.api.state::<Queries>().run(&call.api.bridge, plan).await?;
    if wants_csv {
        return Ok(csv_response(&answered));
    }
    reply::ok(&AnswerBody::of(&answered, step(&call.api)))
}

/// Is CSV asked for by `Accept`, and not JSON?
fn accepts_csv(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim()).find_map(|kind| match kind {
        "text/csv" => Some(true),
        "application/json" | "*/*" => Some(false),
        _ => None,
    }) == Some(true)
}

fn csv_response(answered: &Answered) -> Response {
    let mut response = reply::bytes(StatusCode::OK, CSV, csv(&answered.found));
    let headers = response.headers_mut();
    headers.insert(X_TOTAL_COUNT, HeaderValue::from(answered.found.total));
    let complete = if answered.found.complete { "true" } else { "false" };
    headers.insert(X_QUERY_COMPLETE, HeaderValue::from_static(complete));
    response
}

async fn show_schema(_call: Call) -> Result<Response, Error> {
    reply::ok(&schema())
}

/// The milliseconds that `every` means, such as `2s`; two seconds when it is left out.
///
/// # Errors
/// 400 for anything that is no duration in [`limit::QUERY_EVERY_MS`].
pub(crate) fn every_ms(every: Option<&str>) -> Result<u64, Error> {
    let Some(text) = every else { return Ok(2_000) };
    let (least, most) = limit::QUERY_EVERY_MS;
    let ms = agentsvc_systems::query::duration_ms(text).filter(|ms| (least..=most).contains(ms));
    ms.ok_or_else(|| {
        let message = format!("every: expected a duration from {least}ms to {}s, such as 2s", most / 1_000);
        Error::bad_field("every", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_is_sent_to_those_who_ask_for_it() {
        let accepts = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(text));
            accepts_csv(&headers)
        };
        assert!(accepts("text/csv") && accepts("text/html, text/csv;q=0.9, */*"));
        assert!(!accepts("application/json, text/csv") && !accepts("*/*") && !accepts(""));
        assert!(!accepts_csv(&HeaderMap::new()));
    }

    #[test]
    fn the_pace_of_a_stream_is_bounded() {
        assert_eq!(every_ms(None).unwrap(), 2_000);
        assert_eq!(every_ms(Some("1m30s")).unwrap(), 90_000);
        for wrong in ["", "2", "100ms", "2h", "-2s", "1s 2s", "now"] {
            assert!(every_ms(Some(wrong)).unwrap_err().message().starts_with("every: "), "{wrong}");
        }
    }
}
