//! A command can run any file of its workspace: it is judged as if its turn had read what stands there.

use agentsvc_components::{RefusalKind, SessionId};

use super::*;
use crate::taint::TrustFiles;
use crate::turn::StopTurns;

/// An agent of which a tainted turn has written a file and ended, and a clean turn in a session of its own.
fn staged(policy: TaintPolicy) -> (TestWorld, AgentId, TurnId) {
    let (mut world, agent) = world(policy);
    write_tainted(&mut world, agent);
    world.ask(ResetSession { agent }).unwrap();
    let clean = begin(&mut world, agent);
    assert!(taint_of(&world, clean).is_none());
    (world, agent, clean)
}

/// A turn that has read a page writes a script, and ends.
fn write_tainted(world: &mut TestWorld, agent: AgentId) {
    tainted(world, agent);
    model_asks(world, "file_write", r#"{"path":"run.sh","content":"x"}"#);
    let run = runs(world).remove(0);
    gives(world, &run, Taint::NONE);
    let attempt = world.next_call().attempt;
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(vec![]))));
}

fn pending(world: &mut TestWorld) -> Vec<String> {
    let filter = ApprovalFilter { decided: false, agent: None };
    let page = world.ask(ListApprovals { filter, after: None, limit: 9 }).unwrap();
    page.items.into_iter().map(|item| item.approval.description.to_string()).collect()
}

#[test]
fn a_command_of_a_clean_turn_is_judged_by_the_files_that_it_can_run() {
    for (policy, ran, waits) in [
        (TaintPolicy::Off, true, false),
        (TaintPolicy::Audit, true, false),
        (TaintPolicy::Approve, false, true),
        (TaintPolicy::Deny, false, false),
    ] {
        let (mut world, agent, clean) = staged(policy);
        model_asks(&mut world, "shell_exec", r#"{"command":"sh run.sh"}"#);
        let waiting = pending(&mut world);
        assert_eq!((runs(&mut world).len() == 1, waiting.len() == 1), (ran, waits), "{policy:?}");
        assert_eq!(audited(&world, taint::audit_kinds::TOOL_TAINTED).len(), usize::from(policy != TaintPolicy::Off));
        if waits {
            assert!(waiting[0].contains("web (files of the workspace, which a command can run"), "{waiting:?}");
        }
        if policy == TaintPolicy::Deny {
            assert!(taint_of(&world, clean).is_none(), "it has run nothing");
            let told = results(&mut world, agent);
            assert!(told.last().unwrap().contains("files of the workspace"), "{told:?}");
            // What runs no files goes on.
            model_asks(&mut world, "memory_store", "{}");
            assert_eq!(runs(&mut world).len(), 1);
        } else if policy != TaintPolicy::Off {
            assert_eq!(taint_of(&world, clean), Taint::WEB, "{policy:?}: before it runs");
        }
    }
}

#[test]
fn a_command_that_waits_is_refused_when_files_are_written_meanwhile() {
    let settings = Settings {
        security: SecuritySettings { taint: TaintPolicy::Approve, ..SecuritySettings::default() },
        require_approval: vec!["shell_exec".into()],
        ..Settings::default()
    };
    let mut world = TestWorld::with(settings);
    let agent = world.spawn("a");
    begin(&mut world, agent);
    model_asks(&mut world, "shell_exec", r#"{"command":"sh run.sh"}"#);
    assert_eq!((runs(&mut world).len(), pending(&mut world).len()), (0, 1), "a person approves each command");
    let session = Some(SessionId(uuid::Uuid::from_u128(9)));
    world.ask(PostMessage { agent, session, message: NewMessage::text("go") }).unwrap();
    model_asks(&mut world, "web_fetch", r#"{"url":"https://x.example/"}"#);
    let run = runs(&mut world).remove(0);
    gives(&mut world, &run, Taint::WEB);
    model_asks(&mut world, "file_write", "{}");
    assert_eq!(runs(&mut world).len(), 1);
    let page =
        world.ask(ListApprovals { filter: ApprovalFilter { decided: false, agent: None }, after: None, limit: 9 });
    let ids = page.unwrap().items.iter().map(|item| item.id).collect();
    world.ask(DecideApprovals { ids, decision: Decision::Approve, reason: None, answer: None }).unwrap();
    assert!(runs(&mut world).is_empty(), "the person knew another workspace");
    let told = results(&mut world, agent);
    assert!(told.last().unwrap().contains("after this call was allowed"), "{told:?}");
}

#[test]
fn a_user_declares_files_trusted_while_no_tainted_turn_writes() {
    let (mut world, agent, _) = staged(TaintPolicy::Deny);
    assert_eq!(world.ask(TrustFiles { agent }).unwrap(), ["web"]);
    model_asks(&mut world, "shell_exec", r#"{"command":"sh run.sh"}"#);
    let run = runs(&mut world).remove(0);
    assert!(run.taint.is_none() && run.agent_taint.files.is_none());
    world.restart();
    assert!(world.ask(TrustFiles { agent }).unwrap().is_empty(), "it is stored");
    assert_eq!(audited(&world, taint::audit_kinds::FILES_TRUSTED).len(), 2);

    let (mut world, other) = self::world(TaintPolicy::Deny);
    tainted(&mut world, other);
    model_asks(&mut world, "file_write", "{}");
    let refusal = world.ask(TrustFiles { agent: other }).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Conflict);
    let run = runs(&mut world).remove(0);
    gives(&mut world, &run, Taint::NONE);
    assert_eq!(world.ask(TrustFiles { agent: other }).unwrap(), ["web"]);
}

#[test]
fn files_are_not_trusted_before_a_stopped_command_of_a_tainted_turn_is_gone() {
    let (mut world, agent) = self::world(TaintPolicy::Audit);
    tainted(&mut world, agent);
    model_asks(&mut world, "shell_exec", "{}");
    let run = runs(&mut world).remove(0);
    world.ask(StopTurns { agent, session: None }).unwrap();
    let refusal = world.ask(TrustFiles { agent }).unwrap_err();
    assert!(refusal.kind == RefusalKind::Conflict && refusal.message.contains("try again"), "{refusal:?}");
    gives(&mut world, &run, Taint::WEB);
    assert_eq!(world.ask(TrustFiles { agent }).unwrap(), ["web"]);
}

#[test]
fn what_a_command_with_the_network_stored_before_it_was_stopped_or_lost_is_untrusted() {
    for is_lost in [false, true] {
        let (mut world, _) = self::world(TaintPolicy::Approve);
        let mut command = spawn_command("loads");
        command.manifest.capabilities.network = vec!["*".into()];
        command.hash = crate::manifest::hash(&command.manifest);
        let agent = world.ask(command).unwrap().agent;
        begin(&mut world, agent);
        model_asks(&mut world, "shell_exec", r#"{"command":"curl x >run.sh"}"#);
        let mut run = runs(&mut world).remove(0);
        if is_lost {
            world.restart();
            run = runs(&mut world).remove(0);
            let end = ToolEnd {
                index: run.index,
                call: run.call.clone(),
                content: "unknown".into(),
                whole: None,
                notice: None,
                brought: None,
                status: ToolStatus::Unknown,
            };
            world.outcome(ToolOutcome(run.attempt, end));
        } else {
            world.ask(StopTurns { agent, session: None }).unwrap();
            assert!(world.ask(TrustFiles { agent }).is_err(), "it may still run");
            gives(&mut world, &run, Taint::COMMAND);
        }
        assert_eq!(world.ask(TrustFiles { agent }).unwrap(), ["command"], "{is_lost}");
    }
}

#[test]
fn a_patch_that_deletes_or_renames_is_as_sensitive_as_a_deletion() {
    let (mut world, agent) = world(TaintPolicy::Deny);
    tainted(&mut world, agent);
    for (patch, ran) in [
        ("*** Begin Patch\n*** Delete File: keep.txt\n*** End Patch", false),
        ("*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n*** End Patch", false),
        ("*** Begin Patch\r\n*** Delete File: keep.txt\r\n*** End Patch\r\n", false),
        ("--- a/keep.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-precious\n", false),
        ("--- a/keep.txt\t2026-01-01\n+++ b/gone.txt\t2026-01-01\n@@ -1 +1 @@\n-a\n+b\n", false),
        ("--- a/keep.txt\n+++ a/keep.txt\n@@ -1 +1 @@\n-a\n+b\n", false),
        ("*** Begin Patch\n*** Add File: b.txt\n+*** Delete File: keep.txt\n*** End Patch", true),
        ("--- a/keep.txt\t2026-01-01\n+++ b/keep.txt\n@@ -1 +1 @@\n-a\n+b\n", true),
        ("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+a\n", true),
    ] {
        model_asks(&mut world, "apply_patch", &serde_json::json!({ "patch": patch }).to_string());
        let run = runs(&mut world).pop();
        assert_eq!(run.is_some(), ran, "{patch}");
        if let Some(run) = run {
            gives(&mut world, &run, Taint::WEB);
        }
    }
}
