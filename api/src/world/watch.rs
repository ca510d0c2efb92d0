//! What the API knows to watch the world by: its events, what it takes in memory, and who watches.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::kernel::limit;
use agentsvc_systems::kernel::footprint::{KindFootprint, MeasureWorld};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tracing::Instrument;

use crate::http::api::Api;
use crate::http::bridge::Bridge;
use crate::http::error::Error;
use crate::http::metrics::MetricsText;
use crate::world::event_hub::WorldEvents;

/// Time that a measurement of memory is good for, and how long one is waited for.
const MEASURED_FOR: Duration = Duration::from_secs(1);

/// What the world takes in memory, and when it said so.
type Measured = (Instant, Arc<[KindFootprint]>);

/// See the head of the file.
pub struct WorldWatch {
    /// The last events, and those who watch.
    pub events: WorldEvents,
    /// One permit for each stream of `/api/world/stream` and `/api/world/events`.
    streams: Arc<Semaphore>,
    measured: Arc<Mutex<Option<Measured>>>,
    /// One measurement at a time: a slow world is not asked again while it still owes an answer.
    measuring: Arc<Semaphore>,
}

impl Default for WorldWatch {
    fn default() -> Self {
        Self {
            events: WorldEvents::default(),
            streams: Arc::new(Semaphore::new(limit::WORLD_STREAMS_MAX)),
            measured: Arc::default(),
            measuring: Arc::new(Semaphore::new(1)),
        }
    }
}

impl WorldWatch {
    /// Streams of `/api/world/stream` and `/api/world/events`.
    pub(crate) fn open_streams(&self) -> usize {
        limit::WORLD_STREAMS_MAX - self.streams.available_permits()
    }

    /// A permit for a stream.
    ///
    /// # Errors
    /// 429 when there is none.
    pub(crate) fn stream_permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        permit.map_err(|_| Error::too_many("streams of the world are open", limit::WORLD_STREAMS_MAX))
    }

    /// What the world takes in memory, kind by kind, and whether that is old: the world is asked, but not waited for, and
    /// whoever comes while it is being asked gets the last reading.
    pub(crate) async fn footprint(&self, bridge: &Bridge) -> (Arc<[KindFootprint]>, bool) {
        let known = self.measured.lock().clone();
        if let Some((at, measured)) = &known
            && at.elapsed() < MEASURED_FOR
        {
            return (Arc::clone(measured), false);
        }
        if let Ok(permit) = Arc::clone(&self.measuring).try_acquire_owned() {
            let (bridge, measured) = (bridge.clone(), Arc::clone(&self.measured));
            // Goes on when nobody waits any more: the permit is free when the world has answered, and not before.
            let measure = async move {
                let kinds: Arc<[KindFootprint]> = bridge.ask(MeasureWorld).await.ok()?.into();
                *measured.lock() = Some((Instant::now(), Arc::clone(&kinds)));
                drop(permit);
                Some(kinds)
            };
            if let Ok(Ok(Some(kinds))) = timeout(MEASURED_FOR, tokio::spawn(measure.in_current_span())).await {
                return (kinds, false);
            }
        }
        (known.map_or_else(|| Arc::from([]), |(_, kinds)| kinds), true)
    }
}

/// Its share of `/api/metrics`.
pub(crate) fn gather(api: &Api, out: &mut MetricsText) {
    let help = "Open streams of /api/world/stream and /api/world/events.";
    out.gauge("agentsvc_world_streams", help, api.state::<WorldWatch>().open_streams());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::bridge::bridge;

    #[tokio::test]
    async fn a_slow_world_is_asked_once() {
        let watch = WorldWatch::default();
        let (bridge, intake) = bridge();
        intake.open();
        let others = async {
            while intake.arrivals.is_empty() {
                tokio::task::yield_now().await;
            }
            for _ in 0..3 {
                let (kinds, is_old) = watch.footprint(&bridge).await;
                assert!(kinds.is_empty() && is_old);
            }
            let asked = intake.arrivals.len();
            drop(intake);
            asked
        };
        let ((_, is_old), asked) = tokio::join!(watch.footprint(&bridge), others);
        assert!(is_old);
        assert_eq!((asked, watch.measuring.available_permits()), (1, 1));
    }
}
