//! What happens in the world, as it becomes durable (`docs/world.md`).

use agentsvc_components::AgentId;
use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::kernel::limit;
use agentsvc_systems::event::unknown_kind;
use bytes::Bytes;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists::{self, list_schema};
use crate::http::pages::Shape;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::sse;
use crate::world::event_hub::{EventCursor, EventWatch, Told, Wire};
use crate::world::watch::WorldWatch;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/world/events", "Stream durable events", |call| Box::pin(events(call)))
        .query::<EventsQuery>()
        .replies(&[
            Reply::plain(200, "events `event` and `lagged`", "text/event-stream"),
            Reply::error(429, "too many streams are open"),
        ]),
    Route::get("/api/events", "List recent events", |call| Box::pin(list(call)))
        .large()
        .query::<RecentEventsQuery>()
        .replies(&[Reply::json::<EventList>(200, "the latest stored events, at most 200, newest first")]),
];

/// Filter for recent events.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct RecentEventsQuery {
    /// Only these kinds, separated by commas.
    kind: Option<String>,
    /// Only events about this agent.
    agent_id: Option<Uuid>,
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page. A restart of the daemon makes it invalid.
    cursor: Option<String>,
}

list_schema! {
    /// A list of events.
    EventList {
        events: Wire<'static>,
        /// Number of stored events that match.
        total: u64
    }
}

async fn list(call: Call) -> Result<Response, Error> {
    let RecentEventsQuery { kind, agent_id, limit, cursor } = call.query()?;
    let filter = Filter::read(kind.as_deref(), agent_id)?;
    let (limit, after) = (lists::limit(limit)?, lists::cursor::<EventCursor>(cursor.as_deref())?);
    let world = call.api.state::<WorldWatch>();
    lists::answer(limit, after, Shape::of("events"), move |after, limit| {
        let page = world.events.recent(after, limit, |event| filter.wants(event));
        let restarted = "cursor: the daemon was restarted since; list the events from the start";
        std::future::ready(page.ok_or_else(|| Error::bad_field("cursor", restarted)))
    })
    .await
}

/// Filter for events.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct EventsQuery {
    /// Only these kinds, separated by commas.
    kind: Option<String>,
    /// Only events about this agent.
    agent_id: Option<Uuid>,
    /// Number of stored events to send first. Default: all.
    last: Option<usize>,
}

/// Which events a watcher wants.
struct Filter {
    /// Empty means all.
    kinds: Vec<EventKind>,
    agent: Option<AgentId>,
}

impl Filter {
    fn read(kind: Option<&str>, agent_id: Option<Uuid>) -> Result<Self, Error> {
        let words = kind.iter().flat_map(|kinds| kinds.split(',')).map(str::trim).filter(|word| !word.is_empty());
        let kinds = words.map(|word| {
            EventKind::parse(word).ok_or_else(|| Error::bad_field("kind", format!("kind: {}", unknown_kind(word))))
        });
        Ok(Self { kinds: kinds.collect::<Result<_, _>>()?, agent: agent_id.map(AgentId) })
    }

    fn wants(&self, event: &Event) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&event.kind()))
            && (self.agent.is_none() || self.agent == event.agent())
    }
}

/// A watcher.
struct Watcher {
    watch: EventWatch,
    filter: Filter,
    _permit: OwnedSemaphorePermit,
}

async fn events(call: Call) -> Result<Response, Error> {
    let EventsQuery { kind, agent_id, last } = call.query()?;
    let filter = Filter::read(kind.as_deref(), agent_id)?;
    let world = call.api.state::<WorldWatch>();
    let permit = world.stream_permit()?;
    // One that comes back has seen everything up to here.
    let seen = call.headers().get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    let watch = world.events.watch(seen, last.unwrap_or(limit::WORLD_EVENTS_KEPT));
    let events = stream::unfold(Watcher { watch, filter, _permit: permit }, |mut watcher| async move {
        let wire = watcher.next().await?;
        Some((wire, watcher))
    });
    Ok(sse::response(&call.api.shutdown, events, None))
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.watch.next().await? {
                Told::Event(kept) if self.filter.wants(&kept.happened.event) => return Some(kept.wire()),
                Told::Event(_) => {}
                Told::Lagged(missed) => return Some(sse::event("lagged", &json!({"missed": missed}))),
                Told::Restarted(missed) => {
                    return Some(sse::event("lagged", &json!({"missed": missed, "restarted": true})));
                }
            }
        }
    }
}
