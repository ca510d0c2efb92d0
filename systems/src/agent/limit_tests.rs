//! How many agents, sessions and manifests there may be.

use agentsvc_components::agent::SpawnedBy;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SessionMode;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::session::message::{Block, ChatMessage, Role};
use agentsvc_components::turn::Origin;
use agentsvc_components::{AgentId, Refusal, RefusalKind, SessionId};
use uuid::Uuid;

use super::manifests::Manifests;
use super::*;
use crate::kernel::index::{self, Index};
use crate::kernel::outbox::Emit;
use crate::manifest;
use crate::schedule::{CreateSchedule, GetSchedule, NewSchedule};
use crate::session::{
    CreateSession, ImportSession, ImportedMessage, RemoveSession, ResetSession, limits as session_limits,
};
use crate::testing::{TestWorld, spawn_command};
use crate::turn::{Conversation, ConversationTarget, NewMessage, PostConversation, PostMessage};

/// An agent that may spawn others.
fn parent(name: &str) -> SpawnAgent {
    with_prompt(name, "")
}

/// The same with a text to say first.
fn with_prompt(name: &str, prompt: &str) -> SpawnAgent {
    let mut command = spawn_command(name);
    command.manifest.capabilities.agent_spawn = Some(true);
    command.manifest.system_prompt = prompt.into();
    command.hash = manifest::hash(&command.manifest);
    command
}

fn child(world: &mut TestWorld, above: AgentId, child: SpawnAgent) -> Result<AgentId, Refusal> {
    world.ask(SpawnChild { parent: above, child, by: None }).map(|spawned| spawned.agent)
}

/// Spawns so many agents below one, in one step.
fn children(world: &mut TestWorld, above: AgentId, count: usize) -> Vec<AgentId> {
    let spawn = |n| SpawnChild { parent: above, child: parent(&format!("{above}-{n}")), by: None };
    let asked: Vec<_> = (0..count).map(|n| world.begin(spawn(n))).collect();
    world.step();
    asked.into_iter().map(|asked| asked.take().unwrap().unwrap().agent).collect()
}

#[test]
fn so_many_agents_descend_from_one_whoever_of_them_is_deleted() {
    let mut world = TestWorld::new();
    let top = world.ask(parent("top")).unwrap().agent;
    let second = children(&mut world, top, limit::AGENT_CHILDREN_MAX);
    let full = second.len();
    let third: Vec<_> = second[1..full / 10 - 1].iter().flat_map(|it| children(&mut world, *it, full)).collect();
    assert_eq!(second.len() + third.len(), limits::AGENT_DESCENDANTS_MAX - full);
    let mut last = children(&mut world, second[full - 1], full);
    for restarted in [false, true] {
        if restarted {
            world.restart();
        }
        let refused = child(&mut world, last[0], parent("one more")).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Forbidden);
        assert!(refused.message.contains("1000 agents below the same agent"), "{refused:?}");
        assert_eq!(world.engine.stats().agents, 1 + limits::AGENT_DESCENDANTS_MAX, "nothing changed");
    }
    // Another agent has a tree of its own.
    let other = world.ask(parent("other")).unwrap().agent;
    child(&mut world, other, parent("its child")).unwrap();
    // Those below an agent that is deleted still count, and its parent may delete them.
    let by = KillDescendant { by: top, agent: second[full - 1].to_string(), turn: None };
    world.ask(by).unwrap();
    last.push(child(&mut world, last[0], parent("in its place")).unwrap());
    assert!(child(&mut world, second[0], parent("one more")).is_err(), "the orphans are below the same agent");
    world.ask(KillDescendant { by: top, agent: last[1].to_string(), turn: None }).unwrap();
    child(&mut world, second[0], parent("in its place, too")).unwrap();
    // Also when the one at the top is gone.
    world.ask(RemoveAgents(vec![top])).unwrap();
    for _ in 0..2 {
        assert!(child(&mut world, second[0], parent("one more")).is_err());
        assert_eq!(world.engine.check(), [] as [String; 0]);
        world.restart();
    }
}

#[test]
fn a_home_with_more_descendants_than_may_be_opens_and_takes_no_more() {
    let mut world = TestWorld::new();
    let top = world.ask(parent("top")).unwrap().agent;
    let second = children(&mut world, top, 11);
    for above in &second {
        // As an older release would: without a look at the whole tree.
        let made: Vec<_> = (0..100).map(|n| world.begin(parent(&format!("{above}-{n}")))).collect();
        world.step();
        for spawned in made {
            let spawned = spawned.take().unwrap().unwrap().agent;
            let inner = world.engine.world_mut();
            let entity = index::agent(inner, spawned).unwrap();
            inner.entity_mut(entity).insert(SpawnedBy(*above));
            inner.resource_mut::<Family>().insert(*above, spawned);
            inner.mark(entity);
        }
        world.step();
    }
    world.restart();
    assert_eq!(world.engine.stats().agents, 12 + 11 * 100);
    assert!(child(&mut world, top, parent("one more")).is_err());
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn the_manifests_of_descendants_take_so_many_bytes() {
    let mut world = TestWorld::new();
    let top = world.ask(parent("top")).unwrap().agent;
    let long = "x".repeat(200 << 10);
    let most = limits::AGENT_DESCENDANTS_BYTES_MAX / long.len();
    for n in 0..most {
        child(&mut world, top, with_prompt(&format!("child-{n}"), &long)).unwrap();
    }
    let refused = child(&mut world, top, with_prompt("one more", &long)).unwrap_err();
    assert!(refused.message.contains(&format!("the limit is {}", 16 << 20)), "{refused:?}");
    assert_eq!(world.engine.stats().agents, 1 + most);
    child(&mut world, top, parent("short")).unwrap();
}

#[test]
fn there_are_so_many_agents() {
    let mut world = TestWorld::new();
    let first = world.spawn("first");
    // The index is what is asked.
    let entity = index::agent(world.engine.world(), first).unwrap();
    let made_up = (1..limits::AGENTS_MAX as u128).map(|n| AgentId(Uuid::from_u128(n)));
    for id in made_up {
        world.engine.world_mut().resource_mut::<Index>().agents.insert(id, entity);
    }
    let refused = world.ask(spawn_command("one more")).unwrap_err();
    assert_eq!((refused.kind, refused.code), (RefusalKind::TooMany, Some(error_codes::AGENTS_FULL)));
    assert!(refused.message.contains("2000000 agents"), "{refused:?}");
    world.engine.world_mut().resource_mut::<Index>().agents.remove(AgentId(Uuid::from_u128(1)));
    world.spawn("one more");
}

#[test]
fn all_manifests_take_so_many_bytes_and_equal_ones_count_once() {
    let mut world = TestWorld::new();
    let agent = world.ask(with_prompt("a", &"x".repeat(1_000))).unwrap().agent;
    let text = world.ask(GetAgent(agent)).unwrap().manifest.manifest.bytes();
    let left = 100;
    let filled = limits::MANIFESTS_BYTES_MAX - text - left;
    world.engine.world_mut().resource_mut::<Manifests>().bytes += filled;
    let refused = world.ask(with_prompt("b", &"y".repeat(1_000))).unwrap_err();
    assert_eq!((refused.kind, refused.code), (RefusalKind::TooMany, Some(error_codes::AGENTS_FULL)));
    assert!(refused.message.starts_with("manifests take") && world.engine.stats().agents == 1, "{refused:?}");
    let prompt = |len: usize| {
        let patch = AgentPatch { system_prompt: Some("z".repeat(len).into()), ..AgentPatch::default() };
        UpdateAgent { agent, patch }
    };
    assert_eq!(world.ask(prompt(1_000 + left + 1)).unwrap_err().code, Some(error_codes::AGENTS_FULL));
    world.ask(prompt(1_000 + left)).unwrap();
    world.ask(CloneAgent { agent, name: None, text: "name = \"a\"\n".to_owned() }).unwrap();
    // Its manifest is now that of two agents: what it becomes comes on top.
    assert!(world.ask(prompt(10)).is_err());
    world.engine.world_mut().resource_mut::<Manifests>().bytes -= filled;
    world.ask(prompt(10)).unwrap();
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(world.engine.check(), [] as [String; 0]);
    world.restart();
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn a_change_makes_no_manifest_longer_than_its_text_may_be() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let long: Box<str> = "x".repeat(limit::MANIFEST_BYTES_MAX / 2).into();
    let description = AgentPatch { description: Some(long.clone()), ..AgentPatch::default() };
    world.ask(UpdateAgent { agent, patch: description }).unwrap();
    let before = world.ask(GetAgent(agent)).unwrap().manifest;
    let patch = AgentPatch { system_prompt: Some(long), name: Some("b".into()), ..AgentPatch::default() };
    let refused = world.ask(UpdateAgent { agent, patch }).unwrap_err();
    assert!(refused.kind == RefusalKind::BadRequest && refused.message.contains("the limit is 262144"), "{refused:?}");
    let after = world.ask(GetAgent(agent)).unwrap();
    assert_eq!((after.manifest, &*after.name), (before, "a"), "nothing changed");
}

#[test]
fn an_agent_has_so_many_sessions_whatever_begins_them() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let full = |world: &mut TestWorld| {
        let entity = index::agent(world.engine.world(), agent).unwrap();
        let most = session_limits::AGENT_SESSIONS_MAX - 1;
        world.engine.world_mut().resource_mut::<Index>().more_sessions.insert(entity, most);
    };
    full(&mut world);
    let id = || SessionId(Uuid::from_u128(7));
    let said = || ChatMessage { role: Role::User, blocks: vec![Block::Text { text: "hello".to_owned() }] };
    let imported = ImportedMessage { role: Role::User, blocks: said().blocks, at: world.now, model: None };
    let talk = Conversation {
        agent,
        venue: ConversationTarget::Kept { session: id(), label: None },
        messages: vec![said()],
        origin: Origin::Api,
        request: None,
    };
    let refusals = [
        world.ask(CreateSession { agent, label: None }).map(|_| ()),
        world.ask(ImportSession { agent, session: id(), label: None, messages: vec![imported] }).map(|_| ()),
        world.ask(PostMessage { agent, session: Some(id()), message: NewMessage::text("hello") }).map(|_| ()),
        world.ask(PostConversation(talk)).map(|_| ()),
    ];
    for refused in refusals.map(Result::unwrap_err) {
        assert_eq!(refused.code, Some(crate::session::error_codes::SESSIONS_FULL), "{refused:?}");
        assert!(refused.message.contains("100000 sessions of this agent"), "{refused:?}");
    }
    assert_eq!((world.engine.stats().sessions, world.engine.stats().turns_open), (1, 0));
    let new = NewSchedule {
        kind: ScheduleKind::Schedule,
        agent,
        name: None,
        rule: "in 1s".into(),
        timezone: None,
        prompt: "act".into(),
        enabled: true,
        missed: MissedPolicy::One,
        overlap: OverlapPolicy::Queue,
        session_mode: Some(SessionMode::New),
    };
    let view = world.ask(CreateSchedule { new, by_tool: false }).unwrap();
    world.now = world.now.plus_ms(1_500);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
    let past = world.ask(GetSchedule { kind: view.kind, id: view.id }).unwrap().past;
    assert_eq!((past.tally.fired, past.tally.refused), (0, 1));
    // What takes the place of another needs no room, and what is there goes on.
    world.ask(PostMessage { agent, session: None, message: NewMessage::text("hello") }).unwrap();
    let fresh = world.ask(ResetSession { agent }).unwrap();
    world.ask(RemoveSession { session: fresh }).unwrap();
    // The count is right after a restart, and follows what comes and goes.
    world.restart();
    let made: Vec<_> = (0..3).map(|_| world.ask(CreateSession { agent, label: None }).unwrap()).collect();
    world.ask(RemoveSession { session: made[0] }).unwrap();
    world.restart();
    let entity = index::agent(world.engine.world(), agent).unwrap();
    assert_eq!(world.engine.world().resource::<Index>().session_count_of(entity), 3);
    for session in &made[1..] {
        world.ask(RemoveSession { session: *session }).unwrap();
    }
    assert_eq!(world.engine.world().resource::<Index>().session_count_of(entity), 1);
    assert_eq!(world.engine.check(), [] as [String; 0]);
}
