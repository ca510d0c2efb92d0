//! Every usage event as CSV (spec 3, Usage, Export rules). The rows are read from the disk page by page while they are
//! sent, oldest first; the world is not asked.

use std::fmt::Write;
use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::Timestamp;
use agentsvc_components::usage::record::UsageRecord;
use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::http::call::Call;
use crate::http::csv::{CSV, text};
use crate::http::error::Error;
use crate::http::reply::{self, BrokenOff, Response};
use crate::http::route::{Reply, Route};
use crate::usage::days::{DayRange, date_of};
use crate::usage::store::{UsageRange, UsageRow, UsageStore};

/// What an export costs the client's rate budget: it reads much.
const COST: u32 = 10;
/// Events that are read from the disk at once.
const PAGE_EVENTS: usize = 512;
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// The columns. Later releases may append some; the order of these stays (spec 3, Versioning).
const HEADER: &str = "timestamp,agent_id,agent_name,billed_agent_id,provider,model,input_tokens,output_tokens,cost_usd,\
                      tool_calls,latency_ms,user_id,channel,session_id\r\n";

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/usage/export", "Export usage events as CSV, oldest first", |call| Box::pin(export(call)))
        .large()
        .cost(COST)
        .query::<ExportQuery>()
        .replies(&[Reply::plain(200, "one line per model call", "text/csv")])];

/// Filter for events.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ExportQuery {
    /// The first day, `YYYY-MM-DD` in UTC.
    start_date: Option<String>,
    /// The last day.
    end_date: Option<String>,
    /// `csv` (default).
    format: Option<String>,
}

async fn export(call: Call) -> Result<Response, Error> {
    let query: ExportQuery = call.query()?;
    let days = DayRange::read(query.start_date.as_deref(), query.end_date.as_deref())?;
    if query.format.as_deref().is_some_and(|format| format != "csv") {
        return Err(Error::bad_field("format", "format: the only format is csv"));
    }
    let name = match (days.from.map(date_of), days.to.map(date_of)) {
        (None, None) => "usage.csv".to_owned(),
        (Some(from), None) => format!("usage-from-{from}.csv"),
        (None, Some(to)) => format!("usage-to-{to}.csv"),
        (Some(from), Some(to)) => format!("usage-{from}-to-{to}.csv"),
    };
    let range = UsageRange {
        from: Timestamp(days.from.map_or(0, |day| day.saturating_mul(DAY_MS))),
        to: Timestamp(days.to.map_or(i64::MAX, |day| day.saturating_add(1).saturating_mul(DAY_MS))),
        after: None,
        limit: PAGE_EVENTS,
    };
    let content = call.api.service::<dyn UsageStore>()?;
    // The first page is read before the status is sent, so that a store that fails is a proper error.
    let first = page(Arc::clone(&content), range.clone()).await?;
    let next = after(&range, &first);
    let mut text = HEADER.to_owned();
    first.iter().for_each(|row| line(&mut text, &row.record));
    let rest = Rest { content, next };
    let pieces = stream::try_unfold((Some(text), rest), |(text, mut rest)| async move {
        if let Some(text) = text {
            return Ok(Some((Bytes::from(text), (None, rest))));
        }
        let Some(range) = rest.next.take() else { return Ok(None) };
        let rows =
            page(Arc::clone(&rest.content), range.clone()).await.map_err(|error| BrokenOff(error.to_string()))?;
        let mut text = String::new();
        rows.iter().for_each(|row| line(&mut text, &row.record));
        rest.next = after(&range, &rows);
        Ok((!text.is_empty()).then(|| (Bytes::from(text), (None, rest))))
    });
    let mut response = reply::stream(StatusCode::OK, CSV, Box::pin(pieces));
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    if let Ok(disposition) = disposition {
        response.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// What is still to be sent.
struct Rest {
    content: Arc<dyn UsageStore>,
    next: Option<UsageRange>,
}

/// Where the next page begins; `None` behind the last.
fn after(range: &UsageRange, rows: &[UsageRow]) -> Option<UsageRange> {
    let last = rows.last().filter(|_| rows.len() == range.limit)?;
    Some(UsageRange { after: Some(last.key.clone()), ..range.clone() })
}

async fn page(content: Arc<dyn UsageStore>, range: UsageRange) -> Result<Vec<UsageRow>, Error> {
    let rows = spawn_blocking(move || content.usage(&range)).await;
    Ok(rows.map_err(|_| Error::internal("the usage events could not be read"))??)
}

/// One event as a line.
fn line(out: &mut String, event: &UsageRecord) {
    let UsageRecord { at, agent, agent_name, billed, session, channel, call } = event;
    let usage = call.usage;
    let billed = billed.unwrap_or(*agent);
    // Writing to a text never fails.
    let _ = write!(out, "{at},{agent},");
    text(out, agent_name);
    let _ = write!(out, ",{billed},");
    text(out, &call.provider);
    out.push(',');
    text(out, &call.model);
    let _ = write!(out, ",{},{},{:.6},", usage.input_tokens, usage.output_tokens, usage.cost.usd());
    let _ = write!(out, "{},{},,", call.tool_calls, call.latency_ms);
    text(out, channel);
    let _ = write!(out, ",{session}\r\n");
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::Usage;
    use agentsvc_components::usage::CallUse;
    use agentsvc_components::{AgentId, Micros, SessionId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_line_has_every_column() {
        let call = CallUse {
            provider: "openai".into(),
            model: "m".into(),
            usage: Usage { cost: Micros(12_345), ..Usage::of(1, 2) },
            latency_ms: 9,
            tool_calls: 3,
            ..CallUse::default()
        };
        let event = UsageRecord {
            at: Timestamp(0),
            agent: AgentId(Uuid::from_u128(1)),
            agent_name: "=x".into(),
            billed: None,
            session: SessionId(Uuid::from_u128(2)),
            channel: "api".into(),
            call,
        };
        let mut out = String::new();
        line(&mut out, &event);
        let (agent, session) = (event.agent, event.session);
        let expected = format!(
            "1970-01-01T00:00:00.000Z,{agent},\"'=x\",{agent},\"openai\",\"m\",1,2,0.012345,3,9,,\"api\",{session}\r\n"
        );
        assert_eq!(out, expected);
        assert_eq!(out.matches(',').count(), HEADER.matches(',').count());
    }
}
