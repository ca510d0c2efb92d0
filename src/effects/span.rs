//! The spans of effects. What came of a traced request bears its trace id; everything else is there at the level `debug`
//! only (`docs/observability.md`).

use agentsvc_components::AgentId;
use agentsvc_components::effect::Attempt;
use tracing::Span;

/// The span of one effect. `trace` is the `traceparent` of the request that it goes back to.
pub(super) fn of(effect: &'static str, what: &str, attempt: Attempt, agent: AgentId, trace: Option<&str>) -> Span {
    let number = attempt.number;
    let Some((trace_id, parent_id)) = trace.and_then(parts) else {
        return tracing::debug_span!("effect", effect, what, %agent, turn = %attempt.turn, attempt = number);
    };
    let turn = attempt.turn;
    tracing::info_span!("effect", effect, what, %agent, %turn, attempt = number, trace_id, parent_span_id = parent_id)
}

/// The trace id and the span id of a `traceparent`.
fn parts(trace: &str) -> Option<(&str, &str)> {
    let mut parts = trace.split('-').skip(1);
    Some((parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_has_two_ids() {
        assert_eq!(parts("00-aa-bb-01"), Some(("aa", "bb")));
        assert_eq!(parts("00"), None);
    }
}
