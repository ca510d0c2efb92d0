//! Comms events as they become durable. The list of the world has them too, so that a client that comes back, also after a
//! restart, and one that was too slow get what they missed from there.

use std::collections::VecDeque;
use std::sync::Arc;

use agentsvc_components::comms::CommsEventId;
use agentsvc_systems::comms::limits::COMMS_EVENTS_LISTED_MAX;
use agentsvc_systems::comms::{ListCommsEvents, Noted};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use uuid::Uuid;

use super::hub::CommsHub;
use super::routes::CommsEventItem;
use crate::http::api::Api;
use crate::http::bridge::Bridge;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::metrics::MetricsText;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::sse;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/comms/events/stream", "Stream comms events", |call| Box::pin(events(call))).replies(&[
        Reply::plain(
            200,
            "unnamed events, one comms event each; `lagged` when some that the client missed are no longer kept",
            "text/event-stream",
        ),
        Reply::error(429, "too many streams are open"),
    ])];

/// A client that watches.
struct Watcher {
    bridge: Bridge,
    live: Receiver<Arc<Noted>>,
    /// The last event that it got, or has from before.
    seen: Option<CommsEventId>,
    /// The list of the world is to be read from there on.
    is_behind: bool,
    ready: VecDeque<Bytes>,
    _permit: OwnedSemaphorePermit,
}

async fn events(call: Call) -> Result<Response, Error> {
    let hub = call.api.state::<CommsHub>();
    let seen = call.headers().get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    let seen = seen.map(|id| id.parse::<Uuid>().map(CommsEventId)).transpose();
    let seen = seen.map_err(|_| Error::bad_field("Last-Event-ID", "Last-Event-ID must be the id of a comms event"))?;
    let permit = hub.stream_permit()?;
    let watcher = Watcher {
        bridge: call.api.bridge.clone(),
        // Before the list is read, so that nothing is missed between.
        live: hub.subscribe(),
        seen,
        is_behind: seen.is_some(),
        ready: VecDeque::new(),
        _permit: permit,
    };
    let events = stream::unfold(watcher, |mut watcher| async move {
        let wire = watcher.next().await?;
        Some((wire, watcher))
    });
    Ok(sse::response(&call.api.shutdown, events, None))
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(wire) = self.ready.pop_front() {
                return Some(wire);
            }
            if self.is_behind {
                self.catch_up().await?;
                continue;
            }
            match self.live.recv().await {
                Ok(noted) => self.take(&noted),
                Err(RecvError::Lagged(_)) => self.is_behind = true,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Reads a page of what it missed. `None` when the world is gone: the client comes back.
    async fn catch_up(&mut self) -> Option<()> {
        let from_start = CommsEventId(Uuid::nil());
        let after = Some(self.seen.unwrap_or(from_start));
        let missed = self.bridge.ask(ListCommsEvents { after, limit: COMMS_EVENTS_LISTED_MAX }).await.ok()?;
        if missed.is_cut && self.seen.is_some() {
            self.ready.push_back(sse::event("lagged", &serde_json::json!({})));
        }
        self.is_behind = missed.events.len() == COMMS_EVENTS_LISTED_MAX;
        missed.events.iter().for_each(|noted| self.take(noted));
        Some(())
    }

    fn take(&mut self, noted: &Noted) {
        if self.seen.is_none_or(|seen| noted.0 > seen) {
            self.seen = Some(noted.0);
            let mut wire = format!("id: {}\n", noted.0).into_bytes();
            wire.extend_from_slice(&sse::data(&CommsEventItem::from(noted.clone())));
            self.ready.push_back(wire.into());
        }
    }
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let help = "Open streams of /api/comms/events/stream.";
    out.gauge("agentsvc_comms_streams", help, api.state::<CommsHub>().open_streams());
}
