//! The performer: carries out the effects of a committed step and brings their outcomes back.
//!
//! [`Performer::perform`] is called by the store's writer thread and never blocks. A call's way:
//!
//! ```text
//! writer thread --> reader thread: the log's rows, projected into a prompt --> tokio task: the driver --> outcome
//!               `-> tokio task: the tool -------------------------------------------------------------> outcome
//! ```
//!
//! Every model or tool call brings exactly one outcome back: its own, the abort's, or, when its code panics, an
//! `Internal` failure sent while the stack unwinds. Only a call dropped with the runtime brings none: the process
//! ends, and the next start resumes the turn.

use std::sync::Arc;

use agentsvc_api::session::content::Content;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::turn::effect::Effect;
use agentsvc_components::turn::outcome::OutcomeKind;
use agentsvc_components::turn::stream::StreamItem;
use agentsvc_components::{FileId, SessionId};
use arc_swap::ArcSwap;
use tokio::runtime::Handle;

use crate::kernel::effect::in_flight::InFlight;
use crate::kernel::effect::readers::Readers;
use crate::model::provider::Providers;
use crate::model::{Drivers, ModelSettings};

use crate::kernel::store::sweep::Sweeping;

/// Takes outcomes back to the world.
pub type Outcomes = Arc<dyn Fn(OutcomeKind) + Send + Sync>;
/// Takes stream items to the hub.
pub type Publish = Arc<dyn Fn(StreamItem) + Send + Sync>;
/// Tells whether anyone watches a session now.
pub type Subscribed = Arc<dyn Fn(SessionId) -> bool + Send + Sync>;
/// Erases rows, in its own time, and sends the outcome itself.
pub type Sweep = Arc<dyn Fn(Sweeping) + Send + Sync>;

/// Signs a checkpoint of the audit trail, in its own time.
pub type SealAudit = Arc<dyn Fn(AuditHead) + Send + Sync>;

/// Reads an upload of at most so many bytes; `None` when it is not there. May block.
pub type ReadUpload = Arc<dyn Fn(FileId, u64) -> Option<Vec<u8>> + Send + Sync>;

/// What the performer needs from the rest of the house.
pub struct PerformerParts {
    /// The runtime that calls run on.
    pub handle: Handle,
    /// The way back to the world.
    pub outcomes: Outcomes,
    /// The way to the stream hub.
    pub publish: Publish,
    /// Whether anyone watches a session.
    pub subscribed: Subscribed,
    /// The store's sweeper.
    pub sweep: Sweep,
    /// The notary of the audit trail.
    pub seal_audit: SealAudit,
    /// The logs that prompts are made of.
    pub content: Arc<dyn Content>,
    /// The uploads that prompts show.
    pub uploads: ReadUpload,
    /// The providers of models.
    pub providers: Arc<ArcSwap<Providers>>,
    /// Timeouts and retries of model calls.
    pub model: ModelSettings,
    /// What tools need.
    pub tools: crate::tool::ToolParts,
}

/// What every call shares.
pub(crate) struct Shared {
    pub(crate) parts: PerformerParts,
    pub(crate) drivers: Drivers,
    pub(crate) in_flight: InFlight,
    pub(crate) readers: Readers,
}

/// Carries out effects. Cheap to build: threads, clients and connections come with the first call that needs them.
#[derive(Clone)]
pub struct Performer {
    pub(crate) shared: Arc<Shared>,
}

impl Performer {
    /// A performer with nothing in flight.
    #[must_use]
    pub fn new(parts: PerformerParts) -> Self {
        let drivers = Drivers::new(&parts.model);
        let shared = Shared { parts, drivers, in_flight: InFlight::default(), readers: Readers::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Begins one effect. Never blocks; effects must come in the order of their steps.
    pub fn perform(&self, effect: Effect) {
        match effect {
            Effect::CallModel(call) => crate::model::call::begin(&self.shared, call),
            Effect::Summarize(call) => crate::compaction::begin(&self.shared, call),
            Effect::RunTool(run) => crate::tool::run::begin(&self.shared, run),
            Effect::Abort(attempt) => self.shared.in_flight.abort(attempt),
            Effect::Publish(item) => (self.shared.parts.publish)(item),
            Effect::Sweep(log) => (self.shared.parts.sweep)(Sweeping::Log(log)),
            Effect::SweepAgent(agent) => (self.shared.parts.sweep)(Sweeping::Agent(agent)),
            Effect::TrimTraces(agent) => (self.shared.parts.sweep)(Sweeping::Traces(agent)),
            Effect::SweepUsage(before) => (self.shared.parts.sweep)(Sweeping::Usage(before)),
            Effect::SealAudit(head) => (self.shared.parts.seal_audit)(head),
        }
    }

    /// Tells every call that is out to give up: the world that they are for has ended, and nobody takes what they
    /// bring.
    pub fn end(&self) {
        self.shared.in_flight.abort_all();
    }

    /// How fast each provider of models may be asked, as its answers taught.
    #[must_use]
    pub fn pace(&self) -> &Arc<crate::model::pace::Pace> {
        self.shared.drivers.pace()
    }

    /// Model and tool calls that have not come back yet.
    #[must_use]
    pub fn calls_out(&self) -> usize {
        self.shared.in_flight.len()
    }
}
