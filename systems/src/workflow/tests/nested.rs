//! Runs that the tool call of a turn begins: awaited, found again, bounded in depth, and given up with their turn.

use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::{Block, ChatMessage, Role, ToolCall};
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelOutcome, ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::{RefusalKind, SessionId};

use super::*;
use crate::agent::RemoveAgents;
use crate::testing::answer;
use crate::turn::{
    Conversation, ConversationTarget, NewMessage, SendConversation, SendMessage, SendToAgent, StopTurns,
};

/// The model of the next call asks for one tool; gives the run that went out.
fn tool(world: &mut TestWorld, name: &str) -> ToolRun {
    let attempt = world.next_call().attempt;
    let call = ToolCall { id: "c".into(), name: name.into(), input: "{}".into() };
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![Block::ToolCall(call)]))));
    let at = world.effects.iter().rposition(|effect| effect.is::<ToolRun>()).unwrap();
    *world.effects.remove(at).take::<ToolRun>().unwrap()
}

/// The tool asks the world for a run.
fn ask(world: &mut TestWorld, run: &ToolRun, workflow: &str) -> Asked<RunEnd> {
    let (workflow, caller) = (WorkflowChoice::Named(workflow.into()), Some((run.attempt, run.index)));
    let asked = world.begin(RunWorkflow { workflow, input: "from a turn".into(), caller });
    world.step();
    asked
}

fn settle(world: &mut TestWorld, run: &ToolRun, content: &str) {
    let (index, call, content) = (run.index, run.call.clone(), content.to_owned());
    let end = ToolEnd { index, call, content, whole: None, notice: None, brought: None, status: ToolStatus::Ok };
    world.outcome(ToolOutcome(run.attempt, end));
}

fn code(asked: &Asked<RunEnd>) -> Option<String> {
    asked.take().expect("refused at once").err().and_then(|refusal| Some(refusal.code?.to_string()))
}

fn said(world: &mut TestWorld, name: &str) -> Asked<crate::turn::TurnReply> {
    let agent = world.ask(crate::agent::FindAgent(name.into())).unwrap().id;
    let asked = world.begin(SendMessage { agent, session: None, message: NewMessage::text("go") });
    world.step();
    asked
}

fn count(world: &mut TestWorld, workflow: WorkflowId) -> usize {
    world.ask(ListRuns { workflow, after: None, limit: 9 }).unwrap().items.len()
}

#[test]
fn a_tool_call_is_answered_by_one_run_through_a_crash() {
    let mut world = world();
    world.spawn("boss");
    let id = make(&mut world, vec![step("do {{input}}"), step("more")]);
    said(&mut world, "boss");
    let run = tool(&mut world, "workflow_run");
    let asked = ask(&mut world, &run, "w");
    assert_eq!(reply(&mut world, "half"), "do from a turn");
    assert!(asked.take().is_none());
    world.restart();
    let again =
        world.effects.iter().find_map(|effect| effect.get::<ToolRun>()).expect("the call goes out again").clone();
    assert_eq!(again.runs_before, 1);
    let asked = ask(&mut world, &again, "w");
    assert_eq!(count(&mut world, id), 1, "it finds its run");
    assert_eq!(reply(&mut world, "whole"), "more");
    assert_eq!(completed(&asked), "whole");
    let late = ask(&mut world, &again, "w");
    assert_eq!(completed(&late), "whole", "also when it has ended meanwhile");
    assert_eq!(count(&mut world, id), 1);
    settle(&mut world, &again, "whole");
    let stale = ask(&mut world, &again, "w");
    assert_eq!(code(&stale).as_deref(), Some("turn_ended"));
}

#[test]
fn so_many_wait_for_one_run() {
    let mut world = world();
    world.spawn("boss");
    make(&mut world, vec![step("p")]);
    said(&mut world, "boss");
    let run = tool(&mut world, "workflow_run");
    let waiting: Vec<_> = (0..limit::WORKFLOW_WAITERS_MAX).map(|_| ask(&mut world, &run, "w")).collect();
    let refused = ask(&mut world, &run, "w").take().unwrap().unwrap_err();
    assert_eq!(refused.kind, RefusalKind::TooMany);
    reply(&mut world, "done");
    for asked in waiting {
        assert_eq!(completed(&asked), "done");
    }
}

#[test]
fn names_must_be_clear() {
    let mut world = world();
    world.spawn("boss");
    let first = make(&mut world, vec![step("p")]);
    said(&mut world, "boss");
    let run = tool(&mut world, "workflow_run");
    let asked = ask(&mut world, &run, "nothing");
    assert!(asked.take().unwrap().unwrap_err().message.contains("workflow not found: nothing"));
    make(&mut world, vec![step("p")]);
    assert_eq!(code(&ask(&mut world, &run, "w")).as_deref(), Some("workflow_ambiguous"));
    let asked = ask(&mut world, &run, &first.to_string());
    reply(&mut world, "by id");
    assert_eq!(completed(&asked), "by id");
}

#[test]
fn no_workflow_runs_within_itself() {
    let mut world = world();
    let id = make(&mut world, vec![step("p")]);
    begin(&mut world, id, "");
    let run = tool(&mut world, "workflow_run");
    assert_eq!(code(&ask(&mut world, &run, "w")).as_deref(), Some("workflow_cycle"));
    // Nor through another agent that is asked for it.
    world.spawn("b");
    let send = SendToAgent {
        from: run.attempt,
        index: run.index,
        to: "b".into(),
        session: None,
        text: "please".into(),
        wait: true,
        found: None,
    };
    world.ask(send).unwrap();
    let through = tool(&mut world, "workflow_run");
    assert_eq!(code(&ask(&mut world, &through, "w")).as_deref(), Some("workflow_cycle"));
}

#[test]
fn runs_within_runs_have_a_bound() {
    let mut world = world();
    let ids: Vec<WorkflowId> = (0..5).map(|_| make(&mut world, vec![step("p")])).collect();
    begin(&mut world, ids[0], "");
    for id in &ids[1..4] {
        let run = tool(&mut world, "workflow_run");
        let asked = ask(&mut world, &run, &id.to_string());
        assert!(asked.take().is_none());
    }
    assert_eq!(newest(&mut world, ids[3]).above, ids[..3]);
    assert_eq!(newest(&mut world, ids[3]).depth, 4);
    let run = tool(&mut world, "workflow_run");
    let asked = ask(&mut world, &run, &ids[4].to_string());
    assert_eq!(code(&asked).as_deref(), Some("workflow_too_deep"));
}

#[test]
fn a_run_goes_with_the_turn_that_waits_for_it() {
    let mut world = world();
    let boss = world.spawn("boss");
    let id = make(&mut world, vec![step("p")]);
    for how in ["stop", "remove"] {
        let answer = said(&mut world, "boss");
        let run = tool(&mut world, "workflow_run");
        let asked = ask(&mut world, &run, "w");
        let call = world.next_call();
        if how == "stop" {
            world.ask(StopTurns { agent: boss, session: None }).unwrap();
            assert_eq!(answer.take().unwrap().unwrap().end, TurnEnd::Stopped);
        } else {
            world.ask(RemoveAgents(vec![boss])).unwrap();
        }
        let (state, why) = ended(&asked);
        assert_eq!((state, why.as_str()), (RunState::Cancelled, "cancelled: the turn that waited for it has ended"));
        assert!(world.effects.iter().any(|e| e.get() == Some(&Abort(call.attempt))), "{how}");
        world.answer(call.attempt, "late");
    }
    assert_eq!((count(&mut world, id), world.engine.stats().turns_open), (2, 0));
}

#[test]
fn a_cancelled_run_cancels_those_within_it() {
    let mut world = world();
    let (outer, inner) = (make(&mut world, vec![step("outer")]), make(&mut world, vec![step("inner")]));
    let asked = begin(&mut world, outer, "");
    let run = tool(&mut world, "workflow_run");
    let within = ask(&mut world, &run, &inner.to_string());
    let top = world.ask(ListRuns { workflow: outer, after: None, limit: 1 }).unwrap().items[0].id;
    world.ask(CancelRun(top)).unwrap();
    assert_eq!((ended(&asked).0, ended(&within).0), (RunState::Cancelled, RunState::Cancelled));
    assert_eq!(world.engine.stats().workflow_runs_open, 0);
}

#[test]
fn a_persistent_agent_that_waits_for_its_own_step_is_not_stuck() {
    let mut world = TestWorld::new();
    let text = "name = \"a\"\nsession_mode = \"persistent\"\n[capabilities]\ntools = [\"*\"]\n";
    let parsed = crate::manifest::parse(text).unwrap();
    let hash = crate::manifest::hash(&parsed.manifest);
    let spawn = crate::agent::SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text: text.into() };
    world.ask(spawn).unwrap();
    let id = make(&mut world, vec![step("p")]);
    said(&mut world, "a");
    let run = tool(&mut world, "workflow_run");
    let asked = ask(&mut world, &run, "w");
    assert_eq!(reply(&mut world, "done"), "p", "it does not queue behind the turn that waits for it");
    assert_eq!(completed(&asked), "done");
    assert_eq!(count(&mut world, id), 1);
}

#[test]
fn a_run_of_a_conversation_that_nobody_waits_for_after_a_restart_is_given_up() {
    let mut world = world();
    let id = make(&mut world, vec![step("p")]);
    let agent = world.ask(crate::agent::FindAgent("a".into())).unwrap().id;
    let said = vec![ChatMessage { role: Role::User, blocks: vec![Block::Text { text: "go".into() }] }];
    let venue = ConversationTarget::Hidden(SessionId(uuid::Uuid::from_u128(5)));
    let conversation = Conversation { agent, venue, messages: said, origin: Origin::OpenAi, request: None };
    world.begin(SendConversation(conversation));
    world.step();
    let run = tool(&mut world, "workflow_run");
    ask(&mut world, &run, "w");
    assert_eq!(world.calls.len(), 1);
    world.restart();
    let run = newest(&mut world, id);
    assert_eq!((run.state, states(&run)), (RunState::Cancelled, vec![StepState::Cancelled]));
    assert_eq!((world.engine.stats().turns_open, world.calls.len()), (0, 0));
    world.restart();
    assert_eq!(newest(&mut world, id).state, RunState::Cancelled);
}
