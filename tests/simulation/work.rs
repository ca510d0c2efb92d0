//! The client sets agents to work: triggers, schedules, goals, tasks, workflows, budgets, the configuration.

use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::goal::{Goal, GoalStatus};
use agentsvc_components::kernel::limit;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::usage::{Limits, Scope};
use agentsvc_components::workflow::{ErrorMode, StepMode, Workflow};
use agentsvc_components::{Micros, Timestamp};
use agentsvc_systems::DOMAINS;
use agentsvc_systems::agent::{AgentFilter, ListAgents, SetOwner, StartAgents};
use agentsvc_systems::approval::{ApprovalFilter, DecideApprovals, Decision, ListApprovals};
use agentsvc_systems::audit::{self, NoteAction};
use agentsvc_systems::budget::SetBudget;
use agentsvc_systems::config::Reconfigure;
use agentsvc_systems::config::budget::BudgetSettings;
use agentsvc_systems::event::PublishEvent;
use agentsvc_systems::event::parse_pattern;
use agentsvc_systems::goal::{CreateGoal, GoalPatch, UpdateGoal};
use agentsvc_systems::kernel::entities::Remove;
use agentsvc_systems::kernel::record;
use agentsvc_systems::schedule::{
    CreateSchedule, ListSchedules, RemoveSchedule, RunSchedule, SchedulePatch, UpdateSchedule,
};
use agentsvc_systems::task::{ClaimNextTask, ClaimTask, EndTask, ListTasks, PostTask, RetryTask, TaskFilter};
use agentsvc_systems::trigger::{CreateTrigger, DeleteTrigger, ListTriggers, NewTrigger, TriggerPatch, UpdateTrigger};
use agentsvc_systems::workflow::{
    CancelRun, CreateWorkflow, NewStep, NewWorkflow, RunWorkflow, StartRun, UpdateWorkflow, WorkflowChoice,
    WorkflowPatch,
};
use serde_json::json;

use super::action::What;
use super::client::{agent, new_schedule};
use super::facts::GONE;
use super::harness::{ANSWER, CONTEXT, Harness, budgets};
use super::staff::new_goal;
use super::{a2a, a2a_outbound, chats, deliveries, hands, hooks, mcp, media, people, prompts, webhooks};

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
pub(crate) fn act(harness: &mut Harness, what: What) {
    match what {
        What::NewTrigger | What::UpdateTrigger | What::DeleteTrigger | What::Publish => triggers(harness, what),
        What::NewSchedule | What::UpdateSchedule | What::RemoveSchedule | What::RunSchedule => schedules(harness, what),
        What::NewGoal | What::UpdateGoal | What::RemoveGoal => goals(harness, what),
        What::PostTask | What::ClaimTask | What::EndTask | What::RetryTask | What::RemoveTask => tasks(harness, what),
        What::NewWorkflow | What::UpdateWorkflow | What::RemoveWorkflow => workflows(harness, what),
        What::RunWorkflow | What::StartRun | What::CancelRun => runs(harness, what),
        What::SendA2aTask | What::CancelA2aTask | What::SetA2aPush => a2a::act(harness, what),
        What::NoteMcpTools | What::AcceptMcpTools | What::ForgetMcpTools => mcp::act(harness, what),
        What::DiscoverA2aAgent | What::RemoveA2aAgent | What::SendToA2aAgent => a2a_outbound::act(harness, what),
        What::ActivateHand | What::PauseHand | What::ResumeHand | What::SetHand | What::EndHand => {
            hands::act(harness, what);
        }
        What::SetChannels
        | What::ReceiveChat
        | What::RepeatChat
        | What::CompleteChat
        | What::PairChat
        | What::PostWeb
        | What::SendToChat
        | What::ChooseChat => chats::act(harness, what),
        What::SetTargets => deliveries::act(harness),
        What::CallHook | What::RepeatHook | What::ReleaseHook => hooks::act(harness, what),
        What::NewMedia => media::act(harness),
        What::NewUser
        | What::UpdateUser
        | What::RemoveUser
        | What::ConfigureUsers
        | What::NewKey
        | What::RevokeKey
        | What::PairDevice
        | What::RemoveDevice => people::act(harness, what),
        What::SavePrompt | What::ActivatePrompt | What::NewExperiment | What::ChangeExperiment | What::RatePrompt => {
            prompts::act(harness, what)
        }
        What::NewWebhook | What::UpdateWebhook | What::RemoveWebhook => webhooks::act(harness, what),
        What::SetBudget => {
            let scope = harness.rng.chance(60).then(|| agent(harness)).flatten().map_or(Scope::Global, Scope::Agent);
            let daily = Micros(harness.rng.pick(&[0, 1, 3, 30]) * (CONTEXT + ANSWER));
            let in_force = (!daily.is_zero()).then_some(daily);
            let fact = harness.facts.submit(budget_key(scope), format!("{in_force:?}"));
            let hourly: u64 = harness.rng.pick(&[0, 1, 4, 30]) * (CONTEXT + ANSWER);
            let hourly_tokens = harness.rng.chance(25).then_some(hourly);
            let limits = Limits { daily: Some(daily), hourly_tokens, ..Limits::default() };
            harness.ask(SetBudget { scope, limits }, move |harness, _| harness.facts.acknowledge(fact));
        }
        What::Reconfigure => {
            let mut settings = harness.settings.clone();
            settings.budget = budgets(&mut harness.rng);
            settings.provider_calls = harness.rng.pick(&[1, 2, 8]);
            settings.require_approval = harness.rng.pick(&[vec!["danger".into()], vec![], vec!["file_*".into()]]);
            harness.settings = settings.clone();
            harness.ask(Reconfigure(Box::new(settings)), |_, _| {});
        }
        What::Note => {
            let kinds: Vec<_> = DOMAINS.iter().flat_map(|domain| domain.audit_kinds).collect();
            let kind = harness.rng.pick(&kinds).kind.clone();
            harness.ask(NoteAction { kind, agent: None, details: json!({ "n": 1 }) }, |_, _| {});
        }
        What::TrimAudit => trim(harness),
        _ => {}
    }
}

/// The register of a scope's own daily limit.
pub(crate) fn budget_key(scope: Scope) -> String {
    format!("budget/{scope}")
}

fn triggers(harness: &mut Harness, what: What) {
    let known = harness.known.triggers.clone();
    if what == What::NewTrigger {
        let Some(owner) = agent(harness) else { return };
        let pattern = serde_json::from_str(harness.rng.pick(PATTERNS)).expect("it is JSON");
        let mut prompt = harness.text("go on with {{event}}");
        if harness.rng.chance(6) {
            // With an event that is not small this is longer than a message may be.
            prompt.push_str(&"{{event}}".repeat(300));
        }
        let prompt_template: Box<str> = prompt.as_str().into();
        let trigger = NewTrigger {
            pattern: parse_pattern(&pattern).expect("it is a pattern"),
            prompt_template,
            enabled: true,
            max_fires: harness.rng.pick(&[0, 0, 2]),
            cooldown_secs: harness.rng.pick(&[None, Some(0), Some(60)]),
            session_mode: None,
            target: harness.rng.chance(20).then(|| agent(harness)).flatten(),
        };
        return harness.ask(CreateTrigger { agent: owner, trigger }, move |harness, view| {
            harness.known.triggers.push((owner, view.id));
            harness.learn(format!("trigger/{owner}/{}", view.id), prompt);
        });
    }
    if what == What::Publish {
        let (event_type, agent) = (harness.rng.pick(&["news", "other"]).to_owned(), agent(harness));
        let length = if harness.rng.chance(80) { 1 } else { 8_000 };
        let payload = json!({ "n": "7".repeat(length) }).to_string().into();
        return harness.ask(PublishEvent { event_type, payload, agent, by: None }, |_, _| {});
    }
    let Some((owner, id)) = harness.rng.any(&known) else { return };
    let key = format!("trigger/{owner}/{id}");
    if what == What::DeleteTrigger {
        let fact = harness.facts.submit(key, GONE);
        return harness.ask(DeleteTrigger(id), move |harness, ()| harness.facts.acknowledge(fact));
    }
    let prompt = harness.text("changed");
    let enabled = harness.rng.pick(&[None, Some(true), Some(false)]);
    let patch = TriggerPatch { prompt_template: Some(prompt.as_str().into()), enabled, ..TriggerPatch::default() };
    let fact = harness.facts.submit(key, prompt);
    harness.ask(UpdateTrigger { trigger: id, patch }, move |harness, _| harness.facts.acknowledge(fact));
}

fn schedules(harness: &mut Harness, what: What) {
    if what == What::NewSchedule {
        let Some(agent) = agent(harness) else { return };
        let kind = harness.rng.pick(&[ScheduleKind::Schedule, ScheduleKind::Cron]);
        let new = new_schedule(harness, agent, kind);
        let prompt = new.prompt.to_string();
        return harness.ask(CreateSchedule { new, by_tool: false }, move |harness, view| {
            harness.known.schedules.push((agent, kind, view.id));
            harness.learn(format!("schedule/{agent}/{kind:?}/{}", view.id), prompt);
        });
    }
    let known = harness.known.schedules.clone();
    let Some((agent, kind, id)) = harness.rng.any(&known) else { return };
    let key = format!("schedule/{agent}/{kind:?}/{id}");
    match what {
        What::RunSchedule => harness.ask(RunSchedule { kind, id }, |_, _| {}),
        What::RemoveSchedule => {
            let fact = harness.facts.submit(key, GONE);
            harness.ask(RemoveSchedule { kind, id, owner: None }, move |harness, ()| harness.facts.acknowledge(fact));
        }
        _ => {
            let prompt = harness.text("act otherwise");
            let fact = harness.facts.submit(key, prompt.as_str());
            let rule =
                harness.rng.chance(30).then(|| harness.rng.pick(&["every 30s", "*/3 * * * *", "every 1h"]).into());
            let enabled = harness.rng.pick(&[None, Some(true), Some(false)]);
            let patch = SchedulePatch { prompt: Some(prompt.into()), enabled, rule, ..SchedulePatch::default() };
            harness.ask(UpdateSchedule { kind, id, patch }, move |harness, _| harness.facts.acknowledge(fact));
        }
    }
}

fn goals(harness: &mut Harness, what: What) {
    let known = harness.known.goals.clone();
    if what == What::NewGoal {
        let title = harness.text("goal");
        let parent = harness.rng.any(&known).filter(|_| harness.rng.chance(40)).map(|(id, _)| id);
        let agent = harness.rng.chance(60).then(|| agent(harness)).flatten();
        let due_at = harness.rng.chance(30).then_some(Timestamp(harness.now + 5_000));
        let command = CreateGoal { title: title.clone(), parent, agent, due_at, ..new_goal() };
        return harness.ask(command, move |harness, view| {
            harness.known.goals.push((view.id, GoalStatus::Pending));
            harness.learn(format!("goal/{}", view.id), title);
        });
    }
    let Some((goal, _)) = harness.rng.any(&known) else { return };
    if what == What::RemoveGoal {
        // Those below it go, too.
        harness.facts.forget("goal/");
        return harness.ask(Remove::<Goal>(goal), |_, _| {});
    }
    let title = harness.text("goal");
    let fact = harness.facts.submit(format!("goal/{goal}"), title.as_str());
    let parent = harness.rng.chance(30).then(|| harness.rng.any(&known).map(|(id, _)| id));
    let status = harness.rng.chance(50).then(|| harness.rng.pick(&GoalStatus::ALL));
    let patch = GoalPatch { title: Some(title), status, parent, ..GoalPatch::default() };
    harness.ask(UpdateGoal { goal, patch, only_of: None }, move |harness, _| harness.facts.acknowledge(fact));
}

fn tasks(harness: &mut Harness, what: What) {
    let known = harness.known.tasks.clone();
    if what == What::PostTask {
        let title = harness.text("task");
        let assignee = harness.rng.chance(50).then(|| agent(harness)).flatten().map(|agent| agent.to_string());
        let post = PostTask { title: title.clone(), description: "do".into(), assignee, posted_by: None, by: None };
        return harness.ask(post, move |harness, view| {
            harness.known.tasks.push(view.id);
            harness.learn(format!("task/{}", view.id), title);
        });
    }
    if what == What::ClaimTask && harness.rng.chance(40) {
        let Some(agent) = agent(harness) else { return };
        return harness.ask(ClaimNextTask { agent, by: None }, |_, _| {});
    }
    let Some(mut task) = harness.rng.any(&known) else { return };
    let wanted = match what {
        What::EndTask => Some(TaskState::Running),
        What::RetryTask => Some(TaskState::Failed),
        _ => None,
    };
    if wanted.is_some() && harness.rng.chance(70) {
        let filter = TaskFilter { state: wanted, assignee: None };
        let page = harness.read(ListTasks { filter, after: None, limit: 20 });
        let ids: Vec<_> = page.map(|page| page.items.iter().map(|task| task.id).collect()).unwrap_or_default();
        task = harness.rng.any(&ids).unwrap_or(task);
    }
    match what {
        What::ClaimTask => {
            let Some(agent) = agent(harness) else { return };
            harness.ask(ClaimTask { task, agent, by: None }, |_, _| {});
        }
        What::EndTask => {
            let (failed, result) = (harness.rng.chance(50), Some(harness.text("done")));
            harness.ask(EndTask { task, failed, result, only_of: None, by: None }, |_, _| {});
        }
        What::RetryTask => harness.ask(RetryTask(task), |_, _| {}),
        _ => {
            let fact = harness.facts.submit(format!("task/{task}"), GONE);
            harness.ask(Remove::<Task>(task), move |harness, _| harness.facts.acknowledge(fact));
        }
    }
}

/// The steps of a workflow.
fn steps(harness: &mut Harness) -> Vec<NewStep> {
    let count = 1 + harness.rng.below(4);
    let mut steps = Vec::with_capacity(count);
    for _ in 0..count {
        let mode = harness.rng.pick(&StepMode::ALL);
        let condition =
            (mode == StepMode::Conditional).then(|| harness.rng.pick(&["said", "output contains \"1\""]).to_owned());
        steps.push(NewStep {
            agent_id: if mode == StepMode::Collect { None } else { agent(harness) },
            prompt: (mode != StepMode::Collect).then(|| "go on with {{input}}".to_owned()),
            mode,
            condition,
            until: (mode == StepMode::Loop).then(|| "9".to_owned()),
            max_iterations: Some(2),
            max_retries: Some(1),
            error_mode: harness.rng.pick(&ErrorMode::ALL),
            timeout_secs: harness.rng.pick(&[None, Some(60)]),
            ..NewStep::default()
        });
    }
    steps
}

fn workflows(harness: &mut Harness, what: What) {
    if what == What::NewWorkflow {
        let (name, steps) = (harness.text("workflow"), steps(harness));
        let new = NewWorkflow { name: name.clone(), description: String::new(), steps };
        return harness.ask(CreateWorkflow(new), move |harness, view| {
            harness.known.workflows.push(view.id);
            harness.learn(format!("workflow/{}", view.id), name);
        });
    }
    let known = harness.known.workflows.clone();
    let Some(workflow) = harness.rng.any(&known) else { return };
    let key = format!("workflow/{workflow}");
    if what == What::RemoveWorkflow {
        harness.facts.forget("run/");
        let fact = harness.facts.submit(key, GONE);
        return harness.ask(Remove::<Workflow>(workflow), move |harness, _| harness.facts.acknowledge(fact));
    }
    let (name, steps) = (harness.text("workflow"), steps(harness));
    let fact = harness.facts.submit(key, name.as_str());
    let patch = WorkflowPatch { name: Some(name), steps: Some(steps), ..WorkflowPatch::default() };
    harness.ask(UpdateWorkflow { workflow, patch }, move |harness, _| harness.facts.acknowledge(fact));
}

fn runs(harness: &mut Harness, what: What) {
    if what == What::CancelRun {
        let known = harness.known.runs.clone();
        let Some(run) = harness.rng.any(&known) else { return };
        return harness.ask(CancelRun(run), |_, ()| {});
    }
    let known = harness.known.workflows.clone();
    let Some(workflow) = harness.rng.any(&known) else { return };
    let input = harness.text("input");
    if what == What::StartRun {
        return harness.ask(StartRun { workflow, input }, |harness, run| harness.known.runs.push(run));
    }
    harness.ask(RunWorkflow { workflow: WorkflowChoice::Id(workflow), input, caller: None }, |harness, end| {
        harness.known.runs.push(end.run);
        harness.learn(format!("run/{}", end.run), end.state.as_str());
    });
}

/// The oldest entries of the audit trail go, as the checkpoint signer does it.
fn trim(harness: &mut Harness) {
    let since = Timestamp(harness.now - harness.rng.pick(&[0, 60_000, 3_600_000]));
    harness.ask(audit::GetAuditHead, move |harness, head| trim_to(harness, head, since));
}

fn trim_to(harness: &mut Harness, head: AuditHead, since: Timestamp) {
    let from = record::audit_entry_key(head.first);
    let rows = harness.disk.content.range(from..).take_while(|(key, _)| key.starts_with(&record::AUDIT_PREFIX));
    let Some(trim) = audit::first_since(head, rows.map(|(_, row)| row), since) else { return };
    let first = trim.first;
    harness.ask(trim, move |harness, _| {
        let end = record::audit_entry_key(first);
        harness.disk.content.retain(|key, _| !(key.starts_with(&record::AUDIT_PREFIX) && *key < end));
    });
}

/// Nothing new begins: what fires is switched off, budgets are lifted, agents run.
pub(crate) fn quiet(harness: &mut Harness) {
    while let Ok(page) = harness.read(ListTriggers { agent: None, after: None, limit: limit::PAGE_ITEMS_MAX })
        && !page.items.is_empty()
    {
        page.items.into_iter().for_each(|trigger| harness.ask(DeleteTrigger(trigger.id), |_, ()| {}));
    }
    for kind in [ScheduleKind::Schedule, ScheduleKind::Cron] {
        while let Ok(page) =
            harness.read(ListSchedules { kind, agent: None, after: None, limit: limit::PAGE_ITEMS_MAX })
            && !page.items.is_empty()
        {
            page.items
                .into_iter()
                .for_each(|it| harness.ask(RemoveSchedule { kind, id: it.id, owner: None }, |_, ()| {}));
        }
    }
    harness.facts.forget("trigger/");
    harness.facts.forget("schedule/");
    harness.facts.forget("budget/");
    harness.facts.forget("running/");
    harness.settings.provider_calls = 64;
    harness.settings.budget = BudgetSettings { answer_tokens_max: ANSWER as u32, ..BudgetSettings::default() };
    let settings = Box::new(harness.settings.clone());
    harness.ask(Reconfigure(settings), |_, ()| {});
    let none = Limits { daily: Some(Micros(0)), monthly: Some(Micros(0)), hourly_tokens: Some(0) };
    harness.ask(SetBudget { scope: Scope::Global, limits: none }, |_, _| {});
    let agents = harness.read(ListAgents { filter: AgentFilter::default(), after: None, limit: limit::PAGE_ITEMS_MAX });
    let agents: Vec<_> = agents.map(|page| page.items.into_iter().map(|agent| agent.id).collect()).unwrap_or_default();
    for agent in &agents {
        harness.ask(SetBudget { scope: Scope::Agent(*agent), limits: none }, |_, _| {});
        // The agent of a user who was deleted starts for somebody else only, and its turns wait until then.
        harness.ask(SetOwner { agent: *agent, user: None }, |_, _| {});
    }
    for user in harness.known.users.clone() {
        harness.ask(SetBudget { scope: Scope::User(user), limits: none }, |_, _| {});
    }
    harness.ask(StartAgents(agents), |_, _| {});
}

/// A person decides whatever waits.
pub(crate) fn decide_all(harness: &mut Harness) {
    let Ok(page) =
        harness.read(ListApprovals { filter: ApprovalFilter { decided: false, agent: None }, after: None, limit: 100 })
    else {
        return;
    };
    let ids: Vec<_> = page.items.iter().map(|view| view.id).collect();
    if !ids.is_empty() {
        harness.ask(DecideApprovals { ids, decision: Decision::Reject, reason: None, answer: None }, |_, _| {});
    }
}
