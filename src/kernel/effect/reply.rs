//! The one outcome that a call owes the world.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::{FailureCode, ModelEnd, ModelFailure, OutcomeKind, SummaryEnd, ToolEnd};

use super::in_flight::Ticket;
use crate::daemon::performer::Outcomes;

/// Owes one outcome; sends it when told, or a failure when its holder panics.
pub(crate) struct Reply {
    outcomes: Outcomes,
    /// Names the attempt, and counts the call as out until the outcome is sent: when the world has it, the call is gone.
    ticket: Ticket,
    /// What to send on a panic; taken by the outcome that comes first.
    debt: Option<Debt>,
}

/// What a panicking call leaves behind.
pub(crate) enum Debt {
    /// A model call.
    Model,
    /// The writing of a summary.
    Summary,
    /// A tool call, with its end already written.
    Tool(ToolEnd),
}

impl Reply {
    /// A call that has begun.
    pub(crate) fn new(outcomes: Outcomes, ticket: Ticket, debt: Debt) -> Self {
        Self { outcomes, ticket, debt: Some(debt) }
    }

    /// The call's place among those in flight.
    pub(crate) const fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Ends a model call.
    pub(crate) fn model(self, end: ModelEnd) {
        let attempt = self.ticket.attempt();
        self.send(OutcomeKind::Model(attempt, end));
    }

    /// Ends the writing of a summary.
    pub(crate) fn summary(self, end: SummaryEnd) {
        let attempt = self.ticket.attempt();
        self.send(OutcomeKind::Summary(attempt, end));
    }

    /// Ends a tool call.
    pub(crate) fn tool(self, end: ToolEnd) {
        let attempt = self.ticket.attempt();
        self.send(OutcomeKind::Tool(attempt, end));
    }

    /// Ends a tool call that the world settles by itself.
    pub(crate) fn adopted(mut self) {
        self.debt = None;
        self.ticket.leave();
    }

    fn send(mut self, outcome: OutcomeKind) {
        self.debt = None;
        self.ticket.leave();
        (self.outcomes)(outcome);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        // Dropped without a panic, the runtime itself is going: then the turn must stay open for the next start.
        let Some(debt) = self.debt.take().filter(|_| std::thread::panicking()) else { return };
        self.ticket.leave();
        (self.outcomes)(panicked(self.ticket.attempt(), debt));
    }
}

fn panicked(attempt: Attempt, debt: Debt) -> OutcomeKind {
    match debt {
        Debt::Model => {
            let message = "The model call failed inside the daemon; its log says more.".to_owned();
            OutcomeKind::Model(
                attempt,
                ModelEnd::Failed(ModelFailure { code: FailureCode::Internal, message, spent: Vec::new() }),
            )
        }
        Debt::Summary => {
            let written = Err("its writing failed inside the daemon; the log says more".to_owned());
            OutcomeKind::Summary(attempt, SummaryEnd { usage: Usage::default(), written, calls: Vec::new() })
        }
        Debt::Tool(end) => OutcomeKind::Tool(attempt, end),
    }
}
