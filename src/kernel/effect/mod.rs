//! What all calls for the outside share: their spans, the calls in flight, and the one outcome that each owes the world.

pub(crate) mod in_flight;
mod job;
pub mod performers;
pub(crate) mod readers;
pub(crate) mod reply;
pub(crate) mod span;

use std::sync::Arc;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::outcome::{AnyOutcome, Outcome};
use in_flight::InFlight;
use readers::Readers;
use reply::Reply;
use tokio::runtime::Handle;

/// Takes outcomes back to the world.
pub type Outcomes = Arc<dyn Fn(AnyOutcome) + Send + Sync>;

/// What every call shares.
pub(crate) struct Calls {
    /// The runtime that calls run on.
    pub(crate) handle: Handle,
    /// The way back to the world.
    pub(crate) outcomes: Outcomes,
    /// The calls that have not come back yet.
    pub(crate) in_flight: InFlight,
    /// The threads that read content.
    pub(crate) readers: Readers,
}

impl Calls {
    /// Registers a call. `on_panic` makes its outcome when its code panics.
    pub(crate) fn enter<O: Outcome>(
        &self,
        attempt: Attempt,
        on_panic: impl FnOnce(Attempt) -> O + Send + Sync + 'static,
    ) -> Reply {
        let on_panic = Box::new(|attempt| on_panic(attempt).into());
        Reply::new(Arc::clone(&self.outcomes), self.in_flight.enter(attempt), on_panic)
    }
}
