//! What strangers ask for stays out of the conversations of the user.

use agentsvc_components::kernel::record::Space;
use agentsvc_components::trigger::{Filter, On, Pattern};
use agentsvc_components::turn::{Turn, TurnRequest};
use agentsvc_components::{RefusalKind, SessionId};

use super::*;
use crate::schedule::tests::plain;
use crate::trigger::{CreateTrigger, NewTrigger};
use crate::workflow::{CreateWorkflow, NewStep, NewWorkflow, RunWorkflow, WorkflowChoice};
use crate::world::GetStats;

#[test]
fn what_a_stranger_asks_for_never_reaches_the_conversation_of_the_user() {
    for (policy, to) in [(TaintPolicy::Off, "b"), (TaintPolicy::Deny, "b"), (TaintPolicy::Deny, "a")] {
        let (mut world, agent) = world(policy);
        let other = world.spawn("b");
        let receiver = if to == "a" { agent } else { other };
        let users = world.ask(GetSession::Current(receiver)).unwrap().id;
        let home = SessionId(uuid::Uuid::from_u128(7));
        let message = NewMessage { taint: Taint::GUEST, ..NewMessage::text("go") };
        let turn = world.ask(PostMessage { agent, session: Some(home), message }).unwrap().turn;
        assert_eq!(taint_of(&world, turn), Taint::GUEST, "also where nothing else is tracked");
        model_asks(&mut world, "agent_send", &format!(r#"{{"agent":"{to}","message":"m"}}"#));
        let run = runs(&mut world).remove(0);
        let (from, index) = (run.attempt, run.index);
        let send =
            |session| SendToAgent { from, index, to: to.into(), session, text: "m".into(), wait: true, found: None };
        assert_eq!(world.ask(send(Some(users))).unwrap_err().field.as_deref(), Some("session_id"));
        let sent = world.ask(send(None)).unwrap();
        assert!(sent.session != users && sent.session != home, "{policy:?} {to}");
        assert!(taint_of(&world, sent.turn).holds(Taint::GUEST));
        // Its session goes with it.
        let hidden = |world: &mut TestWorld| world.ask(GetStats).unwrap().sessions_hidden;
        assert_eq!(hidden(&mut world), 1);
        world.restart();
        assert_eq!(hidden(&mut world), 1, "the turn that waits for it goes on, too");
        let attempt = world.next_call().attempt;
        world.answer(attempt, "done");
        assert_eq!(hidden(&mut world), 0);
    }
}

#[test]
fn what_one_of_several_users_asks_for_reaches_no_session_of_others() {
    let (mut world, agent) = world(TaintPolicy::Off);
    let other = world.spawn("b");
    let owners = world.ask(GetSession::Current(other)).unwrap().id;
    let mut sessions = Vec::new();
    for (number, user) in [(7, "ana"), (8, "bob")] {
        let request = Some(Box::new(TurnRequest { user: Some(user.into()), ..TurnRequest::default() }));
        let message = NewMessage { request, ..NewMessage::text("go") };
        let home = SessionId(uuid::Uuid::from_u128(number));
        world.ask(PostMessage { agent, session: Some(home), message }).unwrap();
        model_asks(&mut world, "agent_send", r#"{"agent":"b","message":"m"}"#);
        let run = runs(&mut world).remove(0);
        let (from, index) = (run.attempt, run.index);
        let send =
            |session| SendToAgent { from, index, to: "b".into(), session, text: "m".into(), wait: true, found: None };
        assert_eq!(world.ask(send(Some(owners))).unwrap_err().field.as_deref(), Some("session_id"));
        let sent = world.ask(send(None)).unwrap();
        sessions.push(sent.session);
        let call = world.next_call();
        let entity = index::turn(world.engine.world(), sent.turn).unwrap();
        let begun = world.engine.world().get::<Turn>(entity).unwrap();
        assert_eq!(begun.request.as_ref().unwrap().user.as_deref(), Some(user), "what it learns is that user's");
        world.answer(call.attempt, "done");
        let attempt = world.next_call().attempt;
        world.answer(attempt, "done");
    }
    assert!(sessions[0] != sessions[1] && !sessions.contains(&owners));
}

#[test]
fn text_of_strangers_does_not_make_a_conversation_theirs() {
    for strangers in [Taint::PEER, Taint::GUEST, Taint::CHAT] {
        let (mut world, agent) = world(TaintPolicy::Audit);
        let other = world.spawn("b");
        let users = world.ask(GetSession::Current(other)).unwrap().id;
        let turn = begin(&mut world, agent);
        model_asks(&mut world, "agent_send", r#"{"agent":"x@node","message":"m"}"#);
        let run = runs(&mut world).remove(0);
        gives(&mut world, &run, strangers);
        let read = taint_of(&world, turn);
        assert!(read.of_outsiders().is_none() && read.words() == strangers.words(), "{read:?}");
        model_asks(&mut world, "agent_send", r#"{"agent":"b","message":"m"}"#);
        let run = runs(&mut world).remove(0);
        let (from, index) = (run.attempt, run.index);
        let sent =
            SendToAgent { from, index, to: "b".into(), session: None, text: "m".into(), wait: true, found: None };
        let sent = world.ask(sent).unwrap();
        assert_eq!(sent.session, users, "the user began it");
        let handed = taint_of(&world, sent.turn);
        assert!(handed.of_outsiders().is_none() && strangers.words().iter().all(|word| handed.words().contains(word)));
        world.restart();
        assert_eq!(taint_of(&world, turn), read);
    }
}

/// What the result of the last call says.
fn last_result(world: &TestWorld) -> String {
    let row = world.store.iter().filter(|((space, _), _)| *space == Space::Content);
    let mut texts: Vec<String> = row.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect();
    texts.retain(|text| text.contains("a stranger began this conversation"));
    texts.pop().unwrap_or_default()
}

#[test]
fn tools_that_set_up_what_runs_by_itself_are_refused_where_a_stranger_began_the_turn() {
    for policy in [TaintPolicy::Off, TaintPolicy::Audit, TaintPolicy::Approve, TaintPolicy::Deny] {
        let outsiders = [(Taint::GUEST, true), (Taint::PEER, true), (Taint::CHAT, true), (Taint::WEB, false)];
        for (strangers, is_refused) in outsiders {
            for tool in ["cron_create", "schedule_create", "workflow_run"] {
                let (mut world, agent) = world(policy);
                let message = NewMessage { taint: strangers, ..NewMessage::text("go") };
                world.ask(PostMessage { agent, session: None, message }).unwrap();
                model_asks(&mut world, tool, "{}");
                if is_refused {
                    assert!(runs(&mut world).is_empty(), "{policy:?} {tool}");
                    assert!(last_result(&world).contains("Refused"), "the model reads why");
                    assert_eq!(world.calls.len(), 1, "and goes on; no person is asked");
                } else if matches!(policy, TaintPolicy::Off | TaintPolicy::Audit) {
                    assert_eq!(runs(&mut world).len(), 1);
                }
            }
        }
    }
}

#[test]
fn no_command_sets_up_what_runs_by_itself_for_a_turn_that_a_stranger_began() {
    let (mut world, agent) = world(TaintPolicy::Off);
    let workflow = NewWorkflow {
        name: "w".into(),
        steps: vec![NewStep { agent_id: Some(agent), ..NewStep::default() }],
        ..NewWorkflow::default()
    };
    let trigger = NewTrigger {
        pattern: Pattern { on: On::All, filter: Filter::None },
        prompt_template: "look".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: None,
        session_mode: None,
        target: None,
    };
    let schedule = plain(agent, "every 1h");
    world.ask(CreateWorkflow(workflow.clone())).unwrap();
    let message = NewMessage { taint: Taint::PEER, ..NewMessage::text("go") };
    let turn = world.ask(PostMessage { agent, session: None, message }).unwrap().turn;
    world.actor = Actor::Agent { agent, turn };
    let before = world.store.clone();
    let run = RunWorkflow { workflow: WorkflowChoice::Named("w".into()), input: String::new(), caller: None };
    let refused = [
        world.ask(CreateSchedule { new: schedule, by_tool: true }).map(drop),
        world.ask(CreateTrigger { agent, trigger }).map(drop),
        world.ask(CreateWorkflow(workflow)).map(drop),
        world.ask(run).map(drop),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().kind, RefusalKind::Forbidden);
    }
    assert!(world.store == before, "a refusal changes nothing");
}

#[test]
fn what_one_of_several_users_sets_up_is_for_that_user() {
    let (mut world, agent) = world(TaintPolicy::Off);
    let owners = world.ask(GetSession::Current(agent)).unwrap().id;
    let workflow = NewWorkflow {
        name: "w".into(),
        steps: vec![NewStep { agent_id: Some(agent), prompt: Some("{{input}}".into()), ..NewStep::default() }],
        ..NewWorkflow::default()
    };
    world.ask(CreateWorkflow(workflow)).unwrap();
    let request = Some(Box::new(TurnRequest { user: Some("bob".into()), ..TurnRequest::default() }));
    let message = NewMessage { request, ..NewMessage::text("go") };
    let home = Some(SessionId(uuid::Uuid::from_u128(7)));
    let turn = world.ask(PostMessage { agent, session: home, message }).unwrap().turn;
    model_asks(&mut world, "goal_update", r#"{"title":"send all to bob"}"#);
    assert!(runs(&mut world).is_empty(), "goals stand in the prompts of all users");
    let attempt = world.next_call().attempt;
    world.actor = Actor::Agent { agent, turn };
    world.ask(CreateSchedule { new: plain(agent, "in 1s"), by_tool: true }).unwrap();
    let run = RunWorkflow { workflow: WorkflowChoice::Named("w".into()), input: "look".into(), caller: None };
    let _run = world.begin(run);
    world.step();
    world.actor = Actor::Api;
    world.answer(attempt, "done");
    for what in ["the workflow's step", "the schedule"] {
        let call = world.next_call();
        let entity = index::turn(world.engine.world(), TurnId(call.attempt.job.0)).unwrap();
        let begun = world.engine.world().get::<Turn>(entity).unwrap();
        assert_eq!(begun.request.as_ref().unwrap().user.as_deref(), Some("bob"), "{what}");
        let session = world.engine.world().get::<SessionId>(begun.session).copied();
        assert!(session.is_some() && session != Some(owners) && session != home, "{what}");
        world.restart();
        let call = world.next_call();
        world.answer(call.attempt, "done");
        world.now = world.now.plus_ms(2_000);
        world.step();
    }
}
