//! The models and tools of the simulation.

use agentsvc_components::Actor;
use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::kernel::taint::{Taint, UntrustedContent};
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::session::message::{Block, ToolCall, Usage};
use agentsvc_components::turn::effect::{ModelCall, ToolRun};
use agentsvc_components::turn::outcome::{
    FailureCode, ModelAnswer, ModelEnd, ModelFailure, StopReason, ToolEnd, ToolOutcome, ToolStatus,
};
use agentsvc_systems::Command;
use agentsvc_systems::agent::{AgentFilter, KillDescendant, ListAgents, SpawnChild};
use agentsvc_systems::event::PublishEvent;
use agentsvc_systems::goal::CreateGoal;
use agentsvc_systems::kernel::for_call::{ForCall, Formatter};
use agentsvc_systems::schedule::CreateSchedule;
use agentsvc_systems::task::{ClaimNextTask, PostTask};
use agentsvc_systems::turn::SendToAgent;
use agentsvc_systems::workflow::{RunWorkflow, WorkflowChoice};

use super::client::{new_schedule, spawn_command};
use super::harness::{ANSWER, CONTEXT, Harness, text_block};

/// The tools that models ask for.
const TOOLS: &[&str] = &[
    "system_time",
    "system_time",
    "file_write",
    "web_fetch",
    "shell_exec",
    "danger",
    "danger",
    "agent_send",
    "agent_send",
    "task_post",
    "task_claim",
    "goal_create",
    "agent_spawn",
    "agent_kill",
    "cron_create",
    "event_publish",
    "workflow_run",
    "notify_owner",
    "no_such_tool",
];

/// Why models do not answer.
const FAILURES: &[FailureCode] = &[
    FailureCode::ProviderAuth,
    FailureCode::ProviderRateLimited,
    FailureCode::ProviderUnreachable,
    FailureCode::ProviderTimeout,
    FailureCode::ProviderError,
    FailureCode::ProviderProtocol,
    FailureCode::Internal,
];

/// How a model call ends.
pub(crate) fn model(harness: &mut Harness, call: &ModelCall) -> ModelEnd {
    let is_aborted = harness.outside.is_aborted(call.attempt) && harness.rng.chance(80);
    let usage = Usage::of(harness.rng.below(CONTEXT as usize) as u64, harness.rng.below(ANSWER as usize) as u64);
    let mut text = harness.text("said");
    if is_wordy(call) {
        text.extend(std::iter::repeat_n(" and more", limit::SCAN_INLINE_BYTES_MAX / 8));
    }
    let said = text_block(text);
    let answer = |blocks, stop| ModelAnswer {
        blocks,
        usage,
        provider: "acme".into(),
        model: "one".into(),
        stop,
        ..ModelAnswer::default()
    };
    let roll = harness.rng.below(100);
    if is_aborted {
        let blocks = if roll < 50 { vec![said] } else { Vec::new() };
        return ModelEnd::Aborted(answer(blocks, StopReason::End));
    }
    // The model that is asked first whether a message of a chat deserves an answer.
    let is_check = call.request.as_ref().is_some_and(|request| request.profile.is_some() && request.chat.is_some());
    let said = if is_check && roll >= 75 { text_block("NO_REPLY") } else { said };
    let asks = if insists(call) { 8..90 } else { 8..48 };
    match roll {
        _ if harness.is_ending => ModelEnd::Answered(answer(vec![said], StopReason::End)),
        0..8 => {
            let code = harness.rng.pick(FAILURES);
            ModelEnd::Failed(ModelFailure { code, message: "it did not answer".into(), spent: Vec::new() })
        }
        _ if asks.contains(&roll) => {
            let mut blocks = calls(harness, call);
            if roll.is_multiple_of(2) {
                blocks.insert(0, said);
            }
            ModelEnd::Answered(answer(blocks, StopReason::ToolUse))
        }
        48..53 => ModelEnd::Answered(ModelAnswer { pressed: true, ..answer(vec![said], StopReason::Length) }),
        53..55 => ModelEnd::Answered(answer(Vec::new(), StopReason::End)),
        _ => ModelEnd::Answered(answer(vec![said], StopReason::End)),
    }
}

/// Is what the model of this turn says longer than the world scans in a step?
fn is_wordy(call: &ModelCall) -> bool {
    (call.turn().0.as_u128() >> 16).is_multiple_of(16)
}

/// Does the model of this turn want the same thing over and over?
fn insists(call: &ModelCall) -> bool {
    call.turn().0.as_u128().is_multiple_of(8)
}

/// The tool calls of an answer. A model that repeats itself meets the loop guard; in one turn of eight it insists on one
/// call, so that sooner or later all that it asks for is refused at once.
fn calls(harness: &mut Harness, call: &ModelCall) -> Vec<Block> {
    if insists(call) {
        let count = if harness.rng.chance(20) { 31 } else { 1 + harness.rng.below(3) };
        let same = |number| ToolCall { id: format!("call-{number}"), name: "system_time".into(), input: "{}".into() };
        return (0..count).map(|number| Block::ToolCall(same(number))).collect();
    }
    let count = if harness.rng.chance(4) { 31 } else { 1 + harness.rng.below(3) };
    let clients = call.request.as_ref().and_then(|request| request.tools.first()).map(|tool| tool.name.to_string());
    let mut blocks = Vec::with_capacity(count);
    for number in 0..count {
        let name = clients.clone().filter(|_| harness.rng.chance(50));
        let name = name.unwrap_or_else(|| harness.rng.pick(TOOLS).to_owned());
        let input = format!("{{\"n\": {}}}", harness.rng.below(3));
        blocks.push(Block::ToolCall(ToolCall { id: format!("call-{number}"), name, input }));
    }
    blocks
}

/// A tool runs.
pub(crate) fn tool(harness: &mut Harness, run: &ToolRun) {
    if harness.is_ending {
        return plain(harness, run);
    }
    let turn = Some(run.turn());
    let someone = someone(harness).unwrap_or(run.agent);
    let text = harness.text("by a tool");
    match run.call.name.as_str() {
        "agent_send" => {
            let (to, wait) = (someone.to_string(), harness.rng.chance(70));
            let send = SendToAgent { from: run.attempt, index: run.index, to, session: None, text, wait, found: None };
            settle(harness, run, send);
        }
        "task_post" => {
            let post = PostTask {
                title: text,
                description: String::new(),
                assignee: None,
                posted_by: Some(run.agent),
                by: turn,
            };
            change(harness, run, post);
        }
        "task_claim" => {
            harness.facts.forget("task/");
            change(harness, run, ClaimNextTask { agent: run.agent, by: turn });
        }
        "goal_create" => change(harness, run, CreateGoal { title: text, agent: Some(run.agent), ..new_goal() }),
        "agent_spawn" => {
            let child = spawn_command(harness);
            change(harness, run, SpawnChild { parent: run.agent, child, by: turn });
        }
        "agent_kill" => {
            change(harness, run, KillDescendant { by: run.agent, agent: someone.to_string(), turn });
        }
        "cron_create" => {
            let new = new_schedule(harness, run.agent, ScheduleKind::Cron);
            change(harness, run, CreateSchedule { new, by_tool: true });
        }
        "event_publish" => {
            let payload = "{\"from\": \"tool\"}".into();
            change(harness, run, PublishEvent { event_type: "news".into(), payload, agent: Some(run.agent), by: turn });
        }
        "workflow_run" => workflow(harness, run, text),
        _ => plain(harness, run),
    }
}

/// A live agent, or one that was.
fn someone(harness: &mut Harness) -> Option<AgentId> {
    let page = harness.read(ListAgents { filter: AgentFilter::default(), after: None, limit: 50 }).ok()?;
    let ids: Vec<AgentId> =
        page.items.iter().map(|agent| agent.id).chain(harness.known.agents.first().copied()).collect();
    harness.rng.any(&ids)
}

/// A goal without anything.
pub(crate) fn new_goal() -> CreateGoal {
    CreateGoal {
        title: String::new(),
        description: String::new(),
        agent: None,
        parent: None,
        status: agentsvc_components::goal::GoalStatus::Pending,
        due_at: None,
        note: String::new(),
        only_below_own: false,
    }
}

fn workflow(harness: &mut Harness, run: &ToolRun, input: String) {
    let Some(workflow) = harness.rng.any(&harness.known.workflows) else { return plain(harness, run) };
    let (asked, caller) = (run.clone(), Some((run.attempt, run.index)));
    let command = RunWorkflow { workflow: WorkflowChoice::Id(workflow), input, caller };
    harness.ask_as(actor(run), command, move |harness, reply| {
        let (content, status) = match reply {
            Ok(end) => (end.output.to_string(), ToolStatus::Ok),
            Err(refusal) => (refusal.message, ToolStatus::Error),
        };
        harness.outside.push(back(&asked, content, status));
    });
}

const fn actor(run: &ToolRun) -> Actor {
    Actor::Agent { agent: run.agent, turn: run.turn() }
}

fn back(run: &ToolRun, content: String, status: ToolStatus) -> AnyOutcome {
    let notice = (run.call.name == "notify_owner").then(|| "a note".to_owned());
    let brought = (run.call.name == "web_fetch" && status == ToolStatus::Ok)
        .then(|| Box::new(UntrustedContent { taint: Taint::WEB, source: "web_fetch".into(), ..Default::default() }));
    let end = ToolEnd { index: run.index, call: run.call.clone(), content, whole: None, notice, brought, status };
    ToolOutcome(run.attempt, end).into()
}

/// A tool whose work is a command: the world settles the call with it.
fn change<C: Command>(harness: &mut Harness, run: &ToolRun, command: C) {
    let told = Formatter::By(|_| "done".to_owned());
    settle(harness, run, ForCall { attempt: run.attempt, index: run.index, command, told });
}

/// A command that settles the call itself; only a refusal comes back as any result.
fn settle<C: Command>(harness: &mut Harness, run: &ToolRun, command: C) {
    let asked = run.clone();
    harness.ask_as(actor(run), command, move |harness, reply| {
        if let Err(refusal) = reply {
            harness.outside.push(back(&asked, refusal.message, ToolStatus::Error));
        }
    });
}

/// Any other tool. One that may have run before a kill and must not run twice is unknown.
fn plain(harness: &mut Harness, run: &ToolRun) {
    let status = match harness.rng.below(10) {
        _ if run.runs_before > 0 && ["file_write", "shell_exec"].contains(&run.call.name.as_str()) => {
            ToolStatus::Unknown
        }
        0 => ToolStatus::Error,
        1 if run.call.name == "no_such_tool" => ToolStatus::Refused,
        _ => ToolStatus::Ok,
    };
    let content = harness.text("result");
    let outcome = back(run, content, status);
    harness.note(|| format!("{outcome:?}").chars().take(150).collect());
    harness.engine.outcome(outcome);
}
