//! The performer alone, with a log in memory and everything it says recorded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentsvc::daemon::performer::{Performer, PerformerParts};
use agentsvc::kernel::sandbox::config::ExecPolicy;
use agentsvc::kernel::sandbox::{Commands, Workspaces};
use agentsvc::kernel::settings::Settings;
use agentsvc::kernel::store::sweep::Sweeping;
use agentsvc::kernel::vault::{KeySource, Vault};
use agentsvc::model::ModelSettings;
use agentsvc::model::http::Timeouts;
use agentsvc::model::provider::Providers;
use agentsvc::model::retry::RetryPolicy;
use agentsvc::tool::toolset::{ToolParts, ToolSet};
use agentsvc::turn::stream::Streams;
use agentsvc_api::http::error::ContentError;
use agentsvc_api::knowledge::store::{KnowledgeRow, KnowledgeStore};
use agentsvc_api::memory::store::{MemoryRange, MemoryRow, MemoryStore};
use agentsvc_api::proactive_memory::store::{EntryPage, EntryStore};
use agentsvc_api::session::content::{Content, MessageRange, MessageRow};
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::manifest::{Interned, Manifest, ManifestHash, ModelChoice};
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_components::{AgentId, LogId, SessionId, Timestamp, TurnId};
use agentsvc_systems::injection::InjectionPolicy;
use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use uuid::Uuid;

/// How long the performer may take on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(180);

pub(crate) const KEY: &str = "hunter2-hunter2-hunter2";
pub(crate) const SESSION: SessionId = SessionId(Uuid::from_u128(3));

pub(crate) fn environment(name: &str) -> Option<String> {
    (name == "SCRIPTED_KEY").then(|| KEY.to_owned())
}

/// The known providers, where manifests may name the keys of the tests.
fn providers() -> Providers {
    let variables = ["SCRIPTED_KEY", "MISSING_KEY"].map(Box::from);
    Providers::default().with_environment(environment).naming(&variables, ModelChoice::default())
}

/// A log in memory.
pub(crate) enum Log {
    Says(Vec<(Role, String)>),
    Broken,
    Panics,
}

/// No agent remembers anything.
struct NoMemory;

impl MemoryStore for NoMemory {
    fn memory(&self, _: AgentId, _: &str) -> Result<Option<MemoryRecord>, ContentError> {
        Ok(None)
    }

    fn memories(&self, _: AgentId, _: &MemoryRange) -> Result<Vec<MemoryRow>, ContentError> {
        Ok(Vec::new())
    }
}

impl EntryStore for NoMemory {
    fn entry(&self, _: AgentId, _: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError> {
        Ok(None)
    }

    fn owner(&self, _: MemoryEntryId) -> Result<Option<AgentId>, ContentError> {
        Ok(None)
    }

    fn entries(
        &self,
        _: Option<AgentId>,
        _: Option<(AgentId, MemoryEntryId)>,
        _: usize,
    ) -> Result<EntryPage, ContentError> {
        Ok(EntryPage::default())
    }

    fn of_user(&self, _: &str, _: Option<(AgentId, MemoryEntryId)>, _: usize) -> Result<EntryPage, ContentError> {
        Ok(EntryPage::default())
    }
}

impl KnowledgeStore for NoMemory {
    fn value(&self, _: &[u8]) -> Result<Option<Vec<u8>>, ContentError> {
        Ok(None)
    }

    fn rows(&self, _: &[u8], _: Option<&[u8]>, _: usize) -> Result<Vec<KnowledgeRow>, ContentError> {
        Ok(Vec::new())
    }
}

impl Content for Log {
    fn messages(&self, _: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
        let limit = limit::PROMPT_MESSAGES_MAX;
        assert_eq!(range, MessageRange::NewestSince { from: 0, ordinal: 5, limit });
        let said = match self {
            Self::Says(said) => said,
            Self::Broken => return Err(ContentError::Failed("a bad disk".to_owned())),
            Self::Panics => panic!("as the test wants it"),
        };
        let row = |(index, (role, text)): (u32, &(Role, String))| MessageRow {
            ordinal: 5,
            index,
            record: MessageRecord {
                turn: turn(),
                role: *role,
                blocks: vec![Block::Text { text: text.clone() }],
                created_at: Timestamp(0),
                usage: None,
                model: None,
                stopped: false,
                repeats: None,
            },
        };
        Ok((0..).zip(said).map(row).collect())
    }

    fn result(&self, _: LogId, _: u32, _: u32) -> Result<Option<String>, ContentError> {
        Ok(None)
    }

    fn summary(&self, _: LogId, _: u32) -> Result<Option<SummaryRecord>, ContentError> {
        Ok(None)
    }

    fn summaries(&self, _: LogId) -> Result<Vec<SummaryRecord>, ContentError> {
        Ok(Vec::new())
    }
}

pub(crate) fn turn() -> TurnId {
    TurnId(Uuid::from_u128(2))
}

pub(crate) fn attempt() -> Attempt {
    Attempt::of(turn(), 1)
}

/// The performer, with what it says recorded.
pub(crate) struct Harness {
    pub(crate) performer: Performer,
    pub(crate) outcomes: mpsc::UnboundedReceiver<AnyOutcome>,
    pub(crate) stream: mpsc::UnboundedReceiver<StreamItem>,
    pub(crate) swept: Arc<Mutex<Vec<Sweeping>>>,
    pub(crate) watched: Arc<AtomicBool>,
    pub(crate) manifest: Manifest,
    pub(crate) model: ModelChoice,
}

impl Harness {
    pub(crate) fn new(base_url: &str) -> Self {
        Self::with_log(base_url, Log::Says(vec![(Role::User, "question".to_owned())]))
    }

    pub(crate) fn with_log(base_url: &str, log: Log) -> Self {
        Self::with_settings(base_url, log, quick())
    }

    /// One that waits a second for a piece: long enough for a busy machine to take the request.
    pub(crate) fn impatient(base_url: &str) -> Self {
        let timeouts = Timeouts { read: Duration::from_secs(1), ..Timeouts::default() };
        let log = Log::Says(vec![(Role::User, "question".to_owned())]);
        Self::with_settings(base_url, log, ModelSettings { timeouts, ..quick() })
    }

    pub(crate) fn with_settings(base_url: &str, log: Log, model_settings: ModelSettings) -> Self {
        let (outcome_sender, outcomes) = mpsc::unbounded_channel();
        let (stream_sender, stream) = mpsc::unbounded_channel();
        let (swept, watched): (Arc<Mutex<Vec<Sweeping>>>, Arc<AtomicBool>) = Default::default();
        let (sweep_to, watched_by) = (Arc::clone(&swept), Arc::clone(&watched));
        agentsvc::install();
        let performer = Performer::new(PerformerParts {
            handle: tokio::runtime::Handle::current(),
            outcomes: Arc::new(move |outcome| drop(outcome_sender.send(outcome))),
            streams: Streams {
                publish: Arc::new(move |item| drop(stream_sender.send(item))),
                subscribed: Arc::new(move |session| session == SESSION && watched_by.load(Ordering::Relaxed)),
            },
            sweep: Arc::new(move |what| sweep_to.lock().expect("no test panics in here").push(what)),
            seal_audit: Arc::new(|_| ()),
            content: Arc::new(log),
            memory: Arc::new(NoMemory),
            entries: Arc::new(NoMemory),
            knowledge: Arc::new(NoMemory),
            uploads: Arc::new(|_, _| None),
            providers: Arc::new(ArcSwap::from_pointee(providers())),
            model: model_settings,
            tools: ToolParts {
                set: ToolSet::built_in(),
                settings: Settings::default(),
                bridge: agentsvc_api::http::bridge::bridge().0,
                workspaces: Workspaces::new(std::env::temp_dir().join("agentsvc-no-workspaces")),
                web: agentsvc::kernel::egress::Web::default(),
                commands: Commands::new(ExecPolicy::default(), Vec::new(), Vec::new()),
                injection: InjectionPolicy::default(),
            },
            vault: Vault::new(std::env::temp_dir().join("agentsvc-no-vault"), KeySource::File),
        });
        let model = ModelChoice {
            provider: "scripted".into(),
            model: "m-1".into(),
            base_url: Some(base_url.into()),
            api_key_env: Some("SCRIPTED_KEY".into()),
            ..ModelChoice::default()
        };
        let manifest = Manifest { system_prompt: "Be brief.".into(), ..Manifest::default() };
        Self { performer, outcomes, stream, swept, watched, manifest, model }
    }

    pub(crate) fn call(&self, streaming: bool) {
        self.performer.perform(ModelCall {
            goals: None,
            recall: None,
            attempt: attempt(),
            agent: AgentId(Uuid::from_u128(1)),
            holder: Holder::Family(AgentId(Uuid::from_u128(1))),
            agent_name: "ada".into(),
            session: SESSION,
            log: LogId(7),
            ordinal: 5,
            manifest: Arc::new(Interned { hash: ManifestHash([0; 32]), manifest: self.manifest.clone() }),
            model: self.model.clone(),
            compacted: 0,
            request: None,
            streaming,
            answer_tokens_max: None,
        });
    }

    pub(crate) async fn outcome(&mut self) -> AnyOutcome {
        let outcome = tokio::time::timeout(WAIT_MAX, self.outcomes.recv()).await;
        outcome.expect("the call comes back").expect("the performer lives")
    }

    pub(crate) async fn end(&mut self) -> ModelEnd {
        let ModelOutcome(of, end) = *self.outcome().await.take().expect("a model's outcome");
        assert_eq!(of, attempt());
        end
    }

    pub(crate) async fn answer(&mut self) -> ModelAnswer {
        match self.end().await {
            ModelEnd::Answered(answer) => answer,
            other => panic!("no answer: {other:?}"),
        }
    }

    pub(crate) async fn failure(&mut self) -> ModelFailure {
        match self.end().await {
            ModelEnd::Failed(failure) => failure,
            other => panic!("no failure: {other:?}"),
        }
    }

    pub(crate) async fn aborted(&mut self) -> ModelAnswer {
        match self.end().await {
            ModelEnd::Aborted(answer) => answer,
            other => panic!("not aborted: {other:?}"),
        }
    }

    pub(crate) async fn next_event(&mut self) -> StreamEvent {
        let item = tokio::time::timeout(WAIT_MAX, self.stream.recv()).await;
        let item = item.expect("an event comes").expect("the performer lives");
        assert_eq!((item.session, item.turn), (SESSION, turn()));
        item.event
    }

    /// Every event so far.
    pub(crate) fn events(&mut self) -> Vec<StreamEvent> {
        std::iter::from_fn(|| self.stream.try_recv().ok()).map(|item| item.event).collect()
    }
}

/// Retries without waits to speak of.
pub(crate) fn quick() -> ModelSettings {
    let retry = RetryPolicy {
        attempts_max: 4,
        wait_base: Duration::from_millis(1),
        wait_max: Duration::from_millis(2),
        total_max: Duration::from_secs(300),
    };
    ModelSettings { retry, timeouts: Timeouts::default() }
}

pub(crate) fn chunk(text: &str) -> StreamEvent {
    StreamEvent::Chunk { content: text.to_owned() }
}

pub(crate) fn calls(answer: &ModelAnswer) -> Vec<(&str, &str, &str)> {
    let calls = answer.blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some((call.id.as_str(), call.name.as_str(), call.input.as_str())),
        _ => None,
    });
    calls.collect()
}
