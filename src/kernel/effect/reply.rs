//! The one outcome that a call owes the world.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::outcome::{AnyOutcome, Outcome};

use super::Outcomes;
use super::in_flight::Ticket;

/// Makes the outcome of a call whose code panicked.
pub(super) type OnPanic = Box<dyn FnOnce(Attempt) -> AnyOutcome + Send + Sync>;

/// Owes one outcome; sends it when told, or that of a panic when its holder panics.
pub(crate) struct Reply {
    outcomes: Outcomes,
    /// Names the attempt, and counts the call as out until the outcome is sent: when the world has it, the call is gone.
    ticket: Ticket,
    /// Taken by the outcome that comes first.
    on_panic: Option<OnPanic>,
}

impl Reply {
    /// A call that has begun.
    pub(super) fn new(outcomes: Outcomes, ticket: Ticket, on_panic: OnPanic) -> Self {
        Self { outcomes, ticket, on_panic: Some(on_panic) }
    }

    /// The call's place among those in flight.
    pub(crate) const fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Ends the call with what `outcome` makes of its attempt.
    pub(crate) fn end<O: Outcome>(mut self, outcome: impl FnOnce(Attempt) -> O) {
        self.on_panic = None;
        self.ticket.leave();
        (self.outcomes)(outcome(self.ticket.attempt()).into());
    }

    /// Ends a call that the world settles by itself.
    pub(crate) fn adopted(mut self) {
        self.on_panic = None;
        self.ticket.leave();
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        // Dropped without a panic, the runtime itself is going: then the turn must stay open for the next start.
        let Some(on_panic) = self.on_panic.take().filter(|_| std::thread::panicking()) else { return };
        self.ticket.leave();
        (self.outcomes)(on_panic(self.ticket.attempt()));
    }
}
