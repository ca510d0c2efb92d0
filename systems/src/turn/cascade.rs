//! Turns that messages of agents begin, one after the other. Nobody need wait for them (`async`), so that such a row would
//! go on, and double, for ever. The bounds are those of triggers, and both count in one depth: an agent that sends, fires
//! a trigger and sends again gets no further than one that only sends.

use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;

use agentsvc_components::turn::error_codes::{AGENT_CASCADE_RATE_LIMITED, AGENT_CASCADE_TOO_DEEP};
use agentsvc_components::{AgentId, Refusal, RefusalKind, Timestamp};

use crate::config::Settings;
use crate::kernel::clock::Now;
use crate::turn::metrics::TurnTotals;

/// The time in which messages are counted.
const MINUTE_MS: u64 = 60_000;

/// What each agent sent lately from turns that were not begun by a person or the clock. An entry lives as long as its
/// agent.
#[derive(Resource, Default)]
pub(crate) struct Cascades(HashMap<AgentId, Minute>);

/// Messages of one agent from `from` on.
struct Minute {
    from: Timestamp,
    sent: u32,
}

impl Minute {
    /// A clock that was set back ends what was counted by it.
    fn holds(&self, now: Timestamp) -> bool {
        self.from <= now && now.ms_since(self.from) < MINUTE_MS
    }
}

/// May `sender` begin a turn in another agent, from a turn of this depth?
///
/// # Errors
/// `agent_cascade_too_deep` from a turn of `[triggers] max_depth`; `agent_cascade_rate_limited` when the minute has had
/// `[triggers] cascade_per_minute` of its messages from turns of depth 1 and more.
pub(super) fn check(world: &mut World, sender: AgentId, depth: u8) -> Result<(), Refusal> {
    let settings = world.resource::<Settings>().triggers;
    if depth >= settings.max_depth {
        world.resource_mut::<TurnTotals>().too_deep += 1;
        let text = format!(
            "this turn is the last of {} that agents and triggers may begin one after the other; it cannot message agents",
            settings.max_depth
        );
        return Err(Refusal::conflict(text).with_code(AGENT_CASCADE_TOO_DEEP));
    }
    let now = world.resource::<Now>().0;
    let minute = world.resource::<Cascades>().0.get(&sender).filter(|minute| depth > 0 && minute.holds(now));
    let Some(minute) = minute.filter(|minute| minute.sent >= settings.cascade_per_minute) else { return Ok(()) };
    let left_ms = MINUTE_MS.saturating_sub(now.ms_since(minute.from));
    let wait_secs = u32::try_from(left_ms.div_ceil(1_000)).unwrap_or(u32::MAX).max(1);
    world.resource_mut::<TurnTotals>().rate_limited += 1;
    let text = format!(
        "this agent has sent {} messages within a minute in turns that other agents or triggers began; try again in \
         {wait_secs} seconds",
        settings.cascade_per_minute
    );
    let refusal = Refusal::new(RefusalKind::TooMany, text).with_code(AGENT_CASCADE_RATE_LIMITED);
    Err(Refusal { retry_after_secs: Some(wait_secs), ..refusal })
}

/// `sender` has begun a turn in another agent, from a turn of this depth.
pub(super) fn sent(world: &mut World, sender: AgentId, depth: u8) {
    if depth == 0 {
        return;
    }
    let now = world.resource::<Now>().0;
    let minute = &mut world.resource_mut::<Cascades>().0;
    let minute = minute.entry(sender).or_insert(Minute { from: now, sent: 0 });
    if !minute.holds(now) {
        *minute = Minute { from: now, sent: 0 };
    }
    minute.sent = minute.sent.saturating_add(1);
}

/// The agent leaves the world.
pub(super) fn agent_removed(world: &mut World, agent: AgentId) {
    world.resource_mut::<Cascades>().0.remove(&agent);
}

#[cfg(test)]
mod tests {
    use agentsvc_components::turn::effect::ToolRun;

    use super::super::tool_tests::{asks_other, delegate, model_asks, runs};
    use super::*;
    use crate::testing::TestWorld;

    /// The model of the next call asks for one message to another agent.
    fn asks_again(world: &mut TestWorld) -> ToolRun {
        model_asks(world, &[("agent_send", "{}")]);
        runs(world).remove(0)
    }

    /// The turn that has sent comes to its end.
    fn ends(world: &mut TestWorld, run: &ToolRun) {
        let place = world.calls.iter().position(|call| call.attempt.job == run.attempt.job).unwrap();
        let call = world.calls.remove(place);
        world.answer(call.attempt, "sent");
    }

    /// Two agents send to each other for ever, from one message on; gives how many turns that made.
    fn storm(world: &mut TestWorld, restarts: bool) -> (u32, Refusal) {
        let ping = world.spawn("ping");
        world.spawn("pong");
        let (_asked, mut run) = asks_other(world, ping);
        for sent in 0..40 {
            let to = if sent % 2 == 0 { "pong" } else { "ping" };
            if let Err(refusal) = delegate(world, &run, to, false) {
                return (sent, refusal);
            }
            ends(world, &run);
            if restarts && sent % 3 == 1 {
                world.restart();
            }
            run = asks_again(world);
        }
        panic!("it does not end")
    }

    #[test]
    fn messages_that_nobody_waits_for_end_after_so_many_turns_in_a_row_even_over_restarts() {
        for restarts in [false, true] {
            let mut settings = Settings::default();
            settings.triggers.max_depth = 5;
            let mut world = TestWorld::with(settings);
            let (sent, refusal) = storm(&mut world, restarts);
            assert_eq!((sent, refusal.code), (5, Some(AGENT_CASCADE_TOO_DEEP)), "{restarts}");
            assert!(refusal.message.contains("last of 5"), "{refusal:?}");
            assert_eq!(world.engine.world().resource::<TurnTotals>().too_deep, 1);
            assert_eq!(world.engine.check(), Vec::<String>::new());
        }
    }

    #[test]
    fn an_awaited_message_counts_in_the_same_row() {
        let mut settings = Settings::default();
        settings.triggers.max_depth = 2;
        let mut world = TestWorld::with(settings);
        let a = world.spawn("a");
        world.spawn("b");
        world.spawn("c");
        let (_asked, run) = asks_other(&mut world, a);
        delegate(&mut world, &run, "b", true).unwrap();
        let run = asks_again(&mut world);
        delegate(&mut world, &run, "c", true).unwrap();
        let run = asks_again(&mut world);
        assert_eq!(delegate(&mut world, &run, "a", false).unwrap_err().code, Some(AGENT_CASCADE_TOO_DEEP));
    }

    #[test]
    fn a_minute_takes_so_many_messages_of_turns_that_a_message_of_an_agent_began() {
        let mut settings = Settings::default();
        settings.triggers.cascade_per_minute = 3;
        let mut world = TestWorld::with(settings);
        let (a, b) = (world.spawn("a"), world.spawn("b"));
        world.spawn("c");
        let many = [("agent_send", "{\"n\":1}"), ("agent_send", "{\"n\":2}"), ("agent_send", "{\"n\":3}")];
        let sends = |world: &mut TestWorld| {
            model_asks(world, &[many[0], many[1], many[2], ("agent_send", "{\"n\":4}"), ("agent_send", "{\"n\":5}")]);
            runs(world)
        };
        let _asked = super::super::tool_tests::send(&mut world, a);
        let out = sends(&mut world);
        assert!(out[1..].iter().all(|run| delegate(&mut world, run, "c", false).is_ok()), "a person's turn may");
        delegate(&mut world, &out[0], "b", false).unwrap();
        let place = world.calls.iter().position(|call| call.agent == b).unwrap();
        world.calls.swap(0, place);
        let out = sends(&mut world);
        let ended: Vec<_> = out.iter().map(|run| delegate(&mut world, run, "c", false)).collect();
        assert!(ended[..3].iter().all(Result::is_ok), "{ended:?}");
        for refused in &ended[3..] {
            let refusal = refused.as_ref().unwrap_err();
            assert_eq!((refusal.kind, refusal.code), (RefusalKind::TooMany, Some(AGENT_CASCADE_RATE_LIMITED)));
            assert_eq!(refusal.retry_after_secs, Some(60));
        }
        assert_eq!(world.engine.world().resource::<TurnTotals>().rate_limited, 2);
        world.now = world.now.plus_ms(60_000);
        assert!(delegate(&mut world, &out[3], "c", false).is_ok(), "the next minute");
        let before = world.now;
        world.now = before.plus_ms(-600_000);
        assert!(delegate(&mut world, &out[4], "c", false).is_ok(), "a clock that was set back holds nobody up");
    }
}
