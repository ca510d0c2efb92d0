//! How much of the store the sessions of a family and of a user take.

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::limit::POOL_SHARES;
use agentsvc_components::session::message::{Block, ToolCall};
use agentsvc_components::session::{STORED_UNIT, Session};
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::{Actor, AgentId, ErrorCode, LogId, Refusal, RefusalKind, SessionId, Timestamp, TurnId};
use uuid::Uuid;

use super::error_codes::SESSION_STORAGE_FULL;
use super::limits::SESSIONS_MAX;
use super::{ClearHistory, CreateSession, ImportSession, ImportedMessage, RemoveSession, ResetSession, Stored, Taken};
use crate::agent::{RemoveAgents, SetOwner, SpawnChild};
use crate::config::Settings;
use crate::kernel::index;
use crate::kernel::record::log_prefixes;
use crate::testing::{Asked, TestWorld, answer, share_is_full, spawn_command, two_users};
use crate::turn::{NewMessage, PostMessage, SendMessage, TurnReply};

const KIB: u64 = 1 << 10;
const ANN: UserId = UserId(Uuid::from_u128(1));

fn world(family: u64, user: u64) -> TestWorld {
    TestWorld::with(Settings {
        family_sessions_max_bytes: family,
        user_sessions_max_bytes: user,
        ..Settings::default()
    })
}

/// A turn with a message and an answer of so many bytes.
fn talk(world: &mut TestWorld, agent: AgentId, bytes: usize) -> Result<(), Refusal> {
    let asked = send(world, agent, bytes);
    if let Some(reply) = asked.take() {
        return reply.map(drop);
    }
    let attempt = world.next_call().attempt;
    world.answer(attempt, &"a".repeat(bytes));
    asked.take().expect("it has ended").map(drop)
}

fn send(world: &mut TestWorld, agent: AgentId, bytes: usize) -> Asked<TurnReply> {
    let message = NewMessage::text("m".repeat(bytes));
    let asked = world.begin(SendMessage { agent, session: None, message });
    world.step();
    asked
}

/// What the sessions of an agent take, and what the rows of its logs are.
fn taken(world: &TestWorld, agent: AgentId) -> (u64, u64) {
    let inside = world.engine.world();
    let at = index::agent(inside, agent).unwrap();
    let ids = inside.resource::<index::Index>().sessions_of(at, None);
    let logs: Vec<LogId> =
        ids.map(|id| inside.get::<Session>(index::session(inside, id).unwrap()).unwrap().log).collect();
    let of = |log: &LogId| {
        let prefixes: Vec<Vec<u8>> = log_prefixes(*log).map(|prefix| prefix.to_vec()).collect();
        let rows =
            world.store.iter().filter(move |((_, key), _)| prefixes.iter().any(|prefix| key.starts_with(prefix)));
        rows.map(|((_, key), value)| ((key.len() + value.len()) as u64).next_multiple_of(STORED_UNIT)).sum::<u64>()
    };
    (inside.get::<Agent>(at).unwrap().stored, logs.iter().map(of).sum())
}

fn code_of(result: Result<(), Refusal>) -> Option<ErrorCode> {
    result.err().and_then(|refusal| refusal.code)
}

fn child_of(world: &mut TestWorld, parent: AgentId, name: &str) -> AgentId {
    let child = spawn_command(name);
    world.ask(SpawnChild { parent, child, by: None }).unwrap().agent
}

fn parent(world: &mut TestWorld) -> AgentId {
    world.ask(spawner("parent")).unwrap().agent
}

/// An agent that may spawn others.
fn spawner(name: &str) -> crate::agent::SpawnAgent {
    let mut command = spawn_command(name);
    command.manifest.capabilities.agent_spawn = Some(true);
    command.hash = crate::manifest::hash(&command.manifest);
    command
}

#[test]
fn every_row_of_a_session_counts_until_it_goes_over_a_restart() {
    let mut world = world(1 << 30, 1 << 30);
    let agent = world.spawn("a");
    assert_eq!(taken(&world, agent), (0, 0));
    talk(&mut world, agent, 3_000).unwrap();
    let asked = send(&mut world, agent, 1);
    let attempt = world.next_call().attempt;
    let call = ToolCall { id: "c".into(), name: "look".into(), input: "{}".into() };
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
    let effects = std::mem::take(&mut world.effects);
    let run = effects.into_iter().find_map(|effect| effect.take::<ToolRun>().ok()).unwrap();
    let (content, whole) = crate::turn::tool_result::fit("r".repeat(100_000), run.ordinal, run.index);
    let end = ToolEnd {
        index: run.index,
        call: run.call.clone(),
        content,
        whole,
        notice: None,
        brought: None,
        status: ToolStatus::Ok,
    };
    world.outcome(ToolOutcome(run.attempt, end));
    let attempt = world.next_call().attempt;
    world.answer(attempt, "done");
    assert!(asked.take().unwrap().is_ok());
    let (counted, stored) = taken(&world, agent);
    assert!(counted == stored && counted > 106_000, "{counted} {stored}");
    world.restart();
    assert_eq!(taken(&world, agent), (stored, stored));
    let message = |text: &str| ImportedMessage {
        role: agentsvc_components::session::message::Role::User,
        blocks: vec![Block::Text { text: text.to_owned() }],
        at: Timestamp(1),
        model: None,
    };
    let session = SessionId(Uuid::from_u128(7));
    let messages = vec![message("one"), message("two")];
    world.ask(ImportSession { agent, session, label: None, messages }).unwrap();
    let (counted, all) = taken(&world, agent);
    assert!(counted == all && all > stored);
    world.ask(RemoveSession { session }).unwrap();
    assert_eq!(taken(&world, agent).0, stored);
    world.ask(ClearHistory { agent }).unwrap();
    assert_eq!(taken(&world, agent).0, 0);
    talk(&mut world, agent, 10).unwrap();
    world.ask(ResetSession { agent }).unwrap();
    assert_eq!(taken(&world, agent).0, 0);
}

#[test]
fn a_family_that_has_stored_enough_is_refused_messages_and_its_turns_end() {
    let mut world = world(64 * KIB, 1 << 30);
    let (one, other) = (parent(&mut world), world.spawn("other"));
    let between = world.ask(SpawnChild { parent: one, child: spawner("between"), by: None }).unwrap().agent;
    let child = child_of(&mut world, between, "child");
    talk(&mut world, one, 10_000).unwrap();
    // Its answer finds room; the next call of a turn that is under way does not.
    let asked = send(&mut world, child, 10_000);
    let attempt = world.next_call().attempt;
    talk(&mut world, one, 20_000).unwrap();
    let call = ToolCall { id: "c".into(), name: "look".into(), input: "{}".into() };
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
    let effects = std::mem::take(&mut world.effects);
    let run = effects.into_iter().find_map(|effect| effect.take::<ToolRun>().ok()).unwrap();
    let end = ToolEnd {
        index: run.index,
        call: run.call.clone(),
        content: "r".repeat(10_000),
        whole: None,
        notice: None,
        brought: None,
        status: ToolStatus::Ok,
    };
    world.outcome(ToolOutcome(run.attempt, end));
    let refusal = asked.take().unwrap().unwrap_err();
    assert_eq!((refusal.kind, refusal.code), (RefusalKind::TooMany, Some(SESSION_STORAGE_FULL)));
    assert!(world.calls.is_empty(), "no model is asked for what there is no room for");
    let before = world.store.len();
    for agent in [one, child] {
        assert_eq!(code_of(talk(&mut world, agent, 1)), Some(SESSION_STORAGE_FULL));
    }
    assert_eq!(world.store.len(), before, "a refusal stores nothing");
    talk(&mut world, other, 1).unwrap();
    world.restart();
    assert_eq!(code_of(talk(&mut world, child, 1)), Some(SESSION_STORAGE_FULL));
    // What goes makes room; whoever is left of a family keeps its bound.
    world.ask(RemoveAgents(vec![one])).unwrap();
    talk(&mut world, child, 30_000).unwrap();
    assert_eq!(code_of(talk(&mut world, child, 1)), Some(SESSION_STORAGE_FULL));
    world.ask(ClearHistory { agent: child }).unwrap();
    talk(&mut world, child, 1).unwrap();
}

#[test]
fn the_agents_of_a_user_have_one_bound_that_goes_with_them() {
    let mut world = world(1 << 30, 64 * KIB);
    let user = Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(ANN) };
    world.actor = user;
    let first = world.ask(spawn_command("a1")).unwrap().agent;
    let second = world.ask(spawn_command("a2")).unwrap().agent;
    world.actor = Actor::Api;
    let shared = world.spawn("shared");
    talk(&mut world, first, 20_000).unwrap();
    talk(&mut world, second, 20_000).unwrap();
    for _ in 0..2 {
        for agent in [first, second] {
            assert_eq!(code_of(talk(&mut world, agent, 1)), Some(SESSION_STORAGE_FULL));
        }
        talk(&mut world, shared, 1).unwrap();
        world.restart();
    }
    // An agent that goes to somebody else takes along what it has.
    world.ask(SetOwner { agent: second, user: None }).unwrap();
    talk(&mut world, first, 1).unwrap();
    world.ask(SetOwner { agent: second, user: Some(ANN) }).unwrap();
    assert_eq!(code_of(talk(&mut world, first, 1)), Some(SESSION_STORAGE_FULL));
    world.ask(RemoveAgents(vec![second, first])).unwrap();
    assert!(world.engine.world().resource::<Stored>().is_empty());
    world.actor = Actor::Agent { agent: shared, turn: TurnId(Uuid::nil()) };
    let message = NewMessage::text("m");
    world.ask(PostMessage { agent: shared, session: None, message }).unwrap();
}

/// Goes on as if a user had so many sessions more.
fn pretend(world: &mut TestWorld, user: UserId, sessions: i64) {
    world.engine.world_mut().resource_mut::<Stored>().of_user(user, Taken { sessions, ..Taken::default() });
}

#[test]
fn the_agents_of_a_user_leave_sessions_to_others() {
    let share = (SESSIONS_MAX / POOL_SHARES) as i64;
    let (mut world, [anns, bobs, shared]) = two_users();
    let new = |world: &mut TestWorld, agent| world.ask(CreateSession { agent, label: None });
    // It has one from the start.
    pretend(&mut world, ANN, share - 2);
    let last = new(&mut world, anns).unwrap();
    share_is_full(new(&mut world, anns), "sessions_full", "a user and the agents of the user");
    let message = || NewMessage::text("m");
    let session = Some(SessionId(Uuid::from_u128(77)));
    let full = world.ask(PostMessage { agent: anns, session, message: message() });
    share_is_full(full, "sessions_full", "a user and the agents of the user");
    world.ask(PostMessage { agent: anns, session: None, message: message() }).unwrap();
    new(&mut world, bobs).unwrap();
    new(&mut world, shared).unwrap();
    world.ask(RemoveSession { session: last }).unwrap();
    new(&mut world, anns).unwrap();
    share_is_full(new(&mut world, anns), "sessions_full", "a user and the agents of the user");
    pretend(&mut world, ANN, 2 - share);
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn a_family_has_the_sessions_of_all_its_agents_over_restarts_and_changes_of_owner() {
    let mut world = world(1 << 30, 1 << 30);
    let one = parent(&mut world);
    let between = world.ask(SpawnChild { parent: one, child: spawner("between"), by: None }).unwrap().agent;
    let child = child_of(&mut world, between, "child");
    for agent in [one, between, child, child] {
        world.ask(CreateSession { agent, label: None }).unwrap();
    }
    assert_eq!(world.engine.check(), Vec::<String>::new());
    world.restart();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    world.ask(SetOwner { agent: child, user: Some(ANN) }).unwrap();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    world.restart();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    world.ask(RemoveAgents(vec![between])).unwrap();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    world.ask(RemoveAgents(vec![child])).unwrap();
    assert!(world.engine.world().resource::<Stored>().is_empty());
}
