//! The call that shows whether a provider answers: over the provider's own driver, as short as the provider allows, tried
//! once. Like every call it goes out when the most that it can cost is reserved, and is settled however it ends.

use std::sync::Arc;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::provider::accounts::{ProviderError, ProviderTested};
use agentsvc_components::Actor;
use agentsvc_components::session::message::{Block, ChatMessage, Role};
use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_systems::budget::ReserveProbe;
use agentsvc_systems::prompt::{Prompt, text_tokens};

use crate::model::Drivers;
use crate::model::error::CallError;
use crate::model::metered::{self, Ended, Metered};
use crate::model::provider::{DriverKind, Provider, Providers, Target};

/// What is said.
const QUESTION: &str = "Answer with one word: ok";
/// Tokens of the answer of a model that thinks first: a smaller bound would leave no room for an answer.
const THINKER_TOKENS: u32 = 1_024;
/// Tokens of the answer where a smaller bound is refused.
const BOUNDED_TOKENS: u32 = 16;
/// In the usage of test calls where others name a channel.
const CHANNEL: &str = "provider_test";

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
    let reserve = ReserveProbe { agent: None, channel: CHANNEL.into(), provider, model, answer_tokens_max };
    let attempt = world.ask(reserve).await.map_err(ProviderError::World)?;
    let prompt = Prompt {
        messages: vec![ChatMessage { role: Role::User, blocks: vec![Block::Text { text: QUESTION.to_owned() }] }],
        estimated_tokens: text_tokens(QUESTION.len()),
        ..Prompt::default()
    };
    let call = Metered {
        grant: attempt,
        channel: CHANNEL,
        target: &target,
        prompt: &prompt,
        temperature: None,
        max_tokens: answer_tokens_max,
        asked: None,
    };
    let Ended { answer, noted, latency_ms } = metered::ask(drivers, &world, call, std::future::pending()).await;
    let usage = answer.map_err(failed)?.usage;
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

/// Where the call goes, with its key.
async fn settle(asked: Asked) -> Result<Target, ProviderError> {
    let Asked { providers, name, model } = asked;
    // The default model has an endpoint and a key of its own: those are what agents use.
    let mut choice = providers.default_for(&name).unwrap_or_default();
    if !model.is_empty() || choice.provider.is_empty() {
        choice.model = model.into();
    }
    let has_none = |provider: &Provider| provider.default_model.is_empty();
    if choice.model.is_empty() && providers.get(&name).is_some_and(has_none) {
        let message = format!("provider {name} has no default model; set one with ?model=");
        return Err(ProviderError::Unfit { field: "model", message });
    }
    choice.provider = name.into();
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
