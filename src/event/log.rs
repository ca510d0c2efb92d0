//! What happened in the world, as log lines.

use agentsvc_components::event::Event;
use agentsvc_systems::session::error_codes::SESSION_REMOVED;

/// Agents' lives are log lines for people; the traffic of turns is for those who ask for it.
pub(crate) fn log(event: &Event) {
    let kind = event.kind().as_str();
    match event {
        // The line of what was removed stands for all its turns.
        Event::TurnFailed { agent, turn, code, .. } if *code == *SESSION_REMOVED => {
            tracing::debug!(kind, %agent, %turn, %code);
        }
        Event::TurnFailed { agent, turn, code, error } => {
            tracing::warn!(kind, %agent, %turn, %code, %error, "turn ended without an answer");
        }
        Event::ToolRefused { agent, turn, tool, breaker } => {
            tracing::warn!(kind, %agent, %turn, %tool, breaker, "a tool call was refused");
        }
        Event::ToolUnknown { agent, turn, tool, index } => {
            tracing::warn!(kind, %agent, %turn, %tool, index, "the effect of a tool call is unknown");
        }
        Event::AgentSpawned { agent, name, .. } | Event::AgentTerminated { agent, name, .. } => {
            tracing::info!(kind, %agent, %name);
        }
        Event::AgentStarted { agent } | Event::AgentStopped { agent } | Event::AgentUpdated { agent } => {
            tracing::info!(kind, %agent);
        }
        Event::SessionCompacted { agent, session, messages_before, messages_after } => {
            tracing::info!(kind, %agent, %session, messages_before, messages_after);
        }
        Event::MessageReceived { agent, session, turn, .. } => {
            tracing::debug!(kind, %agent, %turn, %session);
        }
        Event::TurnStarted { agent, turn } => tracing::debug!(kind, %agent, %turn),
        Event::TurnCompleted { agent, turn, usage, iterations, .. } => {
            let (input_tokens, output_tokens) = (usage.input_tokens, usage.output_tokens);
            tracing::debug!(kind, %agent, %turn, input_tokens, output_tokens, iterations);
        }
        Event::ToolCalled { agent, turn, tool, is_error } => {
            tracing::debug!(kind, %agent, %turn, %tool, is_error);
        }
        Event::WorkflowFailed { workflow, run, name, error, .. } => {
            tracing::warn!(kind, %workflow, %run, %name, %error, "a workflow's run failed");
        }
        Event::BudgetWarning { scope, period, .. } => {
            tracing::warn!(kind, %scope, %period, "80 percent of a budget is used")
        }
        Event::BudgetExceeded { scope, period, .. } => tracing::warn!(kind, %scope, %period, "a budget is exhausted"),
        _ => tracing::debug!(kind, agent = event.agent().map(tracing::field::display)),
    }
}
