//! An orderly stop lets the calls that are out come back and settles them, those of schedules, triggers and workflows too:
//! what has been paid for is kept, and booked at its price.

use std::time::Duration;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::kernel::limit;
use agentsvc_systems::model::Drain;
use agentsvc_systems::turn::DrainCalls;
use agentsvc_systems::world::GetStats;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};

/// The pause between two looks at what is out.
const LOOK_PERIOD: Duration = Duration::from_millis(20);

/// A stop that has begun.
pub(super) struct Stop {
    bridge: Bridge,
    deadline: Instant,
    begun: JoinHandle<()>,
}

impl Stop {
    /// Keeps turns that no client waits for from making more calls, while requests in flight are answered.
    pub(super) fn begin(bridge: &Bridge, runtime: &Runtime) -> Self {
        let deadline = Instant::now() + Duration::from_secs(limit::DRAIN_SECS_MAX);
        let begun = runtime.spawn(drain(bridge.clone(), Drain::Fired));
        Self { bridge: bridge.clone(), deadline, begun }
    }

    /// Lets no more calls out, and waits for those that are, until ten seconds after the stop began.
    pub(super) fn settle(self, runtime: &Runtime) {
        let Self { bridge, deadline, begun } = self;
        let settling = async {
            // The order of the two matters.
            let _ended = begun.await;
            drain(bridge.clone(), Drain::All).await;
            while let Ok(stats) = bridge.ask(GetStats).await
                && stats.calls_out + stats.tools_out > 0
            {
                sleep(LOOK_PERIOD).await;
            }
        };
        let settled = runtime.block_on(async { timeout_at(deadline, settling).await });
        if settled.is_err() {
            tracing::warn!("some model or tool calls did not end in time; the next start resumes their turns");
        }
    }
}

async fn drain(bridge: Bridge, calls: Drain) {
    if let Err(refusal) = bridge.ask(DrainCalls(calls)).await {
        tracing::debug!(%refusal, "no world to drain");
    }
}
