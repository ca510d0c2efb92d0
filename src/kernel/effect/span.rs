//! The spans of effects. What came of a traced request bears its trace id; everything else is there at the level `debug`
//! only (`docs/observability.md`).

use agentsvc_components::AgentId;
use agentsvc_components::kernel::attempt::Attempt;
use tracing::Span;

/// The span of one effect. `trace` is the `traceparent` of the request that it goes back to.
pub(crate) fn of(effect: &'static str, what: &str, attempt: Attempt, agent: AgentId, trace: Option<&str>) -> Span {
    let number = attempt.number;
    let Some((trace_id, parent_id)) = trace.and_then(parts) else {
        return tracing::debug_span!("effect", effect, what, %agent, turn = %attempt.job, attempt = number);
    };
    let turn = attempt.job;
    tracing::info_span!("effect", effect, what, %agent, %turn, attempt = number, trace_id, parent_span_id = parent_id)
}

/// The trace id and the span id of a `traceparent`.
fn parts(trace: &str) -> Option<(&str, &str)> {
    let mut parts = trace.split('-').skip(1);
    Some((parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentsvc_components::TurnId;
    use parking_lot::Mutex;
    use tracing::Subscriber;
    use tracing::span::{Attributes, Id};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
    use uuid::Uuid;

    use super::*;
    use crate::kernel::testing::Fields;

    /// Keeps a line of each span.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Told {
        fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
            let metadata = attributes.metadata();
            let mut fields = Fields(format!("{} {}", metadata.level(), metadata.name()));
            attributes.record(&mut fields);
            self.0.lock().push(fields.0);
        }
    }

    #[test]
    fn an_effect_says_whose_it_is_and_which_request_it_goes_back_to() {
        let (agent, turn) = (AgentId(Uuid::from_u128(1)), TurnId(Uuid::from_u128(2)));
        let attempt = Attempt::of(turn, 3);
        let told = Told::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(told.clone()), || {
            drop(of("call_model", "echo-1", attempt, agent, Some("00-aa-bb-01")));
            drop(of("run_tool", "look", attempt, agent, None));
        });
        let whose = format!("agent={agent} turn={turn} attempt=3");
        let expected = [
            format!("INFO effect effect=\"call_model\" what=\"echo-1\" {whose} trace_id=\"aa\" parent_span_id=\"bb\""),
            format!("DEBUG effect effect=\"run_tool\" what=\"look\" {whose}"),
        ];
        assert_eq!(*told.0.lock(), expected);
    }

    #[test]
    fn a_traceparent_has_two_ids() {
        assert_eq!(parts("00-aa-bb-01"), Some(("aa", "bb")));
        assert_eq!(parts("00"), None);
    }
}
