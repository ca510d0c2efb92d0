//! The fires of a rehearsal: as pages of JSON, and whole as CSV (docs/rehearsal.md, Fires). Read from the disk page by page
//! while they are sent.

use std::fmt::Write;
use std::sync::Arc;

use agentsvc_components::kernel::limit::PAGE_ITEMS_MAX;
use agentsvc_systems::kernel::page::Page;
use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::csv::{CSV, text};
use crate::http::error::Error;
use crate::http::pages::Shape;
use crate::http::reply::{BrokenOff, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};
use crate::rehearsal::routes::blocking;
use crate::rehearsal::runs::{Fire, FirePage, FireRange, OUTCOMES};

/// What a page costs the client's rate budget.
const COST: u32 = 5;
/// The columns. Later releases may append some; the order of these stays.
const HEADER: &str =
    "number,kind,id,name,agent_id,agent_name,nominal_at,fired_at,outcome,queued,count,reason,event\r\n";

const RUNNING: Reply = Reply::error(409, "the rehearsal is still running");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/world/rehearsals/{id}/fires", "List the fires of a rehearsal", |call| Box::pin(fires(call)))
        .large()
        .cost(COST)
        .query::<FireQuery>()
        .replies(&[Reply::json::<Listed>(200, "the fires in order of time"), RUNNING]),
    Route::get("/api/world/rehearsals/{id}/fires.csv", "Export the fires of a rehearsal as CSV", |call| {
        Box::pin(csv(call))
    })
    .large()
    .cost(COST)
    .query::<CsvQuery>()
    .replies(&[Reply::plain(200, "one line per fire", "text/csv"), RUNNING]),
];

/// Filter for fires.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct FireQuery {
    /// Only fires with this outcome.
    outcome: Option<String>,
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

/// Filter for fires.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CsvQuery {
    /// Only fires with this outcome.
    outcome: Option<String>,
}

/// Some fires.
#[derive(JsonSchema, Serialize)]
struct Listed {
    fires: Vec<Line>,
    /// Total number of fires with any outcome.
    total: u64,
}

shape! {
    /// A fire.
    struct Line from fire: Fire {
        let Fire { number, kind, id, name, agent, agent_name, nominal_at, fired_at, outcome, .. } = fire;
    } {
        number: u64 = number,
        /// `schedule`, `cron` or `trigger`.
        kind: &'static str = kind,
        id: Uuid = id,
        name: Option<Box<str>> = name,
        agent_id: Uuid = agent.0,
        agent_name: Box<str> = agent_name,
        /// Slot, or time of the event.
        nominal_at: Moment = Moment(nominal_at),
        /// End time.
        fired_at: Moment = Moment(fired_at),
        outcome: &'static str = outcome,
        /// Whether it waited for the previous run.
        queued: bool = fire.queued,
        /// Number of slots it represents.
        count: u32 = fire.count,
        /// Why no turn was started.
        reason: Option<Box<str>> = fire.reason,
        /// Event kind of a trigger.
        event: Option<&'static str> = fire.event,
    }
}

/// The outcome that a query names.
fn outcome_of(text: Option<&str>) -> Result<Option<&'static str>, Error> {
    let wrong = || Error::bad_field("outcome", format!("outcome: must be one of {}", OUTCOMES.join(", ")));
    text.map(|text| OUTCOMES.into_iter().find(|known| *known == text).ok_or_else(wrong)).transpose()
}

async fn fires(call: Call) -> Result<Response, Error> {
    let id: Uuid = call.id("id")?;
    let FireQuery { outcome, limit, cursor } = call.query()?;
    let (outcome, limit) = (outcome_of(outcome.as_deref())?, lists::limit(limit)?);
    let after = lists::cursor::<u64>(cursor.as_deref())?;
    let call = Arc::new(call);
    lists::answer(limit, after, Shape::of("fires"), move |after, limit| {
        let call = Arc::clone(&call);
        async move {
            let range = FireRange { after: after.unwrap_or_default(), limit, outcome };
            let FirePage { fires, next, total } = page(&call, id, range).await?;
            let items: Vec<Line> = fires.into_iter().map(Line::from).collect();
            Ok(Page { items, next, total: Some(total) })
        }
    })
    .await
}

async fn page(call: &Call, id: Uuid, range: FireRange) -> Result<FirePage, Error> {
    Ok(blocking(call, move |rehearsals| rehearsals.fires(id, range)).await??)
}

async fn csv(call: Call) -> Result<Response, Error> {
    let id: Uuid = call.id("id")?;
    let CsvQuery { outcome } = call.query()?;
    let outcome = outcome_of(outcome.as_deref())?;
    let range = move |after| FireRange { after, limit: PAGE_ITEMS_MAX, outcome };
    // The first page is read before the status is sent, so that what is wrong is a proper error.
    let first = page(&call, id, range(0)).await?;
    let mut lines = HEADER.to_owned();
    first.fires.iter().for_each(|fire| line(&mut lines, fire));
    let state = (Some(lines), first.next, call);
    let pieces = stream::try_unfold(state, move |(ready, next, call)| async move {
        if let Some(lines) = ready {
            return Ok(Some((Bytes::from(lines), (None, next, call))));
        }
        let mut next = next;
        let mut lines = String::new();
        // A page of few outcomes may be empty; an empty piece would say nothing.
        while let Some(after) = next.filter(|_| lines.is_empty()) {
            let more = page(&call, id, range(after)).await.map_err(|error| BrokenOff(error.to_string()))?;
            more.fires.iter().for_each(|fire| line(&mut lines, fire));
            next = more.next;
        }
        Ok((!lines.is_empty()).then(|| (Bytes::from(lines), (None, next, call))))
    });
    let mut response = reply::stream(StatusCode::OK, CSV, Box::pin(pieces));
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"rehearsal-{id}.csv\"")) {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// One fire as a line.
fn line(out: &mut String, fire: &Fire) {
    let name = fire.name.as_deref().unwrap_or_default();
    let (reason, event) = (fire.reason.as_deref().unwrap_or_default(), fire.event.unwrap_or_default());
    // Writing to a text never fails.
    let _ = write!(out, "{},{},{},", fire.number, fire.kind, fire.id);
    text(out, name);
    let _ = write!(out, ",{},", fire.agent);
    text(out, &fire.agent_name);
    let _ = write!(out, ",{},{},{},", fire.nominal_at, fire.fired_at, fire.outcome);
    let _ = write!(out, "{},{},", fire.queued, fire.count);
    text(out, reason);
    let _ = write!(out, ",{event}\r\n");
}

#[cfg(test)]
mod tests {
    use agentsvc_components::{AgentId, Timestamp};

    use super::*;

    #[test]
    fn a_line_has_every_column_and_no_formula() {
        let fire = Fire {
            number: 3,
            kind: "cron",
            id: Uuid::from_u128(1),
            name: Some("=cmd".into()),
            agent: AgentId(Uuid::from_u128(2)),
            agent_name: "a,\"b\"".into(),
            nominal_at: Timestamp(0),
            fired_at: Timestamp(50),
            outcome: "refused",
            queued: true,
            count: 2,
            reason: Some("full".into()),
            event: None,
        };
        let mut out = String::new();
        line(&mut out, &fire);
        let (id, agent) = (fire.id, fire.agent);
        let expected = format!(
            "3,cron,{id},\"'=cmd\",{agent},\"a,\"\"b\"\"\",1970-01-01T00:00:00.000Z,1970-01-01T00:00:00.050Z,refused,true,2,\
             \"full\",\r\n"
        );
        assert_eq!(out, expected);
        assert_eq!(HEADER.matches(',').count(), out.matches(',').count() - 1, "one comma stands in a text");
    }

    #[test]
    fn an_outcome_is_one_of_the_words() {
        assert_eq!(outcome_of(Some("fired")).unwrap(), Some("fired"));
        assert_eq!(outcome_of(None).unwrap(), None);
        assert_eq!(outcome_of(Some("lost")).unwrap_err().status(), StatusCode::BAD_REQUEST);
    }
}
