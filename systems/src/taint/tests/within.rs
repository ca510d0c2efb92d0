//! A tool call that goes on reads, stores and sends.

use super::*;
use crate::turn::{ReadWithinCall, SendWithinCall};

#[test]
fn what_a_call_reads_while_it_goes_on_counts_for_what_it_does_next() {
    let (mut world, agent) = world(TaintPolicy::Audit);
    world.spawn("b");
    let parent = begin(&mut world, agent);
    model_asks(&mut world, "some_skill", "{}");
    let run = runs(&mut world).remove(0);
    let (from, index) = (run.attempt, run.index);
    let read = ReadWithinCall { from, index, taint: Taint::WEB, tool: "web_fetch".into() };
    world.ask(read.clone()).unwrap().unwrap();
    assert_eq!(taint_of(&world, parent), Taint::WEB);
    let send = SendToAgent { from, index, to: "b".into(), session: None, text: "m".into(), wait: true, found: None };
    let sent = world.ask(SendWithinCall(send.clone())).unwrap();
    assert_eq!(taint_of(&world, sent.turn), Taint::WEB.with(Taint::AGENT));
    // The call is still its own: it sends again, and is settled by what carries it out.
    world.ask(SendWithinCall(send.clone())).unwrap();
    world.restart();
    gives(&mut world, &run, Taint::NONE);
    assert!(world.ask(SendWithinCall(send)).is_err() && world.ask(read).is_err(), "the call has ended");
    let attempt = world.next_call().attempt;
    world.answer(attempt, "done");
}

#[test]
fn files_that_a_tainted_turn_left_count_when_they_are_read() {
    let (mut world, agent) = world(TaintPolicy::Audit);
    tainted(&mut world, agent);
    model_asks(&mut world, "file_write", r#"{"path":"f","content":"x"}"#);
    let run = runs(&mut world).remove(0);
    gives(&mut world, &run, Taint::NONE);
    let attempt = world.next_call().attempt;
    world.answer(attempt, "done");
    world.ask(ResetSession { agent }).unwrap();
    let turn = begin(&mut world, agent);
    model_asks(&mut world, "some_skill", "{}");
    let run = runs(&mut world).remove(0);
    let read =
        |tool: &str| ReadWithinCall { from: run.attempt, index: run.index, taint: Taint::NONE, tool: tool.into() };
    world.ask(read("memory_recall")).unwrap().unwrap();
    assert_eq!(taint_of(&world, turn), Taint::NONE);
    let read = world.ask(read("file_read")).unwrap();
    assert_eq!((read, taint_of(&world, turn)), (Ok(Taint::WEB), Taint::WEB), "the call hears what its turn has read");
}

#[test]
fn what_a_call_has_read_decides_what_it_may_do_next() {
    for (policy, deny, refused) in
        [(TaintPolicy::Audit, "", false), (TaintPolicy::Audit, "shell_exec", true), (TaintPolicy::Approve, "", true)]
    {
        let taint_deny = if deny.is_empty() { Vec::new() } else { vec![deny.into()] };
        let (mut world, agent) = with(SecuritySettings { taint: policy, taint_deny, ..SecuritySettings::default() });
        begin(&mut world, agent);
        model_asks(&mut world, "some_skill", "{}");
        let run = runs(&mut world).remove(0);
        let (from, index) = (run.attempt, run.index);
        let of = |taint: Taint, tool: &str| ReadWithinCall { from, index, taint, tool: tool.into() };
        assert_eq!(world.ask(of(Taint::NONE, "shell_exec")).unwrap(), Ok(Taint::NONE), "it has read nothing yet");
        assert_eq!(world.ask(of(Taint::WEB, "web_fetch")).unwrap(), Ok(Taint::WEB));
        assert_eq!(world.ask(of(Taint::NONE, "shell_exec")).unwrap().is_err(), refused);
        let fetch = world.ask(of(Taint::NONE, "web_fetch https://new.example/")).unwrap();
        assert_eq!(fetch.is_err(), policy == TaintPolicy::Approve);
        assert!(world.ask(of(Taint::NONE, "file_write")).unwrap().is_ok());
    }
}
