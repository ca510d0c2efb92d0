//! What the agents of one user and of one family remember together.

use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit::TURNS_ENDED_PER_STEP_MAX;
use agentsvc_components::{Actor, AgentId, Refusal, RefusalKind};
use uuid::Uuid;

use super::share::Remembered;
use super::*;
use crate::agent::{RemoveAgents, SetOwner, SpawnChild};
use crate::config::Settings;
use crate::testing::{TestWorld, key_of, spawn_command};
use crate::turn::{NewMessage, PostMessage};

const MOST: u64 = 100;

/// A family of two, and two agents of one user.
fn kin(world: &mut TestWorld) -> [AgentId; 4] {
    let mut top = spawn_command("top");
    top.manifest.capabilities.agent_spawn = Some(true);
    top.hash = crate::manifest::hash(&top.manifest);
    let top = world.ask(top).unwrap().agent;
    let child = world.ask(SpawnChild { parent: top, child: spawn_command("child"), by: None }).unwrap().agent;
    world.actor = key_of(1);
    let [one, two] = ["one", "two"].map(|name| world.ask(spawn_command(name)).unwrap().agent);
    world.actor = Actor::Api;
    [top, child, one, two]
}

/// An agent with more turns than end in one step gives back what it remembers, too, at once.
#[test]
fn an_agent_that_goes_step_by_step_gives_room_back() {
    let mut world = TestWorld::with(Settings { family_memory_max_bytes: MOST, ..Settings::default() });
    let [top, child, one, two] = kin(&mut world);
    for (stays, goes) in [(top, child), (one, two)] {
        put(&mut world, goes, 60, None).unwrap();
        full(put(&mut world, stays, 41, None));
        for _ in 0..TURNS_ENDED_PER_STEP_MAX + 2 {
            world.begin(PostMessage { agent: goes, session: None, message: NewMessage::text("go") });
        }
        world.step();
        assert!(world.ask(RemoveAgents(vec![goes])).unwrap()[0].1.is_ok());
        assert!(world.engine.stats().turns_open > 0, "some are left for the next steps");
        assert_eq!(world.engine.check(), [] as [String; 0]);
        put(&mut world, stays, 100, None).unwrap();
        while world.engine.has_work() {
            world.step();
        }
        assert_eq!(world.engine.check(), [] as [String; 0]);
    }
}

/// Stores so many bytes under the key `k`, in the place of so many.
fn put(world: &mut TestWorld, agent: AgentId, bytes: usize, replaces: Option<u64>) -> Result<MemoryUse, Refusal> {
    let revision = world.ask(GetMemoryUse(agent)).unwrap().revision;
    let value = format!("\"{}\"", "x".repeat(bytes - 3));
    let entry = PutEntry { key: "k".into(), value: value.into(), created_at: None, updated_at: None, replaces };
    world.ask(PutMemory { agent, revision, entries: vec![entry], by: None })
}

fn full<T: std::fmt::Debug>(result: Result<T, Refusal>) {
    let refused = result.unwrap_err();
    assert_eq!((refused.kind, refused.code.as_deref()), (RefusalKind::Conflict, Some("memory_full")));
    assert!(refused.message.contains("`[proactive_memory] family_max_bytes`"), "{}", refused.message);
}

#[test]
fn a_user_and_a_family_leave_room_to_others_also_over_a_restart() {
    let mut world = TestWorld::with(Settings { family_memory_max_bytes: MOST, ..Settings::default() });
    let [top, child, one, two] = kin(&mut world);
    let other = world.spawn("other");
    world.actor = key_of(1);
    for (first, second) in [(top, child), (one, two)] {
        put(&mut world, first, 60, None).unwrap();
        full(put(&mut world, second, 41, None));
        put(&mut world, second, 40, None).unwrap();
        put(&mut world, second, 39, Some(40)).unwrap();
        full(put(&mut world, first, 62, Some(60)));
    }
    world.actor = Actor::Api;
    put(&mut world, other, 100, None).unwrap();
    let before = world.engine.world().resource::<Remembered>().clone();
    world.restart();
    assert_eq!(*world.engine.world().resource::<Remembered>(), before);
    full(put(&mut world, child, 41, Some(39)));
    full(put(&mut world, two, 41, Some(39)));
    // What an agent remembers goes with it into other hands.
    world.ask(SetOwner { agent: two, user: Some(UserId(Uuid::from_u128(2))) }).unwrap();
    put(&mut world, one, 100, Some(60)).unwrap();
    full(put(&mut world, two, 101, Some(39)));
    put(&mut world, one, 60, Some(100)).unwrap();
    world.ask(SetOwner { agent: two, user: Some(UserId(Uuid::from_u128(1))) }).unwrap();
    full(put(&mut world, two, 41, Some(39)));
    // What goes gives room back: an entry, or an agent.
    let revision = world.ask(GetMemoryUse(top)).unwrap().revision;
    let gone = Doomed { key: "k".into(), bytes: 60 };
    world.ask(DeleteMemory { agent: top, revision, entries: vec![gone], by: None }).unwrap();
    put(&mut world, child, 100, Some(39)).unwrap();
    world.ask(RemoveAgents(vec![one])).unwrap();
    put(&mut world, two, 100, Some(39)).unwrap();
}

#[test]
fn what_is_counted_is_held_against_what_each_domain_keeps() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    put(&mut world, agent, 60, None).unwrap();
    assert_eq!(world.engine.check(), Vec::<String>::new());
    // The sums of the family still agree with that of the agent.
    super::count(world.engine.world_mut(), agent, 7);
    let faults = world.engine.check();
    assert!(faults.iter().any(|fault| fault.starts_with("bytes that agents remember")), "{faults:?}");
}
