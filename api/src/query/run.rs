//! Queries over the world, carried out in short looks through the bridge; a bounded number of them at once.

use std::sync::Arc;
use std::time::Duration;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::kernel::limit;
use agentsvc_systems::query::{Found, Look, Plan, Scan};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::http::api::Api;
use crate::http::bridge::Bridge;
use crate::http::domain::Queue;
use crate::http::error::Error;
use crate::http::metrics::MetricsText;

/// How many run, and how many stand.
#[derive(Debug)]
pub(crate) struct Queries {
    /// One permit for each query that may be carried out.
    runs: Arc<Semaphore>,
    /// One permit for each standing query.
    streams: Arc<Semaphore>,
}

impl Default for Queries {
    fn default() -> Self {
        let permits = |most| Arc::new(Semaphore::new(most));
        Self { runs: permits(limit::QUERIES_MAX), streams: permits(limit::QUERY_STREAMS_MAX) }
    }
}

/// An answer and how long it took.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) found: Found,
    pub(crate) took: Duration,
}

impl Queries {
    /// Running queries.
    pub(crate) fn running(&self) -> usize {
        limit::QUERIES_MAX - self.runs.available_permits()
    }

    /// Standing queries.
    pub(crate) fn standing(&self) -> usize {
        limit::QUERY_STREAMS_MAX - self.streams.available_permits()
    }

    /// A permit for a standing query.
    ///
    /// # Errors
    /// 429 when there is none.
    pub(crate) fn stream_permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        permit.map_err(|_| Error::too_many("query streams are open", limit::QUERY_STREAMS_MAX))
    }

    /// Carries a query out.
    ///
    /// # Errors
    /// 429 when [`limit::QUERIES_MAX`] are under way; 503 when the world takes no commands, or is another one before the end.
    pub(crate) async fn run(&self, bridge: &Bridge, plan: Arc<Plan>) -> Result<Answered, Error> {
        let permit = Arc::clone(&self.runs).try_acquire_owned();
        let permit = permit.map_err(|_| Error::too_many("queries are running", limit::QUERIES_MAX))?;
        // Its places in the indexes of one world mean nothing in another.
        let bridge = bridge.of_this_world();
        let started = Instant::now();
        let deadline = started + Duration::from_millis(limit::QUERY_MS_MAX);
        let mut scan = Box::new(Scan::new(plan));
        while !scan.is_done() && Instant::now() < deadline {
            scan = bridge.ask(Look(scan)).await?;
        }
        // Sorting and summing up is done on what is bounded, but may take a while. The permit is held until it is done, also
        // when the client goes meanwhile.
        let finish = move || {
            let found = scan.finish();
            drop(permit);
            found
        };
        let found = spawn_blocking(finish).await.map_err(|error| {
            tracing::error!(%error, "a query was interrupted");
            Error::internal("the query was interrupted; see the daemon's log for the reason")
        })?;
        Ok(Answered { found, took: started.elapsed() })
    }
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let queries = api.state::<Queries>();
    out.gauge("agentsvc_queries", "Running queries.", queries.running());
    out.gauge("agentsvc_query_streams", "Open query streams.", queries.standing());
}

/// Its queues.
pub(crate) fn queues(api: &Api) -> Vec<Queue> {
    let queries = api.state::<Queries>();
    vec![
        Queue::new("queries", "queries", queries.running(), Some(limit::QUERIES_MAX)),
        Queue::new("query_streams", "streams", queries.standing(), Some(limit::QUERY_STREAMS_MAX)),
    ]
}

#[cfg(test)]
mod tests {
    use agentsvc_systems::query::prepare;

    use super::*;
    use crate::http::bridge::bridge;

    #[tokio::test]
    async fn so_many_queries_are_under_way_and_the_next_is_told_to_come_back() {
        let (bridge, intake) = bridge();
        intake.open();
        let (queries, plan) = (Arc::new(Queries::default()), prepare("agents select name").unwrap());
        let asked: Vec<_> = (0..limit::QUERIES_MAX)
            .map(|_| {
                let (queries, bridge, plan) = (Arc::clone(&queries), bridge.clone(), Arc::clone(&plan));
                tokio::spawn(async move { queries.run(&bridge, plan).await.is_ok() })
            })
            .collect();
        while queries.running() < limit::QUERIES_MAX {
            tokio::task::yield_now().await;
        }
        let refused = queries.run(&bridge, Arc::clone(&plan)).await.unwrap_err();
        assert_eq!(refused.status(), hyper::StatusCode::TOO_MANY_REQUESTS);
        // A query that breaks off gives its permit back.
        drop(intake);
        for asked in asked {
            assert!(!asked.await.unwrap(), "its world has gone");
        }
        assert_eq!(queries.running(), 0);
    }
}
