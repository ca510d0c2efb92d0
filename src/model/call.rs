//! The way of one model call: rows, prompt, driver with retries, fallback models, outcome.

use std::borrow::Cow;
use std::sync::Arc;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::session::content::{Content, MessageRange, MessageRow, in_force};
use agentsvc_components::FileId;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::session::message::{Block, Role, text_of};
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::usage::CallUse;
use agentsvc_systems::prompt::{self, Dense, Estimate, Prompt, Source, Tokens, text_tokens};
use arc_swap::ArcSwap;
use tracing::Instrument;

use super::draft::{Draft, Outlet};
use super::error::CallError;
use super::extra::{Memory, behind, split_summary};
use super::gemini;
use super::images::Images;
use super::provider::{DriverKind, Providers, Target};
use super::sent::SentLog;
use super::tokens::tokens_of;
use super::{Drivers, ModelSettings, Purpose, Request};
use crate::kernel::effect::{Calls, reply::Reply, span};
use crate::kernel::settings::Settings;
use crate::tool as tools;
use crate::tool::toolset::{ToolSet, ToolSpec};
use crate::turn::stream::Streams;

mod plugins;
mod tries;

pub(crate) use tries::{LEFT_ALONE_LEAST, ask};

/// Tokens kept free for the answer when the manifest does not bound it; at most a quarter of the context.
const ANSWER_TOKENS_DEFAULT: u64 = 4_096;
/// Tokens that a prompt may always have, however small a context is said to be.
const PROMPT_TOKENS_MIN: u64 = 256;

/// Reads an upload of at most so many bytes; `None` when it is not there. May block.
pub(crate) type ReadUpload = Arc<dyn Fn(FileId, u64) -> Option<Vec<u8>> + Send + Sync>;

/// What model calls share.
pub(crate) struct Models {
    /// What they share with all calls.
    pub(crate) calls: Arc<Calls>,
    /// The streams of sessions.
    pub(crate) streams: Streams,
    /// The logs that prompts are made of.
    pub(crate) content: Arc<dyn Content>,
    /// The providers of models.
    pub(crate) providers: Arc<ArcSwap<Providers>>,
    /// The uploads that prompts show.
    pub(crate) uploads: ReadUpload,
    /// The tools that there are.
    pub(crate) tools: ToolSet,
    /// Speak the providers' protocols.
    pub(crate) drivers: Arc<Drivers>,
    /// Timeouts and retries.
    pub(crate) settings: ModelSettings,
    /// What the configuration in force says to domains.
    pub(crate) config: Settings,
    /// What was sent, for those who look for the reason of an answer.
    pub(crate) sent: Arc<SentLog>,
}

/// One call under way.
struct Running {
    models: Arc<Models>,
    call: Box<ModelCall>,
    reply: Reply,
    /// 0 is the call's own model, `n` the manifest's fallback model `n - 1`.
    candidate: usize,
    /// What its prompt shows of the agent's memory.
    memory: Memory,
    /// Plugins were asked for memories.
    is_ingested: bool,
    outlet: Arc<Outlet>,
    /// What was asked without success.
    spent: Vec<CallUse>,
}

/// What a driver is asked.
pub(super) struct Prepared {
    pub(super) target: Target,
    pub(super) prompt: Prompt,
    images: Images,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) temperature: Option<f32>,
    pub(super) max_tokens: Option<u32>,
    /// Tokens that the prompt may have.
    tokens_max: u64,
}

/// Begins a call. Never blocks.
pub(crate) fn begin(models: &Arc<Models>, mut call: Box<ModelCall>) {
    let reply = models.calls.enter(call.attempt, |attempt| {
        let message = "The model call failed with an internal error; see the daemon's log.".to_owned();
        let failure = ModelFailure { code: FailureCode::Internal, message, spent: Vec::new() };
        ModelOutcome(attempt, ModelEnd::Failed(failure))
    });
    let publish = Arc::clone(&models.streams.publish);
    let outlet = Arc::new(Outlet { publish, session: call.session, turn: call.turn() });
    let memory = Memory::of(call.recall.take());
    let (models, spent) = (Arc::clone(models), Vec::new());
    Running { models, call, reply, candidate: 0, memory, is_ingested: false, outlet, spent }.submit();
}

impl Running {
    /// Waits, where that is needed, until the key is fresh, and goes on.
    fn get_ready(self) {
        let providers = self.models.providers.load();
        match providers.getting_ready(&self.choice()) {
            None => self.read_and_ask(),
            Some(ready) => {
                let handle = self.models.calls.handle.clone();
                drop(handle.spawn(async move {
                    ready.await;
                    self.read_and_ask();
                }));
            }
        }
    }

    /// Hands the call to a reader thread, which reads, projects, and starts the asking.
    fn read_and_ask(mut self) {
        let models = Arc::clone(&self.models);
        let mut memory = std::mem::replace(&mut self.memory, Memory::Nothing);
        models.calls.readers.submit(Box::new(move || match self.prepare(&mut memory) {
            Ok(prepared) => {
                self.memory = memory;
                let handle = self.models.calls.handle.clone();
                let (call, choice) = (&self.call, self.choice());
                let trace = call.request.as_ref().and_then(|request| request.trace.as_deref());
                let span = span::of("call_model", &choice.model, call.attempt, call.agent, trace);
                drop(choice);
                drop(handle.spawn(self.run(prepared).instrument(span)));
            }
            Err(error) => {
                self.memory = memory;
                self.fail(error, false);
            }
        }));
    }

    /// The model of the candidate.
    fn choice(&self) -> Cow<'_, ModelChoice> {
        let providers = &self.models.providers.load();
        candidate(providers, &self.call.model, &self.call.manifest.manifest.fallback_models, self.candidate)
    }

    fn prepare(&self, memory: &mut Memory) -> Result<Prepared, CallError> {
        let (call, choice) = (&self.call, self.choice());
        let target = self.models.providers.load().target(&choice)?;
        let manifest = &call.manifest.manifest;
        let (rows, summary) = self.read().map_err(|error| {
            tracing::error!(%error, turn = %call.turn(), "the conversation could not be read");
            unreadable()
        })?;
        let question = rows.iter().position(|row| row.ordinal == call.ordinal && row.record.role == Role::User);
        let mut records: Vec<_> = rows.into_iter().map(|row| row.record).collect();
        let asked = call.request.as_deref();
        let offered = tools::offered(&self.models.tools.get(), manifest, &records, target.context_tokens);
        let tools = tools::with_client_tools(offered, asked);
        let bound = call.answer_tokens_max.map(|most| most.min(target.context_tokens / 4).max(1));
        let max_tokens = asked.and_then(|asked| asked.max_tokens).or(choice.max_tokens).or(bound);
        // No more than was reserved for it.
        let max_tokens = max_tokens.map(|most| most.min(target.context_tokens));
        let temperature = asked.and_then(|asked| asked.temperature).or(choice.temperature);
        let tokens = tokens_of(&target, call.answer_tokens_max.is_some());
        let parameters = asked.and_then(|asked| asked.parameters.as_deref()).unwrap_or_default();
        let beside = tokens_beside(target.driver, &tools, parameters, call.answer_tokens_max.is_some());
        let tokens_max = prompt_tokens_max(&target, max_tokens, beside)?;
        let room = tokens_max;
        let (summary, read) = split_summary(&summary);
        let more = behind(&self.models.config, call, &read, tokens_max);
        let more_tokens = if more.is_empty() { 0 } else { text_tokens(more.len()) };
        let tokens_max = tokens_max - more_tokens;
        let text = question.and_then(|_| memory.shown(tokens_max, |found| self.tell(found)));
        if let Some((question, text)) = question.zip(text) {
            records[question].blocks.insert(0, Block::Text { text });
        }
        let mut prompt = prompt::project(Source {
            manifest,
            agent_name: &call.agent_name,
            summary: Some(summary).filter(|summary| !summary.is_empty()),
            records,
            tokens_max,
            tokens,
        });
        prompt.system.push_str(&more);
        prompt.estimated_tokens += more_tokens;
        let images = match target.driver {
            DriverKind::Builtin => Images::default(),
            _ if !self.models.providers.load().takes_images(&target) => Images::refused(),
            _ => Images::of(&prompt, &*self.models.uploads),
        };
        Ok(Prepared { target, prompt, images, tools, temperature, max_tokens, tokens_max: room })
    }

    /// The newest rows that are not summarised and that no turn repeats, and the summary of the others.
    fn read(&self) -> Result<(Vec<MessageRow>, String), ContentError> {
        let (call, content) = (&self.call, &self.models.content);
        let (from, ordinal, limit) = (call.compacted, call.ordinal, limit::PROMPT_MESSAGES_MAX);
        let range = MessageRange::NewestSince { from, ordinal, limit };
        let rows = in_force(content.messages(call.log, range)?, Some(ordinal));
        let summary = if from == 0 { None } else { content.summary(call.log, from)? };
        Ok((rows, summary.map(|summary| summary.text).unwrap_or_default()))
    }

    async fn run(mut self, mut prepared: Prepared) {
        let changed = tokio::select! {
            biased;
            () = self.reply.ticket().aborted() => return self.abort_unasked(),
            changed = self.assemble(&mut prepared) => changed,
        };
        if let Err(error) = changed {
            return self.fail(error, false);
        }
        self.models.sent.begin(&self.call, &prepared);
        let streaming = self.call.streaming || self.is_watched();
        let mut draft = Draft::new(streaming.then(|| Arc::clone(&self.outlet)));
        let mut spent = std::mem::take(&mut self.spent);
        let asked = {
            let ask = self.ask(&prepared, streaming, &mut draft, &mut spent);
            tokio::select! {
                biased;
                () = self.reply.ticket().aborted() => None,
                result = ask => Some(result),
            }
        };
        self.spent = spent;
        self.models.sent.over(self.call.attempt);
        match asked {
            Some(Err(error)) => self.fail(error, draft.is_given_out()),
            ended => {
                let prompt_tokens = prepared.prompt.estimated_tokens;
                if ended.is_none() && self.call.answer_tokens_max.is_some() {
                    draft.assume_all(prompt_tokens);
                }
                let mut answer = draft.into_answer(self.call.attempt, prompt_tokens, &prepared.target);
                answer.pressed = prepared.prompt.is_cut;
                answer.before = std::mem::take(&mut self.spent);
                if ended.is_none() {
                    self.end(ModelEnd::Aborted(answer));
                } else {
                    self.answer(answer, streaming);
                }
            }
        }
    }

    async fn ask(
        &self,
        prepared: &Prepared,
        streaming: bool,
        draft: &mut Draft,
        spent: &mut Vec<CallUse>,
    ) -> Result<(), CallError> {
        let request = Request {
            attempt: self.call.attempt,
            target: &prepared.target,
            purpose: Purpose::Turn,
            temperature: prepared.temperature,
            max_tokens: prepared.max_tokens,
            prompt: &prepared.prompt,
            images: &prepared.images,
            tools: &prepared.tools,
            asked: self.call.request.as_deref(),
            streaming,
        };
        let is_last = self.candidate >= self.call.manifest.manifest.fallback_models.len();
        ask(&self.models, &request, draft, spent, self.call.answer_tokens_max.is_some(), is_last).await
    }

    fn is_watched(&self) -> bool {
        (self.models.streams.subscribed)(self.call.session)
    }

    fn fall_back(mut self, error: &CallError) {
        tracing::warn!(turn = %self.call.turn(), agent = %self.call.agent, code = error.code.as_str(),
            reason = error.message, "the model failed; trying the next fallback model");
        self.candidate += 1;
        self.submit();
    }

    fn answer(self, answer: ModelAnswer, streamed: bool) {
        // Someone who came while the model wrote gets the text whole.
        if !streamed && self.is_watched() {
            let text = text_of(&answer.blocks);
            if !text.is_empty() {
                self.outlet.chunk(text);
            }
        }
        self.end(ModelEnd::Answered(answer));
    }

    /// Ends the call, or hands it to the next fallback model while no reader has seen anything of an answer.
    fn fail(mut self, error: CallError, given_out: bool) {
        if !given_out && self.reply.ticket().is_aborted() {
            return self.abort_unasked();
        }
        let has_fallback = self.candidate < self.call.manifest.manifest.fallback_models.len();
        let is_ours = matches!(error.code, FailureCode::Internal | FailureCode::PluginFailed);
        if has_fallback && !given_out && !is_ours {
            return self.fall_back(&error);
        }
        tracing::warn!(turn = %self.call.turn(), agent = %self.call.agent, code = error.code.as_str(),
            reason = error.message, "a model call failed");
        let spent = std::mem::take(&mut self.spent);
        self.end(ModelEnd::Failed(ModelFailure { spent, ..error.into_failure() }));
    }

    fn end(self, end: ModelEnd) {
        self.reply.end(|attempt| ModelOutcome(attempt, end));
    }

    fn abort_unasked(mut self) {
        let choice = self.choice();
        let (provider, model) = (choice.provider.to_string(), choice.model.to_string());
        let before = std::mem::take(&mut self.spent);
        let answer = ModelAnswer { provider, model, before, ..ModelAnswer::default() };
        self.end(ModelEnd::Aborted(answer));
    }
}

/// The model to ask: 0 is `own`, `n` the fallback `n - 1`, its alias resolved. A fallback without a provider means the one of
/// `own`.
pub(crate) fn candidate<'a>(
    providers: &Providers,
    own: &'a ModelChoice,
    fallbacks: &'a [ModelChoice],
    at: usize,
) -> Cow<'a, ModelChoice> {
    match at.checked_sub(1).and_then(|at| fallbacks.get(at)) {
        None => Cow::Borrowed(own),
        Some(choice) => providers.catalog().table().aliases().fallback(own, choice),
    }
}

/// The store failed.
pub(crate) fn unreadable() -> CallError {
    CallError::last(FailureCode::Internal, "The conversation could not be read from the store.")
}

/// Tokens that the prompt may have: nine tenths of the context (the estimate is one), less the answer and what goes out
/// `beside` the prompt.
///
/// # Errors
/// `PromptTooLarge`: they leave no room for one. The context is what is reserved for a call, and no call costs more.
pub(crate) fn prompt_tokens_max(target: &Target, max_tokens: Option<u32>, beside: u64) -> Result<u64, CallError> {
    let context = u64::from(target.context_tokens);
    let answer = max_tokens.map_or(ANSWER_TOKENS_DEFAULT, u64::from).min(context / 4);
    let left = (context / 10 * 9).saturating_sub(answer).saturating_sub(beside);
    if left < PROMPT_TOKENS_MIN && beside > 0 {
        let message = format!(
            "The tools and parameters of the request take {beside} tokens, and the model {} of provider {} has {context} in all. \
             Grant fewer tools, or tool_load, which keeps tools out of the prompt until they are needed.",
            target.model, target.provider
        );
        return Err(CallError::last(FailureCode::PromptTooLarge, message));
    }
    Ok(left.max(PROMPT_TOKENS_MIN))
}

/// Tokens of the tools and of more parameters, such as the schema of an answer. `is_reserved`: money is reserved for the
/// call, so that no text may count much less than it has.
fn tokens_beside(driver: DriverKind, tools: &[ToolSpec], parameters: &str, is_reserved: bool) -> u64 {
    let tokens: &dyn Tokens = if is_reserved { &Dense } else { &Estimate };
    let count = |text: &str| tokens.count(text, u64::MAX).unwrap_or(u64::MAX);
    let tool = |tool: &ToolSpec| {
        let sent = if driver == DriverKind::Gemini { gemini::sent_schema(&tool.input_schema) } else { None };
        let schema = sent.as_deref().unwrap_or(tool.input_schema.get());
        [&*tool.name, &tool.description, schema].map(count).iter().sum::<u64>()
    };
    tools.iter().map(tool).sum::<u64>() + count(parameters)
}
