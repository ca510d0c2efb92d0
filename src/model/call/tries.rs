//! The tries of one call: the pace of its provider, retries, and what is noted of each.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_components::usage::{CallEnd, CallUse};

use super::Models;
use crate::model::draft::Draft;
use crate::model::error::CallError;
use crate::model::{Request, retry};

/// The least time between two looks at a provider that is left alone.
pub(crate) const LEFT_ALONE_LEAST: Duration = Duration::from_millis(100);

/// Asks the driver, again where that is worth it. Tries that broke off and, when there is no answer, the last one go to
/// `spent`. `is_last`: there is no other model to ask. Where money is reserved, only for one answer, one that broke off is not asked for again.
pub(crate) async fn ask(
    models: &Models,
    request: &Request<'_>,
    draft: &mut Draft,
    spent: &mut Vec<CallUse>,
    is_reserved: bool,
    is_last: bool,
) -> Result<(), CallError> {
    let driver = models.drivers.get(request.target.driver);
    let policy = &models.settings.retry;
    let (begun, attempt) = (Instant::now(), request.attempt);
    let mut last = None;
    for failed in 1.. {
        let tokens = request.prompt.estimated_tokens;
        models.sent.waits(attempt);
        let pass = loop {
            let wait_max = policy.total_max.saturating_sub(begun.elapsed());
            let refused = match models.drivers.pace().admit(request.target, tokens, wait_max).await {
                Ok(pass) => break pass,
                Err(refused) => refused,
            };
            // A provider that is left alone is waited for where there is no other model to ask.
            let left = refused.retry_after.unwrap_or_default().max(LEFT_ALONE_LEAST);
            if !is_last || left > wait_max {
                // What the last try said of the provider says more than that it is left alone now.
                return Err(last.take().unwrap_or(refused));
            }
            models.sent.pauses(attempt, left, &refused);
            tokio::time::sleep(left).await;
        };
        let tried = Instant::now();
        models.sent.tries(attempt);
        let called = driver.call(request, draft).await;
        models.sent.tried(attempt, tried.elapsed(), called.as_ref().err());
        pass.end(&called);
        let Err(error) = called else { return Ok(()) };
        let wait = retry::plan(policy, &error, failed, begun.elapsed(), draft.is_given_out(), jitter());
        // A provider that was too slow may bill what it was asked, too.
        let has_begun = draft.has_begun() || error.code == FailureCode::ProviderTimeout;
        let wait = wait.filter(|_| !(has_begun && is_reserved));
        if has_begun && is_reserved {
            draft.assume_all(tokens);
        }
        if has_begun || wait.is_none() {
            spent.push(failed_use(request, draft, tried.elapsed()));
        }
        let Some(wait) = wait else { return Err(error) };
        tracing::debug!(turn = %request.attempt.job, code = error.code.as_str(), reason = error.message,
            wait_ms = wait.as_millis() as u64, "retrying a model call");
        draft.clear();
        models.sent.pauses(attempt, wait, &error);
        last = Some(error);
        tokio::time::sleep(wait).await;
    }
    // Not reached: the plan ends the loop.
    Err(CallError::last(FailureCode::Internal, "The model call failed after too many attempts."))
}

/// A try that gave no answer.
fn failed_use(request: &Request<'_>, draft: &Draft, took: Duration) -> CallUse {
    CallUse {
        provider: request.target.provider.clone(),
        model: request.target.model.clone(),
        usage: draft.usage_so_far(request.prompt.estimated_tokens),
        tokens_max: draft.tokens_max(),
        latency_ms: u32::try_from(took.as_millis()).unwrap_or(u32::MAX),
        tool_calls: 0,
        end: CallEnd::Failed,
    }
}

/// Uniform in `0.0..1.0`. Only spreads retries, so the hasher's keys are random enough.
fn jitter() -> f64 {
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}
