//! What one turn writes while a call of another one reads.

use super::*;
use crate::session::CreateSession;
use crate::turn::ReadWithinCall;

/// A clean turn's call is out while another turn of its agent, in another session, reads a page and writes a file.
fn read_meanwhile(tool: &str) -> (TestWorld, TurnId) {
    let (mut world, agent) = world(TaintPolicy::Deny);
    let clean = begin(&mut world, agent);
    model_asks(&mut world, tool, "{}");
    let reads = runs(&mut world).remove(0);
    let other = world.ask(CreateSession { agent, label: None }).unwrap();
    let message = NewMessage::text("go");
    world.ask(PostMessage { agent, session: Some(other), message }).unwrap();
    model_asks(&mut world, "web_fetch", r#"{"url":"https://x.example/"}"#);
    let fetch = runs(&mut world).remove(0);
    gives(&mut world, &fetch, Taint::WEB);
    model_asks(&mut world, "file_write", r#"{"path":"f","content":"x"}"#);
    assert_eq!(runs(&mut world).len(), 1, "{tool}: it is written");
    assert!(taint_of(&world, clean).is_none(), "{tool}");
    let end = ToolEnd {
        index: reads.index,
        call: reads.call.clone(),
        content: "what it read".into(),
        whole: None,
        notice: None,
        brought: None,
        status: ToolStatus::Ok,
    };
    world.outcome(ToolOutcome(reads.attempt, end));
    (world, clean)
}

#[test]
fn a_call_that_reads_brings_what_was_written_while_it_ran() {
    for tool in ["shell_exec", "file_read", "file_list", "session_search"] {
        let (mut world, clean) = read_meanwhile(tool);
        assert_eq!(taint_of(&world, clean), Taint::WEB, "{tool}");
        model_asks(&mut world, "shell_exec", r#"{"command":"ls"}"#);
        assert!(runs(&mut world).is_empty(), "{tool}: the next call is refused");
    }
    let (mut world, clean) = read_meanwhile("file_write");
    assert!(taint_of(&world, clean).is_none(), "it reads nothing");
    model_asks(&mut world, "memory_store", "{}");
    assert_eq!(runs(&mut world).len(), 1);
}

#[test]
fn what_a_program_of_a_skill_writes_while_it_runs_is_untrusted() {
    let (mut world, agent) = world(TaintPolicy::Deny);
    begin(&mut world, agent);
    model_asks(&mut world, "report_make", "{}");
    let program = runs(&mut world).remove(0);
    // As the daemon says before it starts one.
    let (from, index, tool) = (program.attempt, program.index, "report_make".to_owned());
    world.ask(ReadWithinCall { from, index, taint: Taint::TOOL, tool }).unwrap().unwrap();
    let other = world.ask(CreateSession { agent, label: None }).unwrap();
    let message = NewMessage::text("go");
    let reader = world.ask(PostMessage { agent, session: Some(other), message }).unwrap().turn;
    model_asks(&mut world, "file_read", r#"{"path":"f"}"#);
    let read = runs(&mut world).remove(0);
    assert!(read.agent_taint.files.holds(Taint::TOOL));
    gives(&mut world, &read, read.agent_taint.files);
    assert!(taint_of(&world, reader).holds(Taint::TOOL));
    model_asks(&mut world, "shell_exec", r#"{"command":"sh f"}"#);
    assert!(runs(&mut world).is_empty(), "it is refused");
}
