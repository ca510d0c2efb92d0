//! What automation, budgets and approvals leave on the trail.

use agentsvc_components::AgentId;
use agentsvc_components::goal::{Goal, GoalStatus};
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::task::Task;
use agentsvc_components::usage::{Limits, Scope};
use agentsvc_components::workflow::Workflow;
use serde_json::json;

use super::tests::entries;
use crate::approval::{DecideApprovals, Decision, RequestApproval};
use crate::budget::SetBudget;
use crate::event::{PublishEvent, parse_pattern};
use crate::goal::{CreateGoal, GoalPatch, UpdateGoal};
use crate::kernel::entities::Remove;
use crate::schedule::{CreateSchedule, NewSchedule, RemoveSchedule, RunSchedule, SchedulePatch, UpdateSchedule};
use crate::task::{ClaimNextTask, ClaimTask, EndTask, PostTask, RetryTask};
use crate::testing::TestWorld;
use crate::trigger::{CreateTrigger, DeleteTrigger, NewTrigger, TriggerPatch, UpdateTrigger};
use crate::workflow::{CancelRun, CreateWorkflow, NewStep, NewWorkflow, StartRun, UpdateWorkflow, WorkflowPatch};

fn trigger() -> NewTrigger {
    NewTrigger {
        pattern: parse_pattern(&json!({ "task_claimed": {} })).unwrap(),
        prompt_template: "x".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: None,
        session_mode: None,
        target: None,
    }
}

fn schedule(agent: AgentId) -> NewSchedule {
    NewSchedule {
        kind: ScheduleKind::Cron,
        agent,
        name: Some("n".into()),
        rule: "@hourly".into(),
        timezone: None,
        prompt: "x".into(),
        enabled: true,
        missed: MissedPolicy::One,
        overlap: OverlapPolicy::Queue,
        session_mode: None,
    }
}

fn automate(world: &mut TestWorld, agent: AgentId) {
    let trigger = world.ask(CreateTrigger { agent, trigger: trigger() }).unwrap().id;
    let patch = TriggerPatch { enabled: Some(false), ..TriggerPatch::default() };
    world.ask(UpdateTrigger { trigger, patch }).unwrap();
    world.ask(DeleteTrigger(trigger)).unwrap();
    let id = world.ask(CreateSchedule { new: schedule(agent), by_tool: false }).unwrap().id;
    let kind = ScheduleKind::Cron;
    let patch = SchedulePatch { enabled: Some(false), ..SchedulePatch::default() };
    world.ask(UpdateSchedule { kind, id, patch }).unwrap();
    world.ask(RunSchedule { kind, id }).unwrap();
    world.ask(RemoveSchedule { kind, id, owner: None }).unwrap();
    let steps = vec![NewStep { agent_name: Some("a".into()), ..NewStep::default() }];
    let new = NewWorkflow { name: "w".into(), description: String::new(), steps };
    let workflow = world.ask(CreateWorkflow(new)).unwrap().id;
    let patch = WorkflowPatch { description: Some("d".into()), ..WorkflowPatch::default() };
    world.ask(UpdateWorkflow { workflow, patch }).unwrap();
    let run = world.ask(StartRun { workflow, input: "i".into() }).unwrap();
    world.ask(CancelRun(run)).unwrap();
    world.ask(Remove::<Workflow>(workflow)).unwrap();
}

fn work(world: &mut TestWorld, agent: AgentId) {
    let task = world.ask(PostTask { title: "t".into(), ..PostTask::default() }).unwrap().id;
    world.ask(ClaimTask { task, agent, by: None }).unwrap();
    let end = |failed| EndTask { task, failed, result: None, only_of: None, by: None };
    world.ask(end(true)).unwrap();
    world.ask(RetryTask(task)).unwrap();
    world.ask(ClaimNextTask { agent, by: None }).unwrap();
    world.ask(end(false)).unwrap();
    world.ask(Remove::<Task>(task)).unwrap();
    let goal = world.ask(CreateGoal { title: "g".into(), agent: Some(agent), ..CreateGoal::default() }).unwrap().id;
    let patch = GoalPatch { status: Some(GoalStatus::Completed), ..GoalPatch::default() };
    world.ask(UpdateGoal { goal, patch, only_of: None }).unwrap();
    world.ask(Remove::<Goal>(goal)).unwrap();
}

#[test]
fn automation_budgets_and_approvals_leave_entries() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    automate(&mut world, agent);
    work(&mut world, agent);
    let payload = "1".into();
    world.ask(PublishEvent { event_type: "ping".into(), payload, agent: None, by: None }).unwrap();
    let ask = RequestApproval { agent, action: "pay".into(), description: "".into(), payload: "{}".into() };
    let ids = [0; 2].map(|_| world.ask(ask.clone()).unwrap().id).to_vec();
    world.ask(DecideApprovals { ids, decision: Decision::Reject, reason: None, answer: None }).unwrap();
    let limits = Limits { hourly_tokens: Some(7), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::Agent(agent), limits }).unwrap();
    let all = entries(&world);
    let kinds: Vec<&str> = all[1..].iter().map(|entry| &*entry.event_type).collect();
    let expected = [
        "trigger_created trigger_updated trigger_deleted",
        "schedule_created schedule_updated schedule_run schedule_deleted",
        "workflow_created workflow_updated workflow_run_started workflow_run_cancelled workflow_deleted",
        "task_posted task_claimed task_failed task_retried task_claimed task_completed task_deleted",
        "goal_created goal_updated goal_deleted",
        "event_published approval_requested approval_requested approval_decided approval_decided budget_set",
    ];
    assert_eq!(kinds.join(" "), expected.join(" "));
    assert!(all.iter().all(|entry| &*entry.actor == "api"));
    let details = r#"{"daily_limit_usd":null,"hourly_token_limit":7,"monthly_limit_usd":null}"#;
    assert_eq!(all.last().map(|entry| (entry.agent, &*entry.details)), Some((Some(agent), details)));
    assert!(all[4].details.contains(r#""kind":"cron job""#), "{}", all[4].details);
}

#[test]
fn what_is_refused_or_finds_nothing_leaves_no_entry() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let nobody = AgentId(uuid::Uuid::nil());
    assert!(world.ask(ClaimNextTask { agent, by: None }).unwrap().is_none());
    assert!(world.ask(PostTask::default()).is_err());
    assert!(world.ask(CreateTrigger { agent: nobody, trigger: trigger() }).is_err());
    assert!(world.ask(CreateSchedule { new: schedule(nobody), by_tool: false }).is_err());
    assert!(world.ask(CreateWorkflow(NewWorkflow::default())).is_err());
    assert!(world.ask(SetBudget { scope: Scope::Agent(nobody), limits: Limits::default() }).is_err());
    let payload = "1".into();
    assert!(world.ask(PublishEvent { event_type: "No".into(), payload, agent: None, by: None }).is_err());
    assert_eq!(entries(&world).len(), 1);
}
