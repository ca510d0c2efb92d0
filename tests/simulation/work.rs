//! The client sets agents to work: triggers, schedules, goals, tasks, workflows, budgets, the configuration.

use agentsvc_components::audit::AuditKind;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::goal::GoalStatus;
use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::task::TaskState;
use agentsvc_components::usage::{Limits, Scope};
use agentsvc_components::workflow::{ErrorMode, StepMode};
use agentsvc_components::{Micros, Timestamp};
use agentsvc_systems::agent::{AgentFilter, ListAgents, StartAgents};
use agentsvc_systems::approval::{ApprovalFilter, DecideApprovals, Decision, ListApprovals};
use agentsvc_systems::audit::{self, NoteAction};
use agentsvc_systems::budget::SetBudget;
use agentsvc_systems::config::Reconfigure;
use agentsvc_systems::config::budget::BudgetSettings;
use agentsvc_systems::event::PublishEvent;
use agentsvc_systems::event::parse_pattern;
use agentsvc_systems::goal::{CreateGoal, GoalPatch, RemoveGoal, UpdateGoal};
use agentsvc_systems::kernel::record;
use agentsvc_systems::schedule::{
    CreateSchedule, ListSchedules, RemoveSchedule, RunSchedule, SchedulePatch, UpdateSchedule,
};
use agentsvc_systems::task::{
    ClaimNextTask, ClaimTask, EndTask, ListTasks, PostTask, RemoveTask, RetryTask, TaskFilter,
};
use agentsvc_systems::trigger::{CreateTrigger, DeleteTrigger, ListTriggers, NewTrigger, TriggerPatch, UpdateTrigger};
use agentsvc_systems::workflow::{
    CancelRun, CreateWorkflow, NewStep, NewWorkflow, RemoveWorkflow, RunWorkflow, StartRun, UpdateWorkflow,
    WorkflowChoice, WorkflowPatch,
};
use serde_json::json;

use super::action::What;
use super::client::{agent, new_schedule};
use super::facts::GONE;
use super::house::{ANSWER, CONTEXT, House, budgets};
use super::staff::new_goal;

/// Patterns of triggers.
const PATTERNS: &[&str] = &[
    r#"{"turn_completed": {}}"#,
    r#"{"turn_failed": {}}"#,
    r#"{"agent_spawned": {"name_pattern": "agent-*"}}"#,
    r#"{"custom": {"event_type": "news"}}"#,
    r#"{"content_match": {"substring": "7"}}"#,
    r#"{"task_posted": {"assignee_match": "self"}}"#,
    r#"{"task_posted": {}}"#,
    r#"{"lifecycle": {}}"#,
    r#"{"system": {}}"#,
    r#"{"all": {}}"#,
];

/// One request.
pub(crate) fn act(house: &mut House, what: What) {
    match what {
        What::NewTrigger | What::UpdateTrigger | What::DeleteTrigger | What::Publish => triggers(house, what),
        What::NewSchedule | What::UpdateSchedule | What::RemoveSchedule | What::RunSchedule => schedules(house, what),
        What::NewGoal | What::UpdateGoal | What::RemoveGoal => goals(house, what),
        What::PostTask | What::ClaimTask | What::EndTask | What::RetryTask | What::RemoveTask => tasks(house, what),
        What::NewWorkflow | What::UpdateWorkflow | What::RemoveWorkflow => workflows(house, what),
        What::RunWorkflow | What::StartRun | What::CancelRun => runs(house, what),
        What::SetBudget => {
            let scope = house.dice.chance(60).then(|| agent(house)).flatten().map_or(Scope::Global, Scope::Agent);
            let daily = Micros(house.dice.pick(&[0, 1, 3, 30]) * (CONTEXT + ANSWER));
            let in_force = (!daily.is_zero()).then_some(daily);
            let fact = house.facts.submit(budget_key(scope), format!("{in_force:?}"));
            let hourly: u64 = house.dice.pick(&[0, 1, 4, 30]) * (CONTEXT + ANSWER);
            let hourly_tokens = house.dice.chance(25).then_some(hourly);
            let limits = Limits { daily: Some(daily), hourly_tokens, ..Limits::default() };
            house.ask(SetBudget { scope, limits }, move |house, _| house.facts.acknowledge(fact));
        }
        What::Reconfigure => {
            let mut settings = house.settings.clone();
            settings.budget = budgets(&mut house.dice);
            settings.provider_calls = house.dice.pick(&[1, 2, 8]);
            settings.require_approval = house.dice.pick(&[vec!["danger".into()], vec![], vec!["file_*".into()]]);
            house.settings = settings.clone();
            house.ask(Reconfigure(Box::new(settings)), |_, _| {});
        }
        What::Note => {
            let kind = house.dice.pick(AuditKind::ALL);
            house.ask(NoteAction { kind, agent: None, details: json!({ "n": 1 }) }, |_, _| {});
        }
        What::TrimAudit => trim(house),
        _ => {}
    }
}

/// The register of a scope's own daily limit.
pub(crate) fn budget_key(scope: Scope) -> String {
    format!("budget/{scope}")
}

fn triggers(house: &mut House, what: What) {
    let known = house.known.triggers.clone();
    if what == What::NewTrigger {
        let Some(owner) = agent(house) else { return };
        let pattern = serde_json::from_str(house.dice.pick(PATTERNS)).expect("it is JSON");
        let mut prompt = house.text("go on with {{event}}");
        if house.dice.chance(6) {
            // With an event that is not small this is longer than a message may be.
            prompt.push_str(&"{{event}}".repeat(300));
        }
        let prompt_template: Box<str> = prompt.as_str().into();
        let trigger = NewTrigger {
            pattern: parse_pattern(&pattern).expect("it is a pattern"),
            prompt_template,
            enabled: true,
            max_fires: house.dice.pick(&[0, 0, 2]),
            cooldown_secs: house.dice.pick(&[None, Some(0), Some(60)]),
            session_mode: None,
            target: house.dice.chance(20).then(|| agent(house)).flatten(),
        };
        return house.ask(CreateTrigger { agent: owner, trigger }, move |house, view| {
            house.known.triggers.push((owner, view.id));
            house.learn(format!("trigger/{owner}/{}", view.id), prompt);
        });
    }
    if what == What::Publish {
        let (event_type, agent) = (house.dice.pick(&["news", "other"]).to_owned(), agent(house));
        let length = if house.dice.chance(80) { 1 } else { 8_000 };
        let payload = json!({ "n": "7".repeat(length) }).to_string().into();
        return house.ask(PublishEvent { event_type, payload, agent, by: None }, |_, _| {});
    }
    let Some((owner, id)) = house.dice.any(&known) else { return };
    let key = format!("trigger/{owner}/{id}");
    if what == What::DeleteTrigger {
        let fact = house.facts.submit(key, GONE);
        return house.ask(DeleteTrigger(id), move |house, ()| house.facts.acknowledge(fact));
    }
    let prompt = house.text("changed");
    let enabled = house.dice.pick(&[None, Some(true), Some(false)]);
    let patch = TriggerPatch { prompt_template: Some(prompt.as_str().into()), enabled, ..TriggerPatch::default() };
    let fact = house.facts.submit(key, prompt);
    house.ask(UpdateTrigger { trigger: id, patch }, move |house, _| house.facts.acknowledge(fact));
}

fn schedules(house: &mut House, what: What) {
    if what == What::NewSchedule {
        let Some(agent) = agent(house) else { return };
        let kind = house.dice.pick(&[ScheduleKind::Schedule, ScheduleKind::Cron]);
        let new = new_schedule(house, agent, kind);
        let prompt = new.prompt.to_string();
        return house.ask(CreateSchedule { new, by_tool: false }, move |house, view| {
            house.known.schedules.push((agent, kind, view.id));
            house.learn(format!("schedule/{agent}/{kind:?}/{}", view.id), prompt);
        });
    }
    let known = house.known.schedules.clone();
    let Some((agent, kind, id)) = house.dice.any(&known) else { return };
    let key = format!("schedule/{agent}/{kind:?}/{id}");
    match what {
        What::RunSchedule => house.ask(RunSchedule { kind, id }, |_, _| {}),
        What::RemoveSchedule => {
            let fact = house.facts.submit(key, GONE);
            house.ask(RemoveSchedule { kind, id, owner: None }, move |house, ()| house.facts.acknowledge(fact));
        }
        _ => {
            let prompt = house.text("act otherwise");
            let fact = house.facts.submit(key, prompt.as_str());
            let rule = house.dice.chance(30).then(|| house.dice.pick(&["every 30s", "*/3 * * * *", "every 1h"]).into());
            let enabled = house.dice.pick(&[None, Some(true), Some(false)]);
            let patch = SchedulePatch { prompt: Some(prompt.into()), enabled, rule, ..SchedulePatch::default() };
            house.ask(UpdateSchedule { kind, id, patch }, move |house, _| house.facts.acknowledge(fact));
        }
    }
}

fn goals(house: &mut House, what: What) {
    let known = house.known.goals.clone();
    if what == What::NewGoal {
        let title = house.text("goal");
        let parent = house.dice.any(&known).filter(|_| house.dice.chance(40)).map(|(id, _)| id);
        let agent = house.dice.chance(60).then(|| agent(house)).flatten();
        let due_at = house.dice.chance(30).then_some(Timestamp(house.now + 5_000));
        let command = CreateGoal { title: title.clone(), parent, agent, due_at, ..new_goal() };
        return house.ask(command, move |house, view| {
            house.known.goals.push((view.id, GoalStatus::Pending));
            house.learn(format!("goal/{}", view.id), title);
        });
    }
    let Some((goal, _)) = house.dice.any(&known) else { return };
    if what == What::RemoveGoal {
        // Those below it go, too.
        house.facts.forget("goal/");
        return house.ask(RemoveGoal(goal), |_, _| {});
    }
    let title = house.text("goal");
    let fact = house.facts.submit(format!("goal/{goal}"), title.as_str());
    let parent = house.dice.chance(30).then(|| house.dice.any(&known).map(|(id, _)| id));
    let status = house.dice.chance(50).then(|| house.dice.pick(&GoalStatus::ALL));
    let patch = GoalPatch { title: Some(title), status, parent, ..GoalPatch::default() };
    house.ask(UpdateGoal { goal, patch, only_of: None }, move |house, _| house.facts.acknowledge(fact));
}

fn tasks(house: &mut House, what: What) {
    let known = house.known.tasks.clone();
    if what == What::PostTask {
        let title = house.text("task");
        let assignee = house.dice.chance(50).then(|| agent(house)).flatten().map(|agent| agent.to_string());
        let post = PostTask { title: title.clone(), description: "do".into(), assignee, posted_by: None, by: None };
        return house.ask(post, move |house, view| {
            house.known.tasks.push(view.id);
            house.learn(format!("task/{}", view.id), title);
        });
    }
    if what == What::ClaimTask && house.dice.chance(40) {
        let Some(agent) = agent(house) else { return };
        return house.ask(ClaimNextTask { agent, by: None }, |_, _| {});
    }
    let Some(mut task) = house.dice.any(&known) else { return };
    let wanted = match what {
        What::EndTask => Some(TaskState::Running),
        What::RetryTask => Some(TaskState::Failed),
        _ => None,
    };
    if wanted.is_some() && house.dice.chance(70) {
        let filter = TaskFilter { state: wanted, assignee: None };
        let page = house.read(ListTasks { filter, after: None, limit: 20 });
        let ids: Vec<_> = page.map(|page| page.items.iter().map(|task| task.id).collect()).unwrap_or_default();
        task = house.dice.any(&ids).unwrap_or(task);
    }
    match what {
        What::ClaimTask => {
            let Some(agent) = agent(house) else { return };
            house.ask(ClaimTask { task, agent, by: None }, |_, _| {});
        }
        What::EndTask => {
            let (failed, result) = (house.dice.chance(50), Some(house.text("done")));
            house.ask(EndTask { task, failed, result, only_of: None, by: None }, |_, _| {});
        }
        What::RetryTask => house.ask(RetryTask(task), |_, _| {}),
        _ => {
            let fact = house.facts.submit(format!("task/{task}"), GONE);
            house.ask(RemoveTask(task), move |house, _| house.facts.acknowledge(fact));
        }
    }
}

/// The steps of a workflow.
fn steps(house: &mut House) -> Vec<NewStep> {
    let count = 1 + house.dice.below(4);
    let mut steps = Vec::with_capacity(count);
    for _ in 0..count {
        let mode = house.dice.pick(&StepMode::ALL);
        let condition =
            (mode == StepMode::Conditional).then(|| house.dice.pick(&["said", "output contains \"1\""]).to_owned());
        steps.push(NewStep {
            agent_id: if mode == StepMode::Collect { None } else { agent(house) },
            prompt: (mode != StepMode::Collect).then(|| "go on with {{input}}".to_owned()),
            mode,
            condition,
            until: (mode == StepMode::Loop).then(|| "9".to_owned()),
            max_iterations: Some(2),
            max_retries: Some(1),
            error_mode: house.dice.pick(&ErrorMode::ALL),
            timeout_secs: house.dice.pick(&[None, Some(60)]),
            ..NewStep::default()
        });
    }
    steps
}

fn workflows(house: &mut House, what: What) {
    if what == What::NewWorkflow {
        let (name, steps) = (house.text("workflow"), steps(house));
        let new = NewWorkflow { name: name.clone(), description: String::new(), steps };
        return house.ask(CreateWorkflow(new), move |house, view| {
            house.known.workflows.push(view.id);
            house.learn(format!("workflow/{}", view.id), name);
        });
    }
    let known = house.known.workflows.clone();
    let Some(workflow) = house.dice.any(&known) else { return };
    let key = format!("workflow/{workflow}");
    if what == What::RemoveWorkflow {
        house.facts.forget("run/");
        let fact = house.facts.submit(key, GONE);
        return house.ask(RemoveWorkflow(workflow), move |house, _| house.facts.acknowledge(fact));
    }
    let (name, steps) = (house.text("workflow"), steps(house));
    let fact = house.facts.submit(key, name.as_str());
    let patch = WorkflowPatch { name: Some(name), steps: Some(steps), ..WorkflowPatch::default() };
    house.ask(UpdateWorkflow { workflow, patch }, move |house, _| house.facts.acknowledge(fact));
}

fn runs(house: &mut House, what: What) {
    if what == What::CancelRun {
        let known = house.known.runs.clone();
        let Some(run) = house.dice.any(&known) else { return };
        return house.ask(CancelRun(run), |_, ()| {});
    }
    let known = house.known.workflows.clone();
    let Some(workflow) = house.dice.any(&known) else { return };
    let input = house.text("input");
    if what == What::StartRun {
        return house.ask(StartRun { workflow, input }, |house, run| house.known.runs.push(run));
    }
    house.ask(RunWorkflow { workflow: WorkflowChoice::Id(workflow), input, caller: None }, |house, end| {
        house.known.runs.push(end.run);
        house.learn(format!("run/{}", end.run), end.state.as_str());
    });
}

/// The oldest entries of the audit trail go, as the notary does it.
fn trim(house: &mut House) {
    let since = Timestamp(house.now - house.dice.pick(&[0, 60_000, 3_600_000]));
    house.ask(audit::GetAuditHead, move |house, head| trim_to(house, head, since));
}

fn trim_to(house: &mut House, head: AuditHead, since: Timestamp) {
    let from = record::audit_entry_key(head.first);
    let rows = house.disk.content.range(from..).take_while(|(key, _)| key.starts_with(&record::AUDIT_PREFIX));
    let Some(trim) = audit::first_since(head, rows.map(|(_, row)| row), since) else { return };
    let first = trim.first;
    house.ask(trim, move |house, _| {
        let end = record::audit_entry_key(first);
        house.disk.content.retain(|key, _| !(key.starts_with(&record::AUDIT_PREFIX) && *key < end));
    });
}

/// Nothing new begins: what fires is switched off, budgets are lifted, agents run.
pub(crate) fn quiet(house: &mut House) {
    while let Ok(page) = house.read(ListTriggers { agent: None, after: None, limit: limit::PAGE_ITEMS_MAX })
        && !page.items.is_empty()
    {
        page.items.into_iter().for_each(|trigger| house.ask(DeleteTrigger(trigger.id), |_, ()| {}));
    }
    for kind in [ScheduleKind::Schedule, ScheduleKind::Cron] {
        while let Ok(page) = house.read(ListSchedules { kind, agent: None, after: None, limit: limit::PAGE_ITEMS_MAX })
            && !page.items.is_empty()
        {
            page.items
                .into_iter()
                .for_each(|it| house.ask(RemoveSchedule { kind, id: it.id, owner: None }, |_, ()| {}));
        }
    }
    house.facts.forget("trigger/");
    house.facts.forget("schedule/");
    house.facts.forget("budget/");
    house.facts.forget("running/");
    house.settings.provider_calls = 64;
    house.settings.budget = BudgetSettings { answer_tokens_max: ANSWER as u32, ..BudgetSettings::default() };
    let settings = Box::new(house.settings.clone());
    house.ask(Reconfigure(settings), |_, ()| {});
    let none = Limits { daily: Some(Micros(0)), monthly: Some(Micros(0)), hourly_tokens: Some(0) };
    house.ask(SetBudget { scope: Scope::Global, limits: none }, |_, _| {});
    let agents = house.read(ListAgents { filter: AgentFilter::default(), after: None, limit: limit::PAGE_ITEMS_MAX });
    let agents: Vec<_> = agents.map(|page| page.items.into_iter().map(|agent| agent.id).collect()).unwrap_or_default();
    for agent in &agents {
        house.ask(SetBudget { scope: Scope::Agent(*agent), limits: none }, |_, _| {});
    }
    house.ask(StartAgents(agents), |_, _| {});
}

/// A person decides whatever waits.
pub(crate) fn decide_all(house: &mut House) {
    let Ok(page) =
        house.read(ListApprovals { filter: ApprovalFilter { decided: false, agent: None }, after: None, limit: 100 })
    else {
        return;
    };
    let ids: Vec<_> = page.items.iter().map(|view| view.id).collect();
    if !ids.is_empty() {
        house.ask(DecideApprovals { ids, decision: Decision::Reject, reason: None }, |_, _| {});
    }
}
