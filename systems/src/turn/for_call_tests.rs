//! A change for a tool call and the call's result are one step, through crashes and too late answers.

use agentsvc_components::event::EventKind;
use agentsvc_components::session::message::{Block, ToolCall};
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::{AgentId, Refusal};

use super::*;
use crate::kernel::for_call::{ForCall, Formatter};
use crate::session::GetSession;
use crate::task::{GetQueueStatus, ListTasks, PostTask, TaskView};
use crate::testing::{TestWorld, answer};

/// An agent whose model has asked for a tool; the call that went out.
fn calling(world: &mut TestWorld) -> (AgentId, ToolRun) {
    let agent = world.spawn("a");
    world.begin(SendMessage { agent, session: None, message: NewMessage::text("go") });
    world.step();
    let attempt = world.next_call().attempt;
    let call = ToolCall { id: "c1".into(), name: "task_post".into(), input: "{}".into() };
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
    let run = run(world);
    (agent, run)
}

fn run(world: &mut TestWorld) -> ToolRun {
    let effects = std::mem::take(&mut world.effects);
    effects.into_iter().find_map(|effect| effect.take::<ToolRun>().ok().map(|run| *run)).unwrap()
}

fn post(run: &ToolRun, title: &str) -> ForCall<PostTask> {
    let (posted_by, by) = (Some(run.agent), Some(run.turn()));
    let command = PostTask { title: title.into(), posted_by, by, ..PostTask::default() };
    let told = |view: &TaskView| format!("posted {}", view.task.title);
    ForCall { attempt: run.attempt, index: run.index, command, told: Formatter::By(told) }
}

fn results(world: &mut TestWorld, agent: AgentId) -> Vec<String> {
    let log = world.ask(GetSession::Current(agent)).unwrap().log;
    let blocks = world.rows(log).into_iter().flat_map(|row| row.blocks);
    blocks
        .filter_map(|block| if let Block::ToolResult { content, .. } = block { Some(content) } else { None })
        .collect()
}

fn pending(world: &mut TestWorld) -> usize {
    world.ask(GetQueueStatus).unwrap().pending
}

fn code(refused: Result<(), Refusal>) -> Option<String> {
    refused.unwrap_err().code.map(|code| code.to_string())
}

#[test]
fn the_change_and_the_result_are_one_step_and_the_turn_goes_on() {
    let mut world = TestWorld::new();
    let (agent, run) = calling(&mut world);
    world.ask(post(&run, "t")).unwrap();
    assert_eq!(results(&mut world, agent), ["posted t"]);
    assert_eq!(world.calls.len(), 1, "the model is asked again");
    let kinds: Vec<EventKind> = world.events.iter().map(|event| event.kind()).collect();
    assert!(kinds.ends_with(&[EventKind::TaskPosted, EventKind::ToolCalled]), "{kinds:?}");
    assert_eq!(world.engine.stats().tools_out, 0);
    // The tool asks once more, as after a crash between the step and its reply.
    assert_eq!(code(world.ask(post(&run, "t"))).as_deref(), Some("turn_ended"));
    assert_eq!(pending(&mut world), 1);
}

#[test]
fn after_a_crash_before_the_step_the_call_goes_out_again_and_changes_the_world_once() {
    let mut world = TestWorld::new();
    let (agent, _) = calling(&mut world);
    world.restart();
    let resumed = run(&mut world);
    assert_eq!(resumed.runs_before, 1);
    world.ask(post(&resumed, "t")).unwrap();
    world.restart();
    assert_eq!((pending(&mut world), results(&mut world, agent)), (1, vec!["posted t".to_owned()]));
    let posted = world.ask(ListTasks { limit: 1, ..ListTasks::default() }).unwrap().items.remove(0).task;
    assert_eq!(posted.posted_by, Some(agent));
}

#[test]
fn a_refusal_leaves_the_call_to_its_tool_and_a_call_given_up_changes_nothing() {
    let mut world = TestWorld::new();
    let (agent, run) = calling(&mut world);
    let refused = world.ask(post(&run, " ")).unwrap_err();
    assert_eq!(refused.field.as_deref(), Some("title"));
    assert!(results(&mut world, agent).is_empty());
    let end = ToolEnd {
        index: run.index,
        call: run.call.clone(),
        content: "Refused".into(),
        whole: None,
        notice: None,
        brought: None,
        status: ToolStatus::Error,
    };
    world.outcome(ToolOutcome(run.attempt, end));
    assert_eq!(code(world.ask(post(&run, "too late"))).as_deref(), Some("turn_ended"));
    assert_eq!(pending(&mut world), 0);
}

#[test]
fn a_call_tells_how_often_it_went_out() {
    let mut world = TestWorld::new();
    let (_, first) = calling(&mut world);
    assert_eq!((first.runs_before, first.sent_at), (0, world.now));
    for restarts in 1..4 {
        world.now.0 += 1_000;
        world.restart();
        let again = run(&mut world);
        assert_eq!((again.runs_before, again.sent_at), (restarts, first.sent_at));
    }
}
