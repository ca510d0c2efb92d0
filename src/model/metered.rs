//! A call that is no turn's own, such as the test of a provider: it goes out when the most that it can cost is reserved, is tried
//! once, and is settled however it ends.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::turn::TurnRequest;
use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer};
use agentsvc_components::usage::{CallEnd, CallUse};
use agentsvc_components::{Micros, Refusal, RefusalKind};
use agentsvc_systems::prompt::Prompt;
use agentsvc_systems::usage::NoteModelCall;
use arc_swap::ArcSwap;
use futures_util::FutureExt;

use super::draft::Draft;
use super::error::CallError;
use super::images::Images;
use super::provider::{Providers, Target};
use super::{Drivers, Purpose, Request};

/// How long a world is left alone that had no place for the end of a call.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);

/// A call for which money is reserved.
pub(crate) struct Metered<'a> {
    /// What its end names.
    pub(crate) grant: Attempt,
    /// What its event names as its channel.
    pub(crate) channel: &'static str,
    /// Where it goes.
    pub(crate) target: &'a Target,
    /// What is asked.
    pub(crate) prompt: &'a Prompt,
    /// Sampling temperature.
    pub(crate) temperature: Option<f32>,
    /// The bound of the answer, in tokens.
    pub(crate) max_tokens: u32,
    /// What is asked for beside the prompt.
    pub(crate) asked: Option<&'a TurnRequest>,
}

/// How a call ended.
pub(crate) struct Ended {
    /// The answer.
    pub(crate) answer: Result<ModelAnswer, CallError>,
    /// What it cost, once that is on disk.
    pub(crate) noted: Result<Micros, Refusal>,
    /// Milliseconds.
    pub(crate) latency_ms: u64,
}

/// Where a call of this model goes, with its key, once its provider can be asked.
///
/// # Errors
/// The provider is not known, or has no key.
pub(crate) async fn target(providers: &ArcSwap<Providers>, model: ModelChoice) -> Result<Target, CallError> {
    let providers = providers.load_full();
    if let Some(ready) = providers.getting_ready(&model) {
        ready.await;
    }
    // Keys are read from the disk.
    let found = tokio::task::spawn_blocking(move || providers.target(&model)).await;
    found.unwrap_or_else(|_| Err(CallError::last(FailureCode::Internal, "an internal error ended it")))
}

/// Asks, until there is an answer or `stopped`. Must run to its end, whatever gives up waiting for it: what is reserved is given
/// back there.
pub(crate) async fn ask(
    drivers: &Drivers,
    world: &Bridge,
    call: Metered<'_>,
    stopped: impl Future<Output = ()>,
) -> Ended {
    let Metered { grant, channel, target, prompt, temperature, max_tokens, asked } = call;
    let images = Images::default();
    let request = Request {
        attempt: grant,
        target,
        purpose: Purpose::Turn,
        temperature,
        max_tokens: Some(max_tokens),
        prompt,
        images: &images,
        tools: &[],
        asked,
        streaming: false,
    };
    let mut draft = Draft::new(None);
    let begun = Instant::now();
    let called = tokio::select! {
        called = AssertUnwindSafe(drivers.get(target.driver).call(&request, &mut draft)).catch_unwind() => Some(called),
        () = stopped => None,
    };
    let (ended, end) = match called {
        Some(Ok(Ok(()))) => (Ok(()), CallEnd::Answered),
        Some(Ok(Err(error))) => (Err(error), CallEnd::Failed),
        Some(Err(_)) => {
            tracing::error!(provider = &*target.provider, channel, "a model call panicked");
            (Err(CallError::last(FailureCode::ProviderError, "the call was interrupted")), CallEnd::Failed)
        }
        None => (Err(CallError::last(FailureCode::ProviderTimeout, "the call was stopped")), CallEnd::Aborted),
    };
    let latency_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let tokens_max = draft.tokens_max();
    let (usage, answer) = match ended {
        Ok(()) => {
            let answer = draft.into_answer(grant, prompt.estimated_tokens, target);
            (answer.usage, Ok(answer))
        }
        Err(error) => {
            if draft.has_begun() || error.code == FailureCode::ProviderTimeout {
                draft.assume_all(prompt.estimated_tokens);
            }
            (draft.usage_so_far(prompt.estimated_tokens), Err(error))
        }
    };
    let used = CallUse {
        provider: target.provider.clone(),
        model: target.model.clone(),
        usage,
        tokens_max,
        latency_ms: u32::try_from(latency_ms).unwrap_or(u32::MAX),
        end,
        ..CallUse::default()
    };
    let noted = settle(world, NoteModelCall { channel: channel.into(), grant: Some(grant), used }).await;
    Ended { answer, noted, latency_ms }
}

/// Tells the world of the end of a call; a world that has no place for it is told later, for the money would stay reserved until
/// the next start, which settles what is left.
pub(crate) async fn settle(world: &Bridge, note: NoteModelCall) -> Result<Micros, Refusal> {
    let noted = world.ask(note.clone()).await;
    if noted.is_err() {
        drop(tokio::spawn(settle_later(world.clone(), note)));
    }
    noted
}

async fn settle_later(world: Bridge, note: NoteModelCall) {
    loop {
        tokio::time::sleep(SETTLE_PAUSE).await;
        match world.ask(note.clone()).await {
            Err(refusal) if refusal.kind == RefusalKind::Busy => {}
            _ => return,
        }
    }
}
