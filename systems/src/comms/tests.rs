//! Comms events are kept, bounded and told; the topology follows them.

use agentsvc_components::comms::{CommsEvent, CommsEventId, CommsKind};
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome};
use agentsvc_components::{AgentId, RefusalKind};

use super::{CommsEventView, EdgeKind, GetTopology, ListCommsEvents, SendBetween, limits};
use crate::agent::{RemoveAgents, SpawnChild};
use crate::task::{ClaimTask, EndTask, PostTask};
use crate::testing::{TestWorld, answer, spawn_command, tool_call};
use crate::turn::{NewMessage, SendMessage, SendToAgent};

fn list(world: &mut TestWorld, after: Option<CommsEventId>, limit: usize) -> CommsEventView {
    world.ask(ListCommsEvents { after, limit }).unwrap()
}

/// The kept events, oldest first.
fn events(world: &mut TestWorld) -> Vec<CommsEvent> {
    let mut events: Vec<_> = list(world, None, 500).events.into_iter().map(|(_, event)| event).collect();
    events.reverse();
    events
}

fn names(event: &CommsEvent) -> (CommsKind, &str, &str, &str) {
    (event.kind, &event.source_name, &event.target_name, &event.detail)
}

/// A turn of `agent` whose model has asked for a tool.
fn run_of(world: &mut TestWorld, agent: AgentId) -> ToolRun {
    drop(world.begin(SendMessage { agent, session: None, message: NewMessage::text("go") }));
    world.step();
    let attempt = world.next_call().attempt;
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![tool_call("1")]))));
    let effects = std::mem::take(&mut world.effects);
    effects.into_iter().find_map(|effect| effect.take::<ToolRun>().ok()).map(|run| *run).unwrap()
}

#[test]
fn what_agents_do_with_each_other_is_kept_over_a_restart() {
    let mut world = TestWorld::new();
    let (a, b) = (world.spawn("a"), world.spawn("b"));
    let run = run_of(&mut world, a);
    let (from, index) = (run.attempt, run.index);
    let send = SendToAgent { from, index, to: "b".into(), session: None, text: "help".into(), wait: true, found: None };
    world.ask(send).unwrap();
    let post =
        PostTask { title: "count".into(), assignee: Some("b".into()), posted_by: Some(a), ..PostTask::default() };
    let task = world.ask(post).unwrap().id;
    world.ask(ClaimTask { task, agent: b, by: None }).unwrap();
    world.ask(EndTask { task, failed: false, result: None, only_of: None, by: None }).unwrap();
    let expected = [
        (CommsKind::AgentMessage, "a", "b", "help"),
        (CommsKind::TaskPosted, "a", "b", "count"),
        (CommsKind::TaskClaimed, "b", "", "count"),
        (CommsKind::TaskCompleted, "b", "", "count"),
    ];
    let seen = events(&mut world);
    assert_eq!(seen.iter().map(names).collect::<Vec<_>>(), expected);
    world.restart();
    assert_eq!(events(&mut world), seen);
    assert_eq!(world.engine.check(), [] as [String; 0]);
    world.ask(RemoveAgents(vec![a])).unwrap();
    assert_eq!(events(&mut world), seen, "what clients create and delete is no exchange between agents");
}

#[test]
fn the_oldest_event_goes_and_a_reader_that_missed_some_is_told() {
    let mut world = TestWorld::new();
    let post = |world: &mut TestWorld, n: usize| {
        world.ask(PostTask { title: format!("t{n}"), ..PostTask::default() }).unwrap();
    };
    post(&mut world, 0);
    let first = list(&mut world, None, 1).events[0].0;
    for n in 1..=limits::COMMS_EVENTS_KEPT {
        post(&mut world, n);
    }
    let newest = list(&mut world, None, 10_000);
    assert_eq!((newest.events.len(), newest.total), (limits::COMMS_EVENTS_LISTED_MAX, limits::COMMS_EVENTS_KEPT));
    assert_eq!(&*newest.events[0].1.detail, format!("t{}", limits::COMMS_EVENTS_KEPT));
    let after = list(&mut world, Some(first), 2);
    assert!(after.is_cut, "the event that was seen last is gone");
    assert_eq!(after.events.iter().map(|(_, event)| &*event.detail).collect::<Vec<_>>(), ["t1", "t2"]);
    let second = after.events[0].0;
    let after = list(&mut world, Some(second), 1);
    assert_eq!((after.is_cut, &*after.events[0].1.detail), (false, "t2"));
    assert_eq!(world.engine.check(), [] as [String; 0]);
}

#[test]
fn the_topology_has_families_and_messages() {
    let mut world = TestWorld::new();
    let mut parent = spawn_command("parent");
    parent.manifest.capabilities.agent_spawn = Some(true);
    let parent = world.ask(parent).unwrap().agent;
    let child = world.ask(SpawnChild { parent, child: spawn_command("child"), by: None }).unwrap().agent;
    let other = world.spawn("other");
    let message = NewMessage::text("good morning");
    let asked = world.begin(SendBetween { from: other, to: child, session: None, message });
    world.step();
    let attempt = world.next_call().attempt;
    world.answer(attempt, "morning");
    assert_eq!(asked.take().unwrap().unwrap().response, "morning");
    let topology = world.ask(GetTopology).unwrap();
    assert_eq!(topology.nodes.iter().map(|node| &*node.name).collect::<Vec<_>>(), ["parent", "child", "other"]);
    let edges: Vec<_> = topology.edges.iter().map(|edge| (edge.from, edge.to, edge.kind)).collect();
    assert!(edges.contains(&(parent, child, EdgeKind::ParentChild)), "{edges:?}");
    assert!(edges.contains(&(other, child, EdgeKind::Peer)), "{edges:?}");
    assert_eq!((edges.len(), topology.total), (2, 3));
    let seen = events(&mut world);
    assert_eq!(names(&seen[0]), (CommsKind::AgentSpawned, "child", "parent", ""));
    assert_eq!(names(seen.last().unwrap()), (CommsKind::AgentMessage, "other", "child", "good morning"));
}

#[test]
fn a_message_between_agents_needs_both() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let nobody = AgentId(uuid::Uuid::from_u128(7));
    let before = events(&mut world);
    for (from, to, field) in [(nobody, agent, "from"), (agent, nobody, "to")] {
        let message = NewMessage::text("x");
        let refusal = world.ask(SendBetween { from, to, session: None, message }).unwrap_err();
        assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::NotFound, Some(field)));
    }
    let empty = world.ask(SendBetween { from: agent, to: agent, session: None, message: NewMessage::text("") });
    assert_eq!(empty.unwrap_err().field.as_deref(), Some("message"));
    assert_eq!(events(&mut world), before, "what is refused leaves no event");
    assert!(world.calls.is_empty());
}
