//! A session with very many turns goes, or is cleared, without holding up the others.

use std::collections::BTreeMap;

use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit::TURNS_ENDED_PER_STEP_MAX as PORTION;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::{AgentId, LogId, RefusalKind, SessionId};

use super::error_codes::SESSION_REMOVED;
use super::{ClearHistory, CreateSession, GetSession, ListSessions, RemoveSession, ResetSession};
use crate::agent::{GetAgent, RemoveAgents};
use crate::kernel::record;
use crate::testing::{Asked, TestWorld};
use crate::turn::{NewMessage, PostMessage, SendMessage, StopTurns, TurnReply};

const TURNS: usize = 3 * PORTION;
/// So many that some are left after four steps.
const VERY_MANY: usize = 6 * PORTION;

/// An agent with so many turns in its current session, and those who wait for them.
fn busy() -> (TestWorld, AgentId, SessionId, Vec<Asked<TurnReply>>) {
    busy_with(TURNS)
}

fn busy_with(turns: usize) -> (TestWorld, AgentId, SessionId, Vec<Asked<TurnReply>>) {
    let mut world = TestWorld::new();
    let agent = world.spawn("busy");
    let session = world.ask(GetAgent(agent)).unwrap().session;
    let send = SendMessage { agent, session: None, message: NewMessage::text("go") };
    let asked = (0..turns).map(|_| world.begin(send.clone())).collect();
    world.step();
    (world, agent, session, asked)
}

fn turns(world: &TestWorld) -> usize {
    world.engine.stats().turns_open
}

fn is_right(world: &mut TestWorld) {
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

fn post(
    world: &mut TestWorld,
    agent: AgentId,
    session: Option<SessionId>,
) -> Result<SessionId, agentsvc_components::Refusal> {
    let message = NewMessage::text("go");
    world.ask(PostMessage { agent, session, message }).map(|taken| taken.session)
}

/// Ends what is left over, step by step.
fn settle(world: &mut TestWorld) {
    for _ in 0..100 {
        is_right(world);
        if !world.engine.has_work() {
            return;
        }
        let before = turns(world);
        world.step();
        assert!(before.saturating_sub(turns(world)) <= PORTION, "one step has its bound");
    }
    panic!("it does not come to an end");
}

/// Removes the session, or puts another in its place.
fn remove(world: &mut TestWorld, agent: AgentId, session: SessionId, is_reset: bool) -> SessionId {
    if is_reset {
        world.ask(ResetSession { agent }).unwrap()
    } else {
        world.ask(RemoveSession { session }).unwrap().replaced_by.unwrap()
    }
}

#[test]
fn a_session_with_very_many_turns_is_gone_at_once_and_its_turns_end_step_by_step() {
    for is_reset in [false, true] {
        let (mut world, agent, session, asked) = busy();
        let fresh = remove(&mut world, agent, session, is_reset);
        assert!(turns(&world) >= TURNS - PORTION, "one step has its bound");
        is_right(&mut world);
        // Its id is not free before it has gone; others go on meanwhile.
        let refused = post(&mut world, agent, Some(session)).unwrap_err();
        assert_eq!((refused.kind, refused.retry_after_secs), (RefusalKind::Busy, Some(5)));
        assert_eq!(world.ask(GetSession::ById(session)).unwrap_err().kind, RefusalKind::NotFound);
        assert_eq!(world.ask(GetSession::Of(agent, session)).unwrap_err().kind, RefusalKind::NotFound);
        assert_eq!(world.ask(RemoveSession { session }).unwrap_err().kind, RefusalKind::NotFound);
        assert_eq!(world.ask(ListSessions { limit: 9, ..ListSessions::default() }).unwrap().items.len(), 1);
        assert_eq!(world.engine.stats().sessions, 1);
        assert_eq!(post(&mut world, agent, None).unwrap(), fresh);
        settle(&mut world);
        assert_eq!(turns(&world), 1);
        for asked in asked {
            assert_eq!(asked.take().unwrap().unwrap_err().code, Some(SESSION_REMOVED));
        }
        let ended = |event: &&Event| matches!(event, Event::TurnFailed { .. });
        assert_eq!(world.events.iter().filter(ended).count(), TURNS);
        assert_eq!(post(&mut world, agent, Some(session)).unwrap(), session);
        is_right(&mut world);
    }
}

#[test]
fn a_removal_of_a_session_goes_on_after_a_crash_wherever_it_was() {
    for crash_after in 0..4 {
        let (mut world, agent, session, asked) = busy();
        let fresh = remove(&mut world, agent, session, crash_after % 2 == 0);
        (0..crash_after).for_each(|_| drop(world.step()));
        let left = turns(&world);
        world.restart();
        drop(asked);
        assert!(turns(&world) <= left);
        assert!(world.ask(GetSession::ById(session)).is_err());
        assert_eq!(world.ask(GetAgent(agent)).unwrap().session, fresh);
        settle(&mut world);
        assert_eq!((turns(&world), world.engine.stats().sessions), (0, 1), "{crash_after}");
        // Nothing of it is left in the store.
        let sessions = world.store.keys().filter(|(space, key)| *space == Space::World && key[0] == b's').count();
        assert_eq!(sessions, 1);
        world.restart();
        is_right(&mut world);
    }
}

#[test]
fn what_comes_back_for_a_session_that_is_gone_moves_nothing() {
    let (mut world, agent, session, _asked) = busy();
    // What a step may end is used up, so that the running turn is still there.
    let other = world.spawn("other");
    for _ in 0..PORTION {
        post(&mut world, other, None).unwrap();
    }
    let calls = std::mem::take(&mut world.calls);
    let gone = world.begin(RemoveAgents(vec![other]));
    let removed = world.begin(RemoveSession { session });
    world.step();
    assert!(gone.take().is_some() && removed.take().unwrap().is_ok());
    for call in calls {
        world.answer(call.attempt, "too late");
        is_right(&mut world);
    }
    settle(&mut world);
    assert_eq!((turns(&world), world.calls.len(), world.engine.stats().calls_out), (0, 0, 0));
    post(&mut world, agent, None).unwrap();
    assert_eq!(world.calls.len(), 1);
}

#[test]
fn messages_after_a_clear_are_answered_and_those_before_it_are_not() {
    for crashes in [false, true] {
        let (mut world, agent, session, asked) = busy();
        let before = world.ask(GetSession::ById(session)).unwrap().log;
        world.calls.clear();
        assert_eq!(world.ask(ClearHistory { agent }).unwrap(), TURNS as u64);
        assert!(turns(&world) >= TURNS - PORTION, "one step has its bound");
        let log = world.ask(GetSession::ById(session)).unwrap().log;
        assert_ne!(log, before);
        for _ in 0..2 {
            assert_eq!(post(&mut world, agent, None).unwrap(), session);
        }
        is_right(&mut world);
        if crashes {
            world.restart();
        }
        settle(&mut world);
        assert_eq!(turns(&world), 2);
        let ended: Vec<_> = asked.iter().filter_map(Asked::take).collect();
        assert!(ended.iter().all(|end| end.as_ref().unwrap_err().code == Some(SESSION_REMOVED)));
        assert!(crashes || ended.len() == TURNS);
        for ordinal in 0..2 {
            let call = world.next_call();
            assert_eq!((call.log, call.ordinal), (log, ordinal));
            world.answer(call.attempt, "here");
        }
        assert_eq!(world.texts(log), ["go", "here", "go", "here"]);
        let view = world.ask(GetSession::ById(session)).unwrap();
        assert_eq!((view.message_count, view.queued), (4, 0));
        world.restart();
        is_right(&mut world);
    }
}

#[test]
fn a_session_that_is_cleared_again_or_removed_meanwhile_ends_once() {
    for removes in [false, true] {
        let (mut world, agent, session, asked) = busy();
        world.ask(ClearHistory { agent }).unwrap();
        post(&mut world, agent, None).unwrap();
        if removes {
            remove(&mut world, agent, session, true);
        } else {
            assert_eq!(world.ask(ClearHistory { agent }).unwrap(), 1);
        }
        settle(&mut world);
        assert_eq!(turns(&world), 0);
        assert!(asked.iter().all(|asked| asked.take().unwrap().is_err()));
        assert_eq!(world.ask(GetSession::ById(session)).is_err(), removes);
    }
}

/// How many traces there are of each log.
fn traces(world: &TestWorld) -> BTreeMap<LogId, usize> {
    let rows = world.store.iter().filter(|((space, key), _)| *space == Space::Content && key[0] == b'y');
    let mut count = BTreeMap::new();
    rows.for_each(|((_, key), row)| {
        *count.entry(record::decode::<TraceRecord>(key, row).unwrap().log).or_default() += 1;
    });
    count
}

#[test]
fn histories_that_are_cleared_one_after_the_other_have_the_traces_of_their_own_turns() {
    for crashes in [false, true] {
        let (mut world, agent, session, _asked) = busy_with(VERY_MANY);
        let mut logs = vec![world.ask(GetSession::ById(session)).unwrap().log];
        // Two in a row, and two more with messages between them.
        for messages in [0, 0, 3, 2] {
            for _ in 0..messages {
                world.begin(PostMessage { agent, session: None, message: NewMessage::text("go") });
            }
            assert!(turns(&world) > 0, "the first ones still end");
            world.begin(ClearHistory { agent });
            world.step();
            logs.push(world.ask(GetSession::ById(session)).unwrap().log);
            is_right(&mut world);
        }
        if crashes {
            world.restart();
            is_right(&mut world);
        }
        settle(&mut world);
        assert_eq!(turns(&world), 0);
        assert_eq!(logs[1], logs[2], "there was nothing to clear");
        let expected = BTreeMap::from([(logs[0], VERY_MANY), (logs[2], 3), (logs[3], 2)]);
        assert_eq!(traces(&world), expected, "{crashes}");
    }
}

#[test]
fn an_agent_that_goes_while_its_session_does_takes_it_along() {
    for crashes in [false, true] {
        let (mut world, agent, session, _asked) = busy();
        remove(&mut world, agent, session, false);
        assert!(world.ask(RemoveAgents(vec![agent])).unwrap()[0].1.is_ok());
        if crashes {
            world.restart();
        }
        settle(&mut world);
        assert_eq!((turns(&world), world.engine.stats().sessions), (0, 0));
    }
}

#[test]
fn those_that_go_share_what_a_step_may_end() {
    let (mut world, _, session, _asked) = busy();
    let other = world.spawn("other");
    for _ in 0..TURNS {
        world.begin(PostMessage { agent: other, session: None, message: NewMessage::text("go") });
    }
    world.step();
    let of = |world: &mut TestWorld, agent| {
        world.engine.world().resource::<crate::kernel::index::Index>().turns_of(agent).count()
    };
    let (one, two) = {
        let world = world.engine.world();
        let session = crate::kernel::index::session(world, session).unwrap();
        let one = world.get::<agentsvc_components::session::Session>(session).unwrap().agent;
        (one, crate::kernel::index::agent(world, other).unwrap())
    };
    world.begin(RemoveAgents(vec![other]));
    world.begin(RemoveSession { session });
    world.step();
    let left = (of(&mut world, one), of(&mut world, two));
    assert_eq!(left, (TURNS - PORTION / 2, TURNS - PORTION / 2), "each has half of the step");
    // A command takes no more than half of the next step from them.
    let third = world.spawn("third");
    for _ in 0..PORTION / 2 + 1 {
        world.begin(PostMessage { agent: third, session: None, message: NewMessage::text("go") });
    }
    let before = turns(&world);
    world.begin(RemoveAgents(vec![third]));
    world.step();
    assert!(of(&mut world, one) < left.0 && of(&mut world, two) < left.1 && turns(&world) < before + PORTION);
    settle(&mut world);
}

/// A stop that was told is kept.
#[test]
fn a_stop_of_very_many_turns_of_an_agent_that_runs_outlives_a_crash() {
    let mut world = TestWorld::new();
    let agent = world.spawn("busy");
    for _ in 0..2 * PORTION {
        let session = Some(world.ask(CreateSession { agent, label: None }).unwrap());
        world.begin(PostMessage { agent, session, message: NewMessage::text("go") });
    }
    world.step();
    assert_eq!(world.ask(StopTurns { agent, session: None }).unwrap(), 2 * PORTION);
    world.restart();
    world.calls.clear();
    settle(&mut world);
    assert_eq!((turns(&world), world.calls.len()), (0, 0));
}
