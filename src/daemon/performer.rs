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

use agentsvc_api::knowledge::store::KnowledgeStore;
use agentsvc_api::memory::store::MemoryStore;
use agentsvc_api::proactive_memory::store::EntryStore;
use agentsvc_api::session::content::Content;
use agentsvc_components::kernel::effect::AnyEffect;
use arc_swap::ArcSwap;
use tokio::runtime::Handle;

use crate::DOMAINS;
use crate::audit::checkpoint_signer::Seal;
use crate::kernel::effect::in_flight::InFlight;
use crate::kernel::effect::performers::Performers;
use crate::kernel::effect::readers::Readers;
use crate::kernel::effect::{Calls, Outcomes};
use crate::kernel::retention::RetentionClock;
use crate::kernel::store::sweep::Sweep;
use crate::kernel::vault::Vault;
use crate::model::ModelSettings;
use crate::model::call::{Models, ReadUpload};
use crate::model::pace::Pace;
use crate::model::provider::Providers;
use crate::model::sent::SentLog;
use crate::tool::run::ToolRunner;
use crate::tool::toolset::ToolParts;
use crate::turn::stream::Streams;

/// What the performer needs from the rest of the daemon.
pub struct PerformerParts {
    /// The runtime that calls run on.
    pub handle: Handle,
    /// The way back to the world.
    pub outcomes: Outcomes,
    /// The streams of sessions.
    pub streams: Streams,
    /// The store's sweeper.
    pub sweep: Sweep,
    /// The checkpoint signer of the audit trail.
    pub seal_audit: Seal,
    /// The logs that prompts are made of.
    pub content: Arc<dyn Content>,
    /// The memory of agents.
    pub memory: Arc<dyn MemoryStore>,
    /// The memory entries of agents.
    pub entries: Arc<dyn EntryStore>,
    /// The knowledge of agents.
    pub knowledge: Arc<dyn KnowledgeStore>,
    /// The uploads that prompts show.
    pub uploads: ReadUpload,
    /// The providers of models.
    pub providers: Arc<ArcSwap<Providers>>,
    /// Timeouts and retries of model calls.
    pub model: ModelSettings,
    /// What tools need.
    pub tools: ToolParts,
    /// Secrets.
    pub vault: Vault,
}

/// Carries out effects. Cheap to build: threads, clients and connections come with the first call that needs them.
#[derive(Clone)]
pub struct Performer {
    calls: Arc<Calls>,
    performers: Arc<Performers>,
}

impl Performer {
    /// A performer with nothing in flight.
    pub fn new(parts: PerformerParts) -> Self {
        let (in_flight, readers) = (InFlight::default(), Readers::default());
        let calls = Arc::new(Calls { handle: parts.handle, outcomes: parts.outcomes, in_flight, readers });
        let mut performers = Performers::new(Arc::clone(&calls));
        performers.provide::<Sweep>(parts.sweep);
        performers.provide::<Seal>(parts.seal_audit);
        performers.provide::<ReadUpload>(parts.uploads);
        performers.provide(parts.streams);
        performers.provide(parts.content);
        performers.provide(parts.memory);
        performers.provide(parts.entries);
        performers.provide(parts.knowledge);
        performers.provide(parts.providers);
        performers.provide(parts.model);
        performers.provide::<RetentionClock>(parts.tools.settings.get::<RetentionClock>().as_ref().clone());
        performers.provide(parts.tools);
        performers.provide(parts.vault);
        DOMAINS.iter().for_each(|domain| (domain.performers)(&mut performers));
        Self { calls, performers: Arc::new(performers) }
    }

    /// Begins one effect. Never blocks; effects must come in the order of their steps.
    pub fn perform(&self, effect: impl Into<AnyEffect>) {
        self.performers.perform(effect.into());
    }

    /// Tells every call that is out to give up: the world that they are for has ended, and nobody takes what they
    /// bring.
    pub fn end(&self) {
        self.calls.in_flight.abort_all();
    }

    /// How fast each provider of models may be asked, as its answers taught.
    pub fn pace(&self) -> Arc<Pace> {
        Arc::clone(self.performers.part::<Arc<Models>>().drivers.pace())
    }

    /// What model calls sent.
    pub(crate) fn sent(&self) -> Arc<SentLog> {
        Arc::clone(&self.performers.part::<Arc<Models>>().sent)
    }

    /// What runs tools.
    pub(crate) fn tools(&self) -> ToolRunner {
        self.performers.part()
    }

    /// Model and tool calls that have not come back yet.
    pub fn calls_out(&self) -> usize {
        self.calls.in_flight.len()
    }
}
