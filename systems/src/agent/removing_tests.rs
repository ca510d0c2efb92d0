//! An agent with very many turns goes without holding up the others.

use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit::TURNS_ENDED_PER_STEP_MAX as PORTION;
use agentsvc_components::turn::TurnEnd;
use agentsvc_components::{AgentId, SessionId};

use super::{GetAgent, ListAgents, RemoveAgents, StartAgents, StopAgents};
use crate::agent::agent_named;
use crate::session::error_codes::SESSION_REMOVED;
use crate::session::{ClearHistory, CreateSession, GetSession, ListSessions};
use crate::testing::{Asked, TestWorld};
use crate::turn::{NewMessage, PostMessage, SendMessage, TurnReply};

/// An agent with so many turns in so many sessions, and those who wait for them.
fn busy(sessions: usize, turns: usize) -> (TestWorld, AgentId, Vec<SessionId>, Vec<Asked<TurnReply>>) {
    let mut world = TestWorld::new();
    let agent = world.spawn("busy");
    let sessions: Vec<SessionId> =
        (0..sessions).map(|_| world.ask(CreateSession { agent, label: None }).unwrap()).collect();
    let mut asked = Vec::new();
    for at in 0..turns {
        let session = Some(sessions[at % sessions.len()]);
        asked.push(world.begin(SendMessage { agent, session, message: NewMessage::text("go") }));
    }
    world.step();
    (world, agent, sessions, asked)
}

fn turns(world: &TestWorld) -> usize {
    world.engine.stats().turns_open
}

fn is_right(world: &mut TestWorld) {
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

/// Ends what is left over, step by step; says in how many steps.
fn settle(world: &mut TestWorld) -> usize {
    let mut steps = 0;
    while world.engine.has_work() {
        let before = turns(world);
        world.step();
        assert!(before - turns(world) <= PORTION, "one step has its bound");
        is_right(world);
        steps += 1;
        assert!(steps < 100, "it comes to an end");
    }
    steps
}

#[test]
fn an_agent_with_very_many_turns_is_gone_at_once_and_its_turns_end_step_by_step() {
    let (mut world, agent, sessions, asked) = busy(300, 3 * PORTION);
    let other = world.spawn("other");
    assert_eq!(turns(&world), 3 * PORTION);
    assert!(world.ask(RemoveAgents(vec![agent])).unwrap()[0].1.is_ok());
    // A part of them ended with the command.
    assert!(turns(&world) < 3 * PORTION && turns(&world) >= 2 * PORTION, "{}", turns(&world));
    is_right(&mut world);
    assert!(world.ask(GetAgent(agent)).is_err());
    for session in &sessions {
        assert!(world.ask(GetSession::ById(*session)).is_err());
    }
    let listed = world.ask(ListSessions { limit: 1_000, ..ListSessions::default() }).unwrap();
    assert_eq!(listed.items.len(), 1, "only that of the other agent");
    assert_eq!(world.ask(ListAgents::default()).unwrap().items.len(), 1);
    let post = |agent, session| PostMessage { agent, session, message: NewMessage::text("go") };
    assert!(world.ask(post(agent, Some(sessions[0]))).is_err());
    assert!(world.ask(RemoveAgents(vec![agent])).unwrap()[0].1.is_err(), "it is gone already");
    // Its name is free, and others go on meanwhile.
    let again = world.spawn("busy");
    assert_ne!(again, agent);
    world.ask(post(other, None)).unwrap();
    settle(&mut world);
    assert_eq!((turns(&world), world.engine.stats().sessions), (1, 2));
    for asked in asked {
        assert_eq!(asked.take().unwrap().unwrap_err().code, Some(SESSION_REMOVED));
    }
    let ended = |event: &&Event| matches!(event, Event::TurnFailed { agent: its, .. } if *its == agent);
    assert_eq!(world.events.iter().filter(ended).count(), 3 * PORTION);
    let swept = world.effects.iter().filter(|effect| effect.get::<SweepAgent>().is_some());
    assert_eq!(swept.count(), 1);
}

#[test]
fn a_removal_goes_on_after_a_crash_wherever_it_was() {
    for crash_after in 0..4 {
        let (mut world, agent, sessions, asked) = busy(40, 3 * PORTION);
        world.ask(RemoveAgents(vec![agent])).unwrap();
        (0..crash_after).for_each(|_| drop(world.step()));
        let left = turns(&world);
        world.restart();
        drop(asked);
        assert!(turns(&world) <= left);
        assert!(world.ask(GetAgent(agent)).is_err() && world.ask(GetSession::ById(sessions[39])).is_err());
        let again = world.spawn("busy");
        settle(&mut world);
        assert_eq!((turns(&world), world.engine.stats().sessions), (0, 1), "{crash_after}");
        assert_eq!(agent_named(world.engine.world(), "busy").is_some(), world.ask(GetAgent(again)).is_ok());
        // Nothing of it is left in the store.
        world.restart();
        assert_eq!((turns(&world), world.engine.stats().agents), (0, 1));
        is_right(&mut world);
    }
}

#[test]
fn what_comes_back_for_an_agent_that_is_gone_moves_nothing() {
    let (mut world, agent, ..) = busy(2, 3 * PORTION);
    let calls = std::mem::take(&mut world.calls);
    assert_eq!(calls.len(), 2);
    world.ask(RemoveAgents(vec![agent])).unwrap();
    for call in calls {
        world.answer(call.attempt, "too late");
        is_right(&mut world);
    }
    settle(&mut world);
    assert_eq!((turns(&world), world.calls.len(), world.engine.stats().calls_out), (0, 0, 0));
}

#[test]
fn agents_that_go_together_share_what_a_step_may_end() {
    let mut world = TestWorld::new();
    let agents: Vec<AgentId> = (0..20).map(|at| world.spawn(&format!("a{at}"))).collect();
    for agent in &agents {
        for _ in 0..PORTION / 8 {
            world.ask(PostMessage { agent: *agent, session: None, message: NewMessage::text("go") }).unwrap();
        }
    }
    let before = turns(&world);
    assert!(world.ask(RemoveAgents(agents)).unwrap().iter().all(|(_, gone)| gone.is_ok()));
    assert_eq!(before - turns(&world), PORTION);
    assert_eq!(world.engine.stats().agents, 0);
    settle(&mut world);
    assert_eq!((turns(&world), world.engine.stats().sessions), (0, 0));
}

#[test]
fn a_stop_of_very_many_turns_is_bounded_too_and_a_crash_does_not_undo_it() {
    for crashes in [false, true] {
        let (mut world, agent, _, asked) = busy(2 * PORTION, 4 * PORTION);
        let calls = std::mem::take(&mut world.calls);
        assert!(!calls.is_empty() && calls.len() < 2 * PORTION);
        world.ask(StopAgents(vec![agent])).unwrap();
        assert!(turns(&world) >= 3 * PORTION, "some are left for the next steps");
        if crashes {
            world.restart();
        }
        settle(&mut world);
        // Those that were out end when they come back, however they do.
        for call in calls {
            world.answer(call.attempt, "too late");
        }
        settle(&mut world);
        assert_eq!((world.engine.stats().calls_out, world.calls.len()), (0, 0));
        let ends: Vec<_> = asked.iter().filter_map(Asked::take).map(|end| end.map(|reply| reply.end)).collect();
        assert!(ends.iter().all(|end| *end == Ok(TurnEnd::Stopped)), "{ends:?}");
        // Those that waited behind them wait for the next start.
        let left = turns(&world);
        assert!(if crashes { left < 4 * PORTION } else { left == 2 * PORTION && ends.len() == 2 * PORTION }, "{left}");
        world.ask(StartAgents(vec![agent])).unwrap();
        assert!(!world.calls.is_empty());
        is_right(&mut world);
    }
}

#[test]
fn a_long_history_is_cleared_step_by_step_and_says_how_much_it_was() {
    let (mut world, agent, _, asked) = busy(400, 800);
    let cleared = world.begin(ClearHistory { agent });
    world.step();
    assert!(cleared.take().is_none(), "the reply comes when all is cleared");
    assert!(turns(&world) > 0);
    settle(&mut world);
    assert_eq!((cleared.take().unwrap().unwrap(), turns(&world)), (800, 0));
    for asked in asked {
        assert_eq!(asked.take().unwrap().unwrap_err().code, Some(SESSION_REMOVED));
    }
    assert_eq!(world.engine.stats().sessions, 401);
    let other = world.spawn("other");
    assert_eq!(world.ask(ClearHistory { agent: other }).unwrap(), 0);
}
