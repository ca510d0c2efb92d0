//! The call of the model: within the budget of the agent whose turn it was, and on its usage.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::job::TryEnd;
use agentsvc_components::session::message::{ChatMessage, Role, text_of};
use agentsvc_components::turn::outcome::{FailureCode, StopReason};
use agentsvc_components::usage::{CallEnd, CallUse};
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::budget::{MEMORY, ReserveMemory, Reserved};
use agentsvc_systems::proactive_memory::limits::{
    MEMORIZE_ANSWER_TOKENS_MAX, MEMORIZE_MODEL_SECS_MAX, MEMORIZE_PROMPT_TOKENS_MAX,
};
use agentsvc_systems::prompt::{MESSAGE_TOKENS, Prompt, Tokens};
use agentsvc_systems::usage::NoteModelCall;
use tokio::sync::oneshot;

use super::job::end_of;
use super::prompt::Asked;
use crate::model::call::{Models, prompt_tokens_max};
use crate::model::error::CallError;
use crate::model::metered::{self, Metered};
use crate::model::provider::Target;
use crate::model::tokens::tokens_of;

/// How long a call waits for a provider that is asked too fast.
const PACE_WAIT_MAX: Duration = Duration::from_secs(30);

/// Asks the model that extracts entries of the agent's turns; gives the text of its answer, or `None` when agent or session are
/// gone. Dropped, the call is stopped, and settled all the same.
pub(super) async fn ask(
    models: &Arc<Models>,
    world: &Bridge,
    agent: AgentId,
    session: SessionId,
    asked: Asked,
) -> Result<Option<String>, TryEnd> {
    let (alive, gone) = oneshot::channel::<()>();
    let (models, world) = (Arc::clone(models), world.clone());
    let run = tokio::spawn(async move { run(&models, &world, (agent, session), asked, gone).await }).await;
    drop(alive);
    run.unwrap_or_else(|_| Err(retry("an internal error ended the call")))
}

async fn run(
    models: &Models,
    world: &Bridge,
    (agent, session): (AgentId, SessionId),
    asked: Asked,
    gone: oneshot::Receiver<()>,
) -> Result<Option<String>, TryEnd> {
    let (prompt_tokens_max, answer_tokens_max) = (MEMORIZE_PROMPT_TOKENS_MAX, MEMORIZE_ANSWER_TOKENS_MAX);
    let reserve = ReserveMemory { agent, session, prompt_tokens_max, answer_tokens_max };
    let Reserved { grant, model } = match world.ask(reserve).await {
        Ok(reserved) => reserved,
        Err(refusal) => return end_of(refusal).map(|_| None),
    };
    let (provider, name) = (model.provider.clone(), model.model.clone());
    let target = metered::target(&models.providers, model).await;
    let prepared = target.and_then(|target| prepared(&target, asked).map(|(prompt, max)| (target, prompt, max)));
    let (target, prompt, max_tokens) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            give_back(world, grant, provider, name).await;
            return Err(failed(error));
        }
    };
    let stopped = async {
        tokio::select! {
            _dropped = gone => {}
            () = tokio::time::sleep(Duration::from_secs(MEMORIZE_MODEL_SECS_MAX)) => {}
        }
    };
    let pass = models.drivers.pace().admit(&target, prompt.estimated_tokens, PACE_WAIT_MAX).await;
    let pass = match pass {
        Ok(pass) => pass,
        Err(error) => {
            give_back(world, grant, provider, name).await;
            return Err(failed(error));
        }
    };
    let (temperature, asked) = (None, None);
    let call = Metered { grant, channel: MEMORY, target: &target, prompt: &prompt, temperature, max_tokens, asked };
    let ended = metered::ask(&models.drivers, world, call, stopped).await;
    pass.end(&ended.answer.as_ref().map(|_| ()).map_err(Clone::clone));
    let answer = ended.answer.map_err(failed)?;
    match answer.stop {
        StopReason::Length => Err(TryEnd::Failed("the answer of the extraction model is too long".to_owned())),
        StopReason::End | StopReason::ToolUse | StopReason::Filtered => Ok(Some(text_of(&answer.blocks))),
    }
}

/// A call did not go out: what was reserved for it is free again.
async fn give_back(world: &Bridge, grant: Attempt, provider: Box<str>, model: Box<str>) {
    let used = CallUse { provider, model, end: CallEnd::Failed, ..CallUse::default() };
    let note = NoteModelCall { channel: MEMORY.into(), grant: Some(grant), used };
    let _later = metered::settle(world, note).await;
}

/// The request as a driver takes it, and the bound of its answer: within the context of the model.
fn prepared(target: &Target, asked: Asked) -> Result<(Prompt, u32), CallError> {
    let max_tokens = MEMORIZE_ANSWER_TOKENS_MAX.min(target.context_tokens / 4).max(1);
    let tokens: &dyn Tokens = tokens_of(target, true);
    let most = prompt_tokens_max(target, Some(max_tokens), 0)?;
    let count = |text: &str| tokens.count(text, most).unwrap_or(most.saturating_add(1)).saturating_add(MESSAGE_TOKENS);
    let estimated_tokens = count(&asked.system).saturating_add(count(&asked.message));
    if estimated_tokens > most {
        let message = "the exchange is too long for the extraction model";
        return Err(CallError::last(FailureCode::PromptTooLarge, message));
    }
    let messages = vec![ChatMessage::text(Role::User, asked.message)];
    Ok((Prompt { system: asked.system, messages, estimated_tokens, is_cut: false }, max_tokens))
}

/// What a failure of the model makes of a try.
fn failed(error: CallError) -> TryEnd {
    let reason = format!("the extraction model failed: {}", error.message);
    if matches!(error.code, FailureCode::PromptTooLarge) {
        return TryEnd::Failed(reason);
    }
    let after_ms = error.retry_after.map(|after| u32::try_from(after.as_millis()).unwrap_or(u32::MAX));
    TryEnd::Retry { after_ms, reason }
}

fn retry(reason: &str) -> TryEnd {
    TryEnd::Retry { after_ms: None, reason: reason.to_owned() }
}
