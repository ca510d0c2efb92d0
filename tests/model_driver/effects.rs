//! Aborts, tools, and what is only handed on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agentsvc::kernel::store::sweep::Rows;
use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::{AgentTaint, Taint};
use agentsvc_components::manifest::{Interned, Manifest, ManifestHash};
use agentsvc_components::session::message::{ToolCall, Usage, text_of};
use agentsvc_components::session::sweep::SweepLog;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_components::turn::trace::TrimTraces;
use agentsvc_components::{AgentId, LogId, Timestamp};
use agentsvc_systems::kernel::record::{agent_prefixes, log_prefixes, trace_prefix};
use uuid::Uuid;

use crate::harness::{Harness, SESSION, attempt, chunk, turn};
use crate::model_server::{Gate, ModelServer, Reply};

#[tokio::test]
async fn an_abort_keeps_what_was_written() {
    let server = ModelServer::start();
    let mut harness = Harness::new(&server.base_url());
    let gate = Gate::default();
    server.push(Reply::text("one two three").gated(&gate));
    harness.call(true);
    gate.pass(2);
    assert_eq!(harness.next_event().await, chunk("one "));
    harness.performer.perform(Abort(Attempt { number: 2, ..attempt() }));
    assert!(harness.outcomes.try_recv().is_err(), "another attempt's abort");
    harness.performer.perform(Abort(attempt()));
    let answer = harness.aborted().await;
    assert_eq!(text_of(&answer.blocks), "one ");
    assert_eq!(answer.usage, Usage::of(13, 1));
    server.abandoned(1).await;

    server.push(Reply::hang());
    harness.call(false);
    server.received(2).await;
    harness.performer.perform(Abort(attempt()));
    assert_eq!(harness.aborted().await.blocks, []);
    server.abandoned(2).await;
    assert_eq!(harness.performer.calls_out(), 0);
}

#[tokio::test]
async fn an_abort_ends_the_wait_for_a_retry() {
    let server = ModelServer::start();
    let mut harness = Harness::new(&server.base_url());
    server.push(Reply::error(500, "wait for me").header("retry-after", "10"));
    harness.call(false);
    server.received(1).await;
    harness.performer.perform(Abort(attempt()));
    harness.aborted().await;
    assert_eq!(server.requests().len(), 1);
}

fn tool_run(manifest: &Manifest, name: &str, input: &str) -> ToolRun {
    ToolRun {
        attempt: attempt(),
        agent: AgentId(Uuid::from_u128(1)),
        holder: Holder::Family(AgentId(Uuid::from_u128(1))),
        agent_name: "ada".into(),
        session: SESSION,
        log: LogId(7),
        ordinal: 5,
        manifest: Arc::new(Interned { hash: ManifestHash([0; 32]), manifest: manifest.clone() }),
        index: 4,
        call: ToolCall { id: "a".to_owned(), name: name.to_owned(), input: input.to_owned() },
        runs_before: 0,
        sent_at: Timestamp(0),
        taint: Taint::NONE,
        agent_taint: AgentTaint::default(),
        trace: None,
        user: None,
        consolidates: false,
    }
}

#[tokio::test]
async fn tools_run_and_explain() {
    let mut harness = Harness::new("");
    harness.watched.store(true, Ordering::Relaxed);
    harness.manifest.capabilities.tools = vec!["*".into()];
    for (name, input, ended, part) in [
        ("system_time", "{\"format\":\"date\"}", ToolStatus::Ok, "-"),
        ("system_time", "{broken", ToolStatus::Error, "not valid JSON"),
        ("rm", "{}", ToolStatus::Refused, "There is no tool named"),
    ] {
        harness.performer.perform(tool_run(&harness.manifest, name, input));
        let ToolOutcome(of, ToolEnd { index, call, content, status, .. }) =
            *harness.outcome().await.take().expect("a tool's outcome");
        assert_eq!((of, index, call.input.as_str(), status), (attempt(), 4, input, ended), "{content}");
        assert!(content.contains(part), "{content}");
        let events = harness.events();
        assert_eq!(events[0], StreamEvent::ToolUse { tool: name.to_owned() });
        let StreamEvent::ToolResult { tool, input: shown } = &events[1] else { panic!("{events:?}") };
        assert_eq!(tool, name);
        assert!(serde_json::from_str::<serde_json::Value>(shown).is_ok());
    }
}

#[tokio::test]
async fn an_aborted_tool_still_comes_back() {
    let mut harness = Harness::new("");
    harness.manifest.capabilities.tools = vec!["*".into()];
    // On this single-threaded runtime the task cannot have begun before the abort.
    harness.performer.perform(tool_run(&harness.manifest, "system_time", "{}"));
    harness.performer.perform(Abort(attempt()));
    let ToolOutcome(_, end) = *harness.outcome().await.take().expect("a tool's outcome");
    assert!(end.status == ToolStatus::Error && end.content.contains("stopped"), "{}", end.content);
    assert_eq!(harness.events(), [], "nobody watches");
}

#[tokio::test]
async fn the_rest_is_handed_on() {
    let mut harness = Harness::new("");
    let item = StreamItem { session: SESSION, turn: turn(), event: chunk("x") };
    harness.performer.perform(item);
    assert_eq!(harness.events(), [chunk("x")]);
    harness.performer.perform(SweepLog(LogId(9)));
    let agent = AgentId(Uuid::from_u128(9));
    harness.performer.perform(SweepAgent(agent));
    harness.performer.perform(TrimTraces(agent));
    let swept: Vec<Rows> = harness.swept.lock().unwrap().iter().map(|sweeping| sweeping.rows.clone()).collect();
    let log = log_prefixes(LogId(9)).map(|prefix| prefix.to_vec()).collect();
    let traces = Rows::AllButLast(trace_prefix(agent), limit::TRACES_MAX);
    assert_eq!(swept, [Rows::Under(log), Rows::Under(agent_prefixes(agent).into()), traces]);
}
