//! Vectors that a provider makes: each call is reserved at everybody's budget and is on its usage, and a provider that fails is
//! left alone for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_components::usage::{CallEnd, CallUse, TokensMax};
use agentsvc_components::{Actor, AgentId, Refusal};
use agentsvc_systems::budget::ReserveProbe;
use agentsvc_systems::prompt::text_tokens;
use agentsvc_systems::usage::NoteModelCall;
use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::cache::Cache;
use super::circuit::Circuit;
use super::normalise;
use crate::memory_index::config::Remote;
use crate::model::embeddings::{Asked, Embedded, Embeddings, is_refused};
use crate::model::error::CallError;
use crate::model::http::Timeouts;
use crate::model::metered;
use crate::model::provider::{Providers, Target};

/// What the usage events of embedding calls name as their channel.
const CHANNEL: &str = "memory";
/// How long the provider may take.
const TIMEOUTS: Timeouts =
    Timeouts { connect: Duration::from_secs(5), read: Duration::from_secs(30), total: Duration::from_secs(60) };
/// Queries that are embedded at once. More: they are answered by words.
const QUERIES_MAX: usize = 8;
/// How long a provider is left alone that a key or a setting keeps from answering.
const SETTINGS_PAUSE: Duration = Duration::from_secs(60);
/// By which part of it the mean of latencies sinks with each query that is not asked.
const LATENCY_PARTS: u64 = 16;
/// Bytes of the texts of one call, where the context of the model does not say less.
const CALL_BYTES_MAX: usize = 256 << 10;
/// Embedded where a text was refused, to see whether any is taken.
const PROBE: &str = "ok";

/// Why there are no vectors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Unembedded {
    /// The provider is left alone for so long.
    Paused(Duration),
    /// The model takes none of these texts as they are.
    Refused,
}

/// What is embedded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A query, which counts as a call of the agent that it is about, where it is about one.
    Query(Option<AgentId>),
    /// Pieces of entries of any agents.
    Entries,
}

/// What asks a provider.
pub(crate) trait Provider: Send + Sync {
    /// Where calls go; reads keys from the disk. Blocks.
    ///
    /// # Errors
    /// There is no key, or the provider is not known.
    fn target(&self) -> Result<Target, CallError>;

    /// Texts of one call at most.
    fn texts_max(&self) -> usize;

    /// Asks once, within a budget.
    fn ask<'a>(&'a self, target: &'a Target, texts: &'a [String], by: By) -> BoxFuture<'a, Asking>;
}

/// What came of asking.
pub(crate) type Asking = Result<Embedded, AskError>;

/// Why a call brought nothing.
#[derive(Clone, Debug)]
pub(crate) enum AskError {
    /// A budget has no room for it, or the world is not there.
    World(Refusal),
    /// The provider failed.
    Call(CallError),
}

/// What it needs of the daemon.
pub(crate) struct RemoteParts {
    /// The providers of models.
    pub(crate) providers: Arc<ArcSwap<Providers>>,
    /// The way into the world.
    pub(crate) bridge: Bridge,
}

/// The provider that is configured.
pub(crate) struct Configured {
    config: Remote,
    parts: RemoteParts,
    embeddings: Embeddings,
}

impl Configured {
    /// Nothing is opened yet.
    pub(crate) fn new(config: Remote, parts: RemoteParts) -> Self {
        Self { config, parts, embeddings: Embeddings::new(TIMEOUTS) }
    }

    async fn metered(&self, target: &Target, texts: &[String], by: By) -> Asking {
        let world = self.parts.bridge.acting_as(Actor::System);
        let (provider, model) = (target.provider.clone(), target.model.clone());
        let (agent, is_query) = match by {
            By::Query(agent) => (agent, true),
            By::Entries => (None, false),
        };
        let reserve = ReserveProbe { agent, channel: CHANNEL.into(), provider, model, answer_tokens_max: 0 };
        let grant = world.ask(reserve).await.map_err(AskError::World)?;
        let begun = Instant::now();
        let asked = Asked { texts, is_query, dimensions: self.config.dimensions };
        let answer = self.embeddings.ask(self.config.form, target, asked).await;
        let bytes: usize = texts.iter().map(String::len).sum();
        let used = CallUse {
            provider: target.provider.clone(),
            model: target.model.clone(),
            usage: Usage::of(tokens(&answer, bytes), 0),
            // A token has at least a byte; some providers add a few to each text.
            tokens_max: Some(TokensMax { input: (bytes + 64 * texts.len()) as u64, output: Some(0) }),
            latency_ms: u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX),
            end: if answer.is_ok() { CallEnd::Answered } else { CallEnd::Failed },
            ..CallUse::default()
        };
        let note = NoteModelCall { channel: CHANNEL.into(), grant: Some(grant), used };
        let _later = metered::settle(&world, note).await;
        answer.map_err(AskError::Call)
    }
}

/// What a call is taken to have used: what the provider says, else by the size of the texts where it may have read them.
fn tokens(answer: &Result<Embedded, CallError>, bytes: usize) -> u64 {
    let estimated = text_tokens(bytes);
    match answer {
        Ok(embedded) => embedded.tokens.unwrap_or(estimated),
        Err(error) if matches!(error.code, FailureCode::ProviderTimeout | FailureCode::ProviderProtocol) => estimated,
        Err(_) => 0,
    }
}

impl Provider for Configured {
    fn target(&self) -> Result<Target, CallError> {
        let (provider, model) = (self.config.provider.into(), self.config.model.clone());
        let choice = ModelChoice { provider, model, ..ModelChoice::default() };
        let providers = self.parts.providers.load_full();
        match &self.config.api_key_env {
            Some(variable) => providers.configured_target(&choice, variable),
            None => providers.target(&choice),
        }
    }

    fn texts_max(&self) -> usize {
        self.config.form.texts_max()
    }

    fn ask<'a>(&'a self, target: &'a Target, texts: &'a [String], by: By) -> BoxFuture<'a, Asking> {
        Box::pin(self.metered(target, texts, by))
    }
}

/// Makes vectors by a provider.
pub(crate) struct RemoteEmbedder {
    provider: Box<dyn Provider>,
    handle: Handle,
    circuit: Circuit,
    queries: Arc<Semaphore>,
    /// Milliseconds that queries take, as a moving mean.
    latency: AtomicU64,
    known: Mutex<Cache>,
}

impl RemoteEmbedder {
    /// Nothing is asked yet.
    pub(crate) fn new(provider: Box<dyn Provider>, handle: Handle) -> Arc<Self> {
        let queries = Arc::new(Semaphore::new(QUERIES_MAX));
        Arc::new(Self {
            provider,
            handle,
            circuit: Circuit::default(),
            queries,
            latency: AtomicU64::new(0),
            known: Mutex::default(),
        })
    }

    /// Why the provider is left alone, or failed the last time.
    pub(super) fn why(&self) -> Option<String> {
        self.circuit.why()
    }

    /// What it answered cannot be used. It is asked again after a pause, which grows to hours.
    pub(super) fn useless(&self, why: &str) {
        self.circuit.useless(Instant::now(), why);
    }

    /// What it answered was stored.
    pub(super) fn stored(&self) {
        self.circuit.stored();
    }

    /// How long the provider is still to be left alone.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.circuit.pause(Instant::now())
    }

    /// The vector of a query about this agent; `None` when it does not come within `longest`. What comes later is kept for the next time. Blocks.
    pub(super) fn query(self: &Arc<Self>, agent: Option<AgentId>, text: &str, longest: Duration) -> Option<Arc<[f32]>> {
        if let Some(known) = self.known.lock().get(text) {
            return Some(known);
        }
        if self.pause().is_some() || longest.is_zero() {
            return None;
        }
        if self.is_too_slow(longest) {
            return None;
        }
        let permit = Arc::clone(&self.queries).try_acquire_owned().ok()?;
        let (sender, answer) = sync_channel(1);
        let (of, text) = (Arc::clone(self), text.to_owned());
        self.handle.spawn(async move {
            let (texts, begun) = ([text], Instant::now());
            if let Ok(vectors) = of.call(&texts, By::Query(agent)).await
                && let Some(vector) = vectors.into_iter().next()
            {
                of.took(begun.elapsed());
                let vector: Arc<[f32]> = vector.into();
                of.known.lock().put(&texts[0], Arc::clone(&vector));
                let _gone = sender.try_send(vector);
            }
            drop(permit);
        });
        answer.recv_timeout(longest).ok()
    }

    /// Would the answer come too late? It would be waited for, and paid, for nothing. Each time that it is not asked, the provider
    /// is taken to be a little faster, so that it is tried again.
    pub(super) fn is_too_slow(&self, longest: Duration) -> bool {
        let latency = self.latency.load(Ordering::Acquire);
        let is_slow = u128::from(latency) > longest.as_millis();
        if is_slow {
            self.latency.store(latency - latency.div_ceil(LATENCY_PARTS), Ordering::Release);
        }
        is_slow
    }

    /// A query took so long.
    pub(super) fn took(&self, time: Duration) {
        let took = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let before = self.latency.load(Ordering::Acquire);
        let mean = if before == 0 { took } else { before.midpoint(took) };
        self.latency.store(mean, Ordering::Release);
    }

    /// The vectors of pieces of entries, in their order. Blocks.
    ///
    /// # Errors
    /// [`Unembedded`].
    pub(super) fn documents(self: &Arc<Self>, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Unembedded> {
        if let Some(pause) = self.pause() {
            return Err(Unembedded::Paused(pause));
        }
        let (sender, answer) = sync_channel(1);
        let of = Arc::clone(self);
        self.handle.spawn(async move {
            let _gone = sender.try_send(of.call(&texts, By::Entries).await);
        });
        // The process ends.
        answer.recv().unwrap_or(Err(Unembedded::Paused(SETTINGS_PAUSE)))
    }

    /// Texts of one call at most.
    pub(super) fn texts_max(&self) -> usize {
        self.provider.texts_max()
    }

    /// Bytes of the texts of one call.
    pub(super) fn call_bytes_max(&self) -> usize {
        let context = self.provider.target().map_or(usize::MAX, |target| target.context_tokens as usize);
        context.min(CALL_BYTES_MAX)
    }

    async fn call(self: &Arc<Self>, texts: &[String], by: By) -> Result<Vec<Vec<f32>>, Unembedded> {
        let asked = match self.target().await {
            Ok(target) => match self.provider.ask(&target, texts, by).await {
                // The budget of the agent or of its user may be used up, which is no matter of the others.
                Err(AskError::World(_)) if matches!(by, By::Query(Some(_))) => return Err(Unembedded::Refused),
                Err(AskError::Call(error)) if is_refused(&error) && self.takes_others(&target).await => {
                    return Err(Unembedded::Refused);
                }
                asked => asked,
            },
            Err(error) => Err(AskError::Call(error)),
        };
        match asked {
            Ok(Embedded { mut vectors, .. }) => {
                self.circuit.answered();
                vectors.iter_mut().for_each(|vector| normalise(vector));
                Ok(vectors)
            }
            Err(error) => {
                let (least, why) = match error {
                    AskError::World(refusal) => {
                        (refusal.retry_after_secs.map(|secs| Duration::from_secs(secs.into())), refusal.message)
                    }
                    AskError::Call(error) if error.retryable => (error.retry_after, error.message),
                    AskError::Call(error) => (error.retry_after.max(Some(SETTINGS_PAUSE)), error.message),
                };
                let is_new = self.circuit.why().as_ref() != Some(&why);
                let now = Instant::now();
                self.circuit.failed(now, least, &why);
                if is_new {
                    tracing::warn!(error = why, "the embedding model is not available; memory is searched by words");
                }
                Err(Unembedded::Paused(self.circuit.pause(now).unwrap_or_default()))
            }
        }
    }

    /// Where calls go. Keys are read from the disk.
    async fn target(self: &Arc<Self>) -> Result<Target, CallError> {
        let of = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || of.provider.target()).await;
        read.unwrap_or_else(|_| Err(CallError::last(FailureCode::Internal, "the provider's key could not be read")))
    }

    /// Is it the text that the model refuses, and not all texts?
    async fn takes_others(&self, target: &Target) -> bool {
        self.provider.ask(target, &[PROBE.to_owned()], By::Entries).await.is_ok()
    }
}
