//! Asking models: the drivers, and the way of a call through them.
//!
//! To add a driver: one file with an `impl Wire`, one variant of [`provider::DriverKind`], one line in [`Drivers`].

mod alternate;
mod anthropic;
mod asked;
mod aws_frames;
mod azure;
mod bedrock;
pub mod builtin;
pub(crate) mod call;
pub mod catalog;
mod claude;
pub(crate) mod cli;
pub mod draft;
mod driver_kind;
pub(crate) mod embeddings;
pub mod error;
mod extra;
pub(crate) mod extract;
pub(crate) mod failure;
mod frames;
mod functions;
mod gemini;
pub mod http;
pub mod images;
pub(crate) mod lines;
pub(crate) mod metered;
mod names;
mod ollama;
mod openai;
pub mod pace;
pub mod provider;
mod reading;
mod responses;
pub mod retry;
mod schema;
pub(crate) mod sent;
#[cfg(test)]
mod testing;
mod thinking;
pub(crate) mod tokens;
pub(crate) mod wire;

use std::sync::Arc;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::turn::TurnRequest;
use agentsvc_systems::prompt::Prompt;
use futures_util::future::BoxFuture;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::tool::toolset::{ToolParts, ToolSpec};
use anthropic::Anthropic;
use azure::Azure;
use bedrock::Bedrock;
use builtin::Builtin;
use call::Models;
use draft::Draft;
use error::CallError;
use gemini::Gemini;
use http::{Clients, Timeouts};
use images::Images;
pub(crate) use lines::ProviderCatalog;
use ollama::Ollama;
use openai::OpenAi;
use pace::Pace;
use provider::{DriverKind, Target};
use responses::Responses;
use retry::RetryPolicy;
use wire::HttpDriver;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "model",
    uses: &[
        "tool",
        "provider",
        "session",
        "prompt",
        "manifest",
        "turn",
        "usage",
        "audit",
        "plugin",
        "proactive_memory",
        "skill",
    ],
    performers,
    commands: &[Subcommand::new::<cli::Models>(7, "models", "List models with prices and capabilities")
        .examples(&[Example::new("models --provider openai", "List the models of one provider")])
        .also("model")
        .under(Group::Abilities)],
    ..Domain::EMPTY
};

/// Asks models.
fn performers(performers: &mut Performers) {
    let (settings, parts) = (performers.part::<ModelSettings>(), performers.part::<ToolParts>());
    let (providers, uploads, drivers) = (performers.part(), performers.part(), Arc::new(Drivers::new(&settings)));
    let (calls, streams, content) = (performers.calls(), performers.part(), performers.part());
    let (tools, config) = (parts.set, parts.settings);
    config.set(SharedDrivers(Some(Arc::clone(&drivers))));
    let sent = Arc::new(sent::SentLog::new(Arc::clone(drivers.pace())));
    let models = Models { calls, streams, content, providers, uploads, tools, drivers, settings, config, sent };
    let models = Arc::new(models);
    performers.provide(Arc::clone(&models));
    performers.on(move |of| call::begin(&models, of));
}

/// The drivers of the present world's turns, for other calls of models: all of them keep one pace for each provider. `None` while
/// there is no world.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedDrivers(pub(crate) Option<Arc<Drivers>>);

/// Timeouts and retries of model calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelSettings {
    /// How long one try may take.
    pub timeouts: Timeouts,
    /// How often and when a call is tried again.
    pub retry: RetryPolicy,
}

/// What an answer is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// It goes on with a conversation.
    #[default]
    Turn,
    /// It summarises a conversation, which stands as text in the prompt's one message.
    Summary,
}

/// One try of a call, in neutral form.
#[derive(Debug)]
pub struct Request<'a> {
    /// Which call of which turn.
    pub attempt: Attempt,
    /// Where it goes.
    pub target: &'a Target,
    /// What its answer is for.
    pub purpose: Purpose,
    /// Sampling temperature, where the manifest sets one.
    pub temperature: Option<f32>,
    /// Bound of the answer in tokens, where the manifest sets one.
    pub max_tokens: Option<u32>,
    /// What is asked.
    pub prompt: &'a Prompt,
    /// The images of the prompt.
    pub images: &'a Images,
    /// The tools that the model may call.
    pub tools: &'a [ToolSpec],
    /// What the request of the turn asked for beside its message.
    pub asked: Option<&'a TurnRequest>,
    /// Someone reads the answer as it is written.
    pub streaming: bool,
}

impl Request<'_> {
    /// The keys that the request of the turn gives to the provider, in OpenAI's form (`response_format`, `top_p`, `stop`,
    /// ...); a driver of another protocol says what it can of them in its own.
    pub(crate) fn parameters(&self) -> serde_json::Map<String, serde_json::Value> {
        let text = self.asked.and_then(|asked| asked.parameters.as_deref());
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Which tool the model should call, in OpenAI's form. One that forces a call holds for the turn's first answer only:
    /// the turn would never end otherwise.
    pub(crate) fn tool_choice(&self) -> Option<&str> {
        let text = self.asked?.tool_choice.as_deref()?;
        let forces = !matches!(text, "\"none\"" | "\"auto\"");
        let applies = !self.tools.is_empty() && (!forces || self.attempt.number == 1);
        applies.then_some(text)
    }

    /// The JSON of `body`, which is this request as a provider takes it: there is room for the prompt and its images.
    pub(crate) fn written(&self, body: &impl serde::Serialize) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.prompt.estimated_tokens as usize * 5 + self.images.bytes());
        // Writing plain structs into memory cannot fail; were it to, the provider would refuse the empty body.
        if serde_json::to_writer(&mut out, body).is_err() {
            out.clear();
        }
        out
    }

    /// What bounds the tokens of this request, written in so many bytes: no text has more than bytes.
    pub(crate) fn sent(&self, bytes: usize) -> draft::Sent {
        let text = bytes.saturating_sub(self.images.bytes()) as u64;
        let (answer, context) = (self.max_tokens, self.target.context_tokens);
        draft::Sent { prompt: text + self.images.tokens_max(), answer, context }
    }

    /// The turn asks for extended thinking.
    pub(crate) fn thinks(&self) -> bool {
        self.asked.is_some_and(|asked| asked.thinking)
    }

    /// What a model thought goes back only to itself, over the same wire.
    pub(crate) fn is_own(&self, thought: &agentsvc_components::session::message::Reasoning) -> bool {
        thought.wire == self.target.driver.as_str() && *thought.model == *self.target.model
    }
}

/// Speaks one wire protocol.
pub trait Driver: Send + Sync {
    /// Makes one try and writes the answer into `draft` as it comes; `Ok` when it is whole.
    ///
    /// The future may be dropped at any point: the draft then holds what was written so far. Retries are not the
    /// driver's business; it says in the error whether one is worth it.
    fn call<'a>(&'a self, request: &'a Request<'a>, draft: &'a mut Draft) -> BoxFuture<'a, Result<(), CallError>>;

    /// Takes the answer in `response`, whose status is a good one; what came before an error is in `draft`. The built-in model
    /// has none to read.
    fn read<'a>(
        &'a self,
        _target: &'a Target,
        _response: reqwest::Response,
        _streaming: bool,
        _draft: &'a mut Draft,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Every driver there is.
#[derive(Debug)]
pub struct Drivers {
    builtin: Builtin,
    openai: HttpDriver<OpenAi>,
    anthropic: HttpDriver<Anthropic>,
    responses: HttpDriver<Responses>,
    gemini: HttpDriver<Gemini>,
    ollama: HttpDriver<Ollama>,
    azure: HttpDriver<Azure>,
    bedrock: HttpDriver<Bedrock>,
    pace: Arc<Pace>,
}

impl Drivers {
    /// The drivers, with nothing opened yet.
    pub fn new(settings: &ModelSettings) -> Self {
        let clients = Arc::new(Clients::new(settings.timeouts));
        Self {
            builtin: Builtin,
            openai: HttpDriver::new(OpenAi, Arc::clone(&clients)),
            anthropic: HttpDriver::new(Anthropic, Arc::clone(&clients)),
            responses: HttpDriver::new(Responses, Arc::clone(&clients)),
            gemini: HttpDriver::new(Gemini, Arc::clone(&clients)),
            ollama: HttpDriver::new(Ollama, Arc::clone(&clients)),
            azure: HttpDriver::new(Azure, Arc::clone(&clients)),
            bedrock: HttpDriver::new(Bedrock::default(), Arc::clone(&clients)),
            pace: Arc::clone(clients.pace()),
        }
    }

    /// How fast each provider may be asked.
    pub const fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    /// The driver of a kind.
    pub fn get(&self, kind: DriverKind) -> &dyn Driver {
        match kind {
            DriverKind::Builtin => &self.builtin,
            DriverKind::OpenAi => &self.openai,
            DriverKind::Bedrock => &self.bedrock,
            DriverKind::Anthropic => &self.anthropic,
            DriverKind::OpenAiResponses => &self.responses,
            DriverKind::Gemini => &self.gemini,
            DriverKind::Ollama => &self.ollama,
            DriverKind::Azure => &self.azure,
        }
    }

    /// Reads an answer that came from somewhere else than the network, for fuzz targets.
    pub(crate) async fn read(
        &self,
        target: &Target,
        response: reqwest::Response,
        streaming: bool,
        draft: &mut Draft,
    ) -> Result<(), CallError> {
        self.get(target.driver).read(target, response, streaming, draft).await
    }
}
