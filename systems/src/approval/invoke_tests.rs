//! Tools that clients call without a turn, in virtual time.

use crate::audit::audit_kinds;
use agentsvc_components::approval::ApprovalState;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, AgentId, RefusalKind};
use uuid::Uuid;

use super::*;
use crate::agent::{RemoveAgents, SpawnChild, StopAgents};
use crate::config::Settings;
use crate::testing::{Asked, TestWorld, spawn_command};

fn world() -> (TestWorld, AgentId) {
    let settings = Settings { require_approval: vec!["danger*".into()], ..Settings::default() };
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("a");
    (world, agent)
}

fn call(agent: Option<AgentId>, tool: &str) -> InvokeTool {
    InvokeTool { id: Uuid::from_u128(7), agent, tool: tool.into(), input: "{\"n\":1}".into() }
}

fn begin(world: &mut TestWorld, agent: AgentId) -> Asked<Option<Invoker>> {
    let asked = world.begin(call(Some(agent), "dangerous"));
    world.step();
    assert!(asked.take().is_none(), "the approval is pending");
    asked
}

fn list(world: &mut TestWorld, decided: bool) -> Vec<ApprovalView> {
    world.ask(ListApprovals { filter: ApprovalFilter { decided, agent: None }, after: None, limit: 100 }).unwrap().items
}

fn decide(world: &mut TestWorld, decision: Decision) {
    let ids = list(world, false).iter().map(|view| view.id).collect();
    world.ask(DecideApprovals { ids, decision, reason: Some("so it is".into()), answer: None }).unwrap();
}

/// How many calls the trail has.
fn called(world: &TestWorld) -> usize {
    let called = audit_kinds::TOOL_CALLED;
    let word = called.as_str().as_bytes();
    world.store.values().filter(|value| value.windows(word.len()).any(|part| part == word)).count()
}

#[test]
fn a_call_that_needs_nobody_may_run_and_is_on_record() {
    let (mut world, agent) = world();
    let invoker = world.ask(call(Some(agent), "harmless")).unwrap().unwrap();
    assert_eq!((invoker.agent, &*invoker.name), (agent, "a"));
    assert!(world.ask(call(None, "harmless")).unwrap().is_none());
    assert_eq!(called(&world), 2);
    assert!(list(&mut world, false).is_empty());
}

#[test]
fn a_call_takes_the_places_of_the_family_of_its_agent() {
    let (mut world, _) = world();
    let spawner = |name: &str| {
        let mut command = spawn_command(name);
        command.manifest.capabilities.agent_spawn = Some(true);
        command.hash = crate::manifest::hash(&command.manifest);
        command
    };
    let top = world.ask(spawner("top")).unwrap().agent;
    let child = world.ask(SpawnChild { parent: top, child: spawner("child"), by: None }).unwrap().agent;
    let below = world.ask(SpawnChild { parent: child, child: spawner("below"), by: None }).unwrap().agent;
    for agent in [top, child, below] {
        let invoker = world.ask(call(Some(agent), "harmless")).unwrap().unwrap();
        assert_eq!((invoker.agent, invoker.holder), (agent, Holder::Family(top)));
    }
}

#[test]
fn calls_of_the_agents_of_a_user_share_their_places() {
    let (mut world, other) = world();
    let user = UserId(Uuid::from_u128(1));
    world.actor = Actor::Key { key: KeyId(Uuid::from_u128(9)), user: Some(user) };
    let agents = ["b", "c"].map(|name| world.ask(spawn_command(name)).unwrap().agent);
    world.actor = Actor::Api;
    let mut holder = |agent| world.ask(call(Some(agent), "harmless")).unwrap().unwrap().holder;
    assert_eq!(agents.map(&mut holder), [Holder::User(user); 2]);
    assert_eq!(holder(other), Holder::Family(other));
}

#[test]
fn refusals_change_nothing() {
    let (mut world, agent) = world();
    let alone = world.ask(call(None, "dangerous")).unwrap_err();
    assert_eq!((alone.kind, alone.field.as_deref()), (RefusalKind::BadRequest, Some("agent_id")));
    let unknown = world.ask(call(Some(AgentId(Uuid::from_u128(9))), "harmless")).unwrap_err();
    assert_eq!(unknown.kind, RefusalKind::NotFound);
    let long = InvokeTool {
        input: "x".repeat(limit::APPROVAL_PAYLOAD_BYTES_MAX + 1).into(),
        ..call(Some(agent), "dangerous")
    };
    assert_eq!(world.ask(long).unwrap_err().field.as_deref(), Some("input"));
    world.ask(StopAgents(vec![agent])).unwrap();
    let stopped = world.ask(call(Some(agent), "harmless")).unwrap_err();
    assert_eq!(stopped.code.as_deref(), Some("agent_not_running"));
    assert_eq!(called(&world), 0);
    assert!(list(&mut world, false).is_empty());
}

#[test]
fn an_approved_call_may_run_once() {
    let (mut world, agent) = world();
    let asked = begin(&mut world, agent);
    let [view] = &list(&mut world, false)[..] else { panic!("one approval") };
    assert_eq!((&*view.approval.action, &*view.approval.payload), ("dangerous", "{\"n\":1}"));
    let gated = view.approval.call.unwrap();
    assert!(gated.is_clients() && gated.waiting_turn().is_none());
    assert_eq!(called(&world), 0);
    decide(&mut world, Decision::Approve);
    assert_eq!(asked.take().unwrap().unwrap().unwrap().agent, agent);
    assert_eq!(called(&world), 1);
    assert!(asked.take().is_none());
}

#[test]
fn what_was_not_approved_is_refused() {
    let (mut world, agent) = world();
    let asked = begin(&mut world, agent);
    decide(&mut world, Decision::Reject);
    let rejected = asked.take().unwrap().unwrap_err();
    assert_eq!((rejected.kind, rejected.code.as_deref()), (RefusalKind::Forbidden, Some("approval_rejected")));
    assert!(rejected.message.contains("so it is"));

    let asked = begin(&mut world, agent);
    world.ask(WithdrawInvocation { id: Uuid::from_u128(1) }).unwrap();
    assert!(asked.take().is_none(), "that was another call");
    world.ask(WithdrawInvocation { id: Uuid::from_u128(7) }).unwrap();
    assert_eq!(asked.take().unwrap().unwrap_err().code.as_deref(), Some("approval_expired"));

    let asked = begin(&mut world, agent);
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(asked.take().unwrap().unwrap_err().code.as_deref(), Some("approval_expired"));
    assert_eq!(called(&world), 0);
    let ended = list(&mut world, true);
    assert_eq!(ended.iter().filter(|view| view.approval.state == ApprovalState::Expired).count(), 2);
}

#[test]
fn an_agent_that_was_stopped_meanwhile_does_not_run_it() {
    let (mut world, agent) = world();
    let asked = begin(&mut world, agent);
    world.ask(StopAgents(vec![agent])).unwrap();
    decide(&mut world, Decision::Approve);
    assert_eq!(asked.take().unwrap().unwrap_err().code.as_deref(), Some("agent_not_running"));
    assert_eq!(called(&world), 0);
}

#[test]
fn a_restart_ends_the_wait() {
    let (mut world, agent) = world();
    let asked = begin(&mut world, agent);
    world.restart();
    assert!(list(&mut world, false).is_empty());
    let [view] = &list(&mut world, true)[..] else { panic!("one approval") };
    assert_eq!(view.approval.state, ApprovalState::Expired);
    assert!(view.approval.reason.as_deref().unwrap().contains("restarted"));
    assert!(asked.take().is_none());
}
