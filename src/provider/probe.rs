//! The call that shows whether a provider answers: over the provider's own driver, as short as the provider allows, tried
//! once. Like every call it goes out when the most that it can cost is reserved, and is settled however it ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::provider::accounts::{ProviderError, ProviderTested};
use agentsvc_components::Actor;
use agentsvc_components::RefusalKind;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::session::message::{Block, ChatMessage, Role};
use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_components::usage::{CallEnd, CallUse};
use agentsvc_systems::budget::ReserveProbe;
use agentsvc_systems::prompt::{Prompt, text_tokens};
use agentsvc_systems::usage::NoteModelCall;
use futures_util::FutureExt;

use crate::model::draft::Draft;
use crate::model::error::CallError;
use crate::model::images::Images;
use crate::model::provider::{DriverKind, Providers, Target};
use crate::model::{Drivers, Purpose, Request};

/// What is said.
const QUESTION: &str = "Answer with one word: ok";
/// Tokens of the answer of a model that thinks first: a smaller bound would leave no room for an answer.
const THINKER_TOKENS: u32 = 1_024;
/// Tokens of the answer where a smaller bound is refused.
const BOUNDED_TOKENS: u32 = 16;
/// In the usage of test calls where others name a channel.
const CHANNEL: &str = "provider_test";
/// How long a world is left alone that had no place for the end of a call.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);

/// What is to be tested.
pub(super) struct Asked {
    /// The providers.
    pub(super) providers: Arc<Providers>,
    /// Which one.
    pub(super) name: String,
    /// The model; empty for the provider's own.
    pub(super) model: String,
}

/// Asks. Must run to its end, whoever gives up waiting for it: what it reserves is given back there.
///
/// # Errors
/// [`ProviderError`]: `NotReady` without a key, `Unfit` without a model, `World` without money, `Late`, else `Failed`.
pub(super) async fn test(drivers: &Drivers, bridge: &Bridge, asked: Asked) -> Result<ProviderTested, ProviderError> {
    let target = settle(asked).await?;
    let world = bridge.acting_as(Actor::System);
    let answer_tokens_max = answer_tokens(&target);
    let (provider, model) = (target.provider.clone(), target.model.clone());
    let reserve = ReserveProbe { channel: CHANNEL.into(), provider, model, answer_tokens_max };
    let attempt = world.ask(reserve).await.map_err(ProviderError::World)?;
    let prompt = Prompt {
        messages: vec![ChatMessage { role: Role::User, blocks: vec![Block::Text { text: QUESTION.to_owned() }] }],
        estimated_tokens: text_tokens(QUESTION.len()),
        ..Prompt::default()
    };
    let images = Images::default();
    let request = Request {
        attempt,
        target: &target,
        purpose: Purpose::Turn,
        temperature: None,
        max_tokens: Some(answer_tokens_max),
        prompt: &prompt,
        images: &images,
        tools: &[],
        asked: None,
        streaming: false,
    };
    let mut draft = Draft::new(None);
    let begun = Instant::now();
    let called = AssertUnwindSafe(drivers.get(target.driver).call(&request, &mut draft)).catch_unwind().await;
    let ended = called.unwrap_or_else(|_| {
        tracing::error!(provider = &*target.provider, "the test of a provider panicked");
        Err(CallError::last(FailureCode::ProviderError, "the call was interrupted"))
    });
    let latency_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let tokens_max = draft.tokens_max();
    let usage = match &ended {
        Ok(()) => draft.into_answer(request.attempt, prompt.estimated_tokens, &target).usage,
        Err(error) => {
            if draft.has_begun() || error.code == FailureCode::ProviderTimeout {
                draft.assume_all(prompt.estimated_tokens);
            }
            draft.usage_so_far(prompt.estimated_tokens)
        }
    };
    let used = CallUse {
        provider: target.provider.clone(),
        model: target.model.clone(),
        usage,
        tokens_max,
        latency_ms: u32::try_from(latency_ms).unwrap_or(u32::MAX),
        end: if ended.is_ok() { CallEnd::Answered } else { CallEnd::Failed },
        ..CallUse::default()
    };
    let note = NoteModelCall { channel: CHANNEL.into(), grant: Some(attempt), used };
    let noted = world.ask(note.clone()).await;
    if noted.is_err() {
        drop(tokio::spawn(settle_later(world, note)));
    }
    ended.map_err(failed)?;
    noted.map_err(ProviderError::World)?;
    Ok(ProviderTested {
        status: "ok",
        provider: target.provider.into_string(),
        latency_ms,
        model_tested: target.model.into_string(),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    })
}

/// Tells a world of the call's end that did not take it at first: else its money stayed reserved until the next start,
/// which settles what is left.
async fn settle_later(world: Bridge, note: NoteModelCall) {
    loop {
        tokio::time::sleep(SETTLE_PAUSE).await;
        match world.ask(note.clone()).await {
            Err(refusal) if refusal.kind == RefusalKind::Busy => {}
            _ => return,
        }
    }
}

/// Where the call goes, with its key.
async fn settle(asked: Asked) -> Result<Target, ProviderError> {
    let Asked { providers, name, model } = asked;
    if model.is_empty() && providers.get(&name).is_some_and(|provider| provider.default_model.is_empty()) {
        let message = format!("provider {name} has no default model; set one with ?model=");
        return Err(ProviderError::Unfit { field: "model", message });
    }
    let choice = ModelChoice { provider: name.into(), model: model.into(), ..ModelChoice::default() };
    if let Some(ready) = providers.getting_ready(&choice) {
        ready.await;
    }
    super::on_disk(move || providers.target(&choice)).await?.map_err(|error| match error.code {
        FailureCode::ProviderAuth => ProviderError::NotReady { code: error.code.error_code(), message: error.message },
        _ => failed(error),
    })
}

/// The bound of the answer.
const fn answer_tokens(target: &Target) -> u32 {
    match target.driver {
        _ if target.reasons => THINKER_TOKENS,
        DriverKind::OpenAiResponses => BOUNDED_TOKENS,
        _ if target.bounds_completion => BOUNDED_TOKENS,
        _ => 1,
    }
}

fn failed(error: CallError) -> ProviderError {
    match error.code {
        FailureCode::ProviderTimeout => ProviderError::Late(error.message),
        code => ProviderError::Failed { code: code.error_code(), message: error.message },
    }
}
