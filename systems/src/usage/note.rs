//! Model calls that no turn made, such as the test of a provider: they cost money too.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::usage::CallUse;
use agentsvc_components::usage::record::CallRecord;
use agentsvc_components::{AgentId, Micros, SessionId};

use super::{CallEnded, calls, settle};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::mint;
use crate::kernel::reaction::react;

/// Writes the usage event of a call that is over and was no turn's own, and gives back what was reserved for it. It counts at
/// the sums and budgets that it was reserved at; without a reservation, at everybody's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoteModelCall {
    /// What the event names as its channel.
    pub channel: Box<str>,
    /// What [`ReserveProbe`](crate::budget::ReserveProbe) or [`ReserveSampling`](crate::budget::ReserveSampling) gave for it;
    /// `None` of a call for which nothing was reserved.
    #[serde(default)]
    pub grant: Option<Attempt>,
    /// The call.
    pub used: CallUse,
}

command! {
    /// What it cost, sent when the event is on disk; nothing when it was settled before, as a start does.
    write "note_model_call" NoteModelCall => Micros, Root, |it, world| {
        let Self { channel, grant, used } = it;
        let ended = match grant {
            Some(grant) => calls::end(world, grant),
            None => Some(unreserved(world, channel, &used)),
        };
        let Some(call) = ended else { return Answer::Stored(Micros::ZERO) };
        let (sum, _) = settle::all(world, &call, vec![used]);
        react(world, &CallEnded { agent: call.agent, above: call.above, user: call.user });
        Answer::Stored(sum.cost)
    }
}

/// A call of this moment for which nothing was reserved.
fn unreserved(world: &mut World, channel: Box<str>, used: &CallUse) -> CallRecord {
    let at = world.resource::<Now>().0;
    CallRecord {
        job: mint(world, Slot::ROOT),
        number: 1,
        agent: AgentId(Uuid::nil()),
        above: Vec::new(),
        user: None,
        agent_name: "".into(),
        session: SessionId(Uuid::nil()),
        channel,
        provider: used.provider.clone(),
        model: used.model.clone(),
        at,
        reserved: Micros::ZERO,
        is_bounded: false,
        is_aside: false,
        strangers: Taint::NONE,
        began_in: None,
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::Usage;
    use agentsvc_components::usage::Scope;

    use super::*;
    use crate::budget::{GetBudget, ListAgentBudgets};
    use crate::testing::TestWorld;
    use crate::usage::{events_for_tests, priced_for_tests};

    #[test]
    fn a_call_that_is_nobodys_is_one_event_of_everybodys() {
        let mut world = TestWorld::with(priced_for_tests());
        let used = CallUse {
            provider: "builtin".into(),
            model: "builtin".into(),
            usage: Usage::of(10, 5),
            latency_ms: 7,
            ..CallUse::default()
        };
        let note = NoteModelCall { channel: "provider_test".into(), grant: None, used };
        assert_eq!(world.ask(note.clone()).unwrap(), Micros(20));
        assert_eq!(world.ask(note).unwrap(), Micros(20));
        let events = events_for_tests(&world);
        assert_eq!(events.len(), 2, "each has a key of its own");
        assert_eq!(
            (&*events[0].channel, events[0].agent, events[0].call.usage.cost),
            ("provider_test", AgentId(Uuid::nil()), Micros(20))
        );
        assert_eq!(world.ask(GetBudget(Scope::Global)).unwrap().total.cost, Micros(40));
        assert!(world.ask(ListAgentBudgets).unwrap().is_empty());
    }
}
