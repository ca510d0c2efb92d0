//! Standing queries: asked again and again, and told when the answer changes (`docs/query.md`).

use std::sync::Arc;
use std::time::Duration;

use agentsvc_systems::query::Plan;
use bytes::Bytes;
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};

use crate::Api;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::sse;
use crate::query::routes::{every_ms, plan};
use crate::query::run::Queries;
use crate::query::shape::{AnswerBody, fingerprint};
use crate::world::live_stats::step;

/// A standing query goes on costing, but is asked for once.
const COST: u32 = 20;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/world/query/stream", "Stream the result of a query whenever it changes", |call| {
        Box::pin(stream_of(call))
    })
    .cost(COST)
    .query::<StreamParams>()
    .replies(&[
        Reply::plain(200, "events `result`, `lagged` and `error`", "text/event-stream"),
        Reply::error(429, "too many query streams are open"),
    ])];

/// A query stream.
#[derive(Deserialize, JsonSchema)]
struct StreamParams {
    /// The query.
    q: String,
    /// Interval, such as `2s`: `500ms` to `1h`.
    #[serde(default)]
    every: Option<String>,
}

/// A standing query between two answers.
struct Standing {
    api: Arc<Api>,
    plan: Arc<Plan>,
    every: Duration,
    due: Instant,
    /// What the client has.
    last: Option<[u8; 32]>,
    /// Askings that were left out since the last answer: the client did not read, or too many queries were under way.
    missed: u64,
    /// The client knows that the world does not answer.
    said_error: bool,
    /// To be sent before anything else.
    next: Option<Bytes>,
    _permit: OwnedSemaphorePermit,
}

async fn stream_of(call: Call) -> Result<Response, Error> {
    let StreamParams { q, every } = call.query()?;
    let plan = plan(&q)?;
    let every = Duration::from_millis(every_ms(every.as_deref())?);
    let permit = call.api.state::<Queries>().stream_permit()?;
    let (api, due) = (Arc::clone(&call.api), Instant::now());
    let standing =
        Standing { api, plan, every, due, last: None, missed: 0, said_error: false, next: None, _permit: permit };
    let events = stream::unfold(standing, |mut standing| async move {
        let wire = standing.next().await;
        Some((wire, standing))
    });
    Ok(sse::response(&call.api.shutdown, events, None))
}

impl Standing {
    /// Waits for the next thing to say.
    async fn next(&mut self) -> Bytes {
        loop {
            if let Some(wire) = self.next.take() {
                return wire;
            }
            self.wait().await;
            if let Some(wire) = self.ask().await {
                return wire;
            }
        }
    }

    /// Waits until the query is to be asked, and counts the times that have passed.
    async fn wait(&mut self) {
        sleep_until(self.due).await;
        let late = Instant::now().duration_since(self.due).as_millis() / self.every.as_millis();
        self.missed += late as u64;
        self.due += self.every * (late as u32 + 1);
    }

    async fn ask(&mut self) -> Option<Bytes> {
        let answered = match self.api.state::<Queries>().run(&self.api.bridge, Arc::clone(&self.plan)).await {
            Ok(answered) => answered,
            // Too many queries are under way: this one has its turn next time.
            Err(error) if error.status() == hyper::StatusCode::TOO_MANY_REQUESTS => {
                self.missed += 1;
                return None;
            }
            // The world is loading, full or gone; it may come back.
            Err(error) => {
                let said = std::mem::replace(&mut self.said_error, true);
                return (!said).then(|| sse::event("error", &json!({"error": error.message()})));
            }
        };
        self.said_error = false;
        let seen: [u8; 32] = Sha256::digest(fingerprint(&answered.found)).into();
        if self.last.replace(seen) == Some(seen) {
            return None;
        }
        let result = sse::event("result", &AnswerBody::of(&answered, step(&self.api)));
        if self.missed == 0 {
            return Some(result);
        }
        self.next = Some(result);
        Some(sse::event("lagged", &json!({"missed": std::mem::take(&mut self.missed)})))
    }
}
