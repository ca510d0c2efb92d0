//! Every kind goes to bytes and back, and bytes of the first version can still be read.

mod versions;
mod waves;

use agentsvc_components::agent::{AgentMode, AgentState, ImportedFrom};
use agentsvc_components::event::EventKind;
use agentsvc_components::goal::{Goal, GoalStatus};
use agentsvc_components::kernel::taint::{AgentTaint, Taint};
use agentsvc_components::manifest::{Manifest, ManifestHash, SessionMode};
use agentsvc_components::prompt::{PromptExperimentId, PromptVariantId, TurnVariant};
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, Past, RunResult, RunStatus, ScheduleKind, Tally};
use agentsvc_components::session::Ending;
use agentsvc_components::session::message::{Block, Role, ToolCall, Usage};
use agentsvc_components::task::{Task, TaskState};
use agentsvc_components::trigger::{Fire, FireLog, FireOutcome};
use agentsvc_components::turn::trace::{StepKind, StepStatus, TraceStep};
use agentsvc_components::turn::{
    GuardEntry, Journal, Origin, ParentLink, PendingState, PendingTool, TurnEnd, TurnRequest, TurnState,
};
use agentsvc_components::workflow::{
    Caller, ErrorMode, RunState, Step, StepAgent, StepMode, StepRun, StepState, Workflow,
};
use agentsvc_components::{
    CompactionId, GoalId, RunId, ScheduleId, SessionId, TaskId, Timestamp, TriggerId, TurnId, WorkflowId,
};
use std::sync::Arc;
use uuid::Uuid;

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::compaction::record::{CompactionRecord, SummaryRecord};
use agentsvc_components::memory::record::{MemoryRecord, MemoryUseRecord};
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::trigger::record::{TriggerRecord, TriggerStateRecord};
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::workflow::record::{RunPart, RunPlanRecord, RunRecord, RunTextRecord};

use super::*;
use crate::agent::rows::{self as agent_rows, SweptAgent, SweptLog};
use crate::kernel::restore::Records;
use crate::trigger::rows as trigger_rows;
use crate::workflow::rows as run_rows;

pub(crate) fn agent() -> AgentRecord {
    AgentRecord {
        id: AgentId(Uuid::from_u128(1)),
        name: "scout".into(),
        manifest: ManifestHash([9; 32]),
        current: SessionId(Uuid::from_u128(2)),
        created_at: Timestamp(1_000),
        updated_at: Timestamp(2_000),
        input_tokens: 3,
        output_tokens: 4,
        state: AgentState::Stopped,
        mode: AgentMode::Stable,
        parent: Some(AgentId(Uuid::from_u128(6))),
        taint: AgentTaint { own: Taint::AGENT, files: Taint::WEB, seen: Taint::EVENT },
        imported_from: Some(Box::new(ImportedFrom { place: [1; 32], text: [200; 32] })),
        owner: Some(agentsvc_components::kernel::id::UserId(Uuid::from_u128(8))),
    }
}

fn session() -> SessionRecord {
    SessionRecord {
        id: SessionId(Uuid::from_u128(2)),
        agent: AgentId(Uuid::from_u128(1)),
        log: LogId(77),
        created_at: Timestamp(1),
        updated_at: Timestamp(2),
        label: Some("support".into()),
        message_count: 5,
        next_ordinal: 3,
        interrupted: true,
        ephemeral: true,
        compacted: 2,
        stored: 7,
        taint: Taint::WEB,
        addresses: vec![3, u64::MAX],
        ending: Some(Ending {
            upto: TurnId(Uuid::from_u128(7)),
            log: LogId(8),
            why: "the session was reset".into(),
            earlier: vec![(TurnId(Uuid::from_u128(6)), LogId(6))],
        }),
        is_strangers: true,
    }
}

fn journal() -> Journal {
    let step = TraceStep {
        kind: StepKind::Tool,
        name: "system_time".into(),
        started_at: Timestamp(3),
        duration_ms: 4,
        usage: None,
        status: StepStatus::Unknown,
        error: Some("the clock is broken".into()),
    };
    let entry = GuardEntry { call: 1, calls: 2, result: 3, results: 4 };
    Journal {
        steps: vec![step],
        guard: vec![entry],
        notices: vec!["note".into()],
        notice_rows: vec![3],
        said: "so far".into(),
        states_facts: true,
        recalled: Some(Arc::default()),
        variant: Some(TurnVariant {
            experiment: PromptExperimentId(Uuid::from_u128(5)),
            variant: PromptVariantId(Uuid::from_u128(6)),
        }),
        tainted_by: vec!["web_fetch".into()],
    }
}

pub(crate) fn turn() -> TurnRecord {
    let call = ToolCall { id: "c1".into(), name: "system_time".into(), input: "{}".into() };
    TurnRecord {
        id: TurnId(Uuid::from_u128(3)),
        agent: AgentId(Uuid::from_u128(1)),
        session: SessionId(Uuid::from_u128(2)),
        created_at: Timestamp(9),
        usage: Usage::of(1, 2),
        ordinal: 2,
        next_index: 3,
        attempt: 4,
        iteration: 1,
        tool_calls: 1,
        pending: vec![PendingTool { index: 2, call, state: PendingState::Out, sent_at: Timestamp(6), runs: 1 }],
        state: TurnState::WaitingForTools,
        origin: Origin::Agent { parent: TurnId(Uuid::from_u128(8)) },
        request: Some(Arc::new(TurnRequest { temperature: Some(0.5), ..Default::default() })),
        link: Some(Box::new(ParentLink {
            turn: TurnId(Uuid::from_u128(8)),
            agent: AgentId(Uuid::from_u128(7)),
            session: SessionId(Uuid::from_u128(9)),
            index: Some(4),
            began_in: None,
        })),
        depth: 3,
        taint: Taint::WEB.with(Taint::INJECTION),
        cancelled: true,
        journal: Some(Box::new(journal())),
        burst: None,
    }
}

fn memory_use() -> MemoryUseRecord {
    MemoryUseRecord { agent: agent().id, entries: 3, bytes: 99 }
}

pub(crate) fn goal() -> Goal {
    Goal {
        title: "ship".into(),
        description: "the release".into(),
        note: "half way".into(),
        agent: Some(agent().id),
        parent: Some(GoalId(Uuid::from_u128(10))),
        status: GoalStatus::InProgress,
        due_at: Some(Timestamp(9)),
        created_at: Timestamp(1),
        updated_at: Timestamp(2),
        completed_at: Some(Timestamp(3)),
        holder: None,
    }
}

fn task() -> Task {
    Task {
        title: "count".into(),
        description: "the sheep".into(),
        assignee: Some("scout".into()),
        assigned: Some(agent().id),
        posted_by: Some(agent().id),
        claimed_by: Some(agent().id),
        claimed_at: Some(Timestamp(4)),
        attempts: 2,
        result: Some("seven".into()),
        state: TaskState::Completed,
        created_at: Timestamp(3),
        updated_at: Timestamp(5),
        ended_at: Some(Timestamp(5)),
        taint: Taint::AGENT,
        user: None,
        holder: None,
    }
}

fn workflow() -> Workflow {
    let step = Step {
        name: "check".into(),
        agent: Some(StepAgent::Name("scout".into())),
        prompt: "{{input}}".into(),
        mode: StepMode::Conditional,
        timeout_secs: 9,
        error_mode: ErrorMode::Retry,
        max_retries: 2,
        output_var: Some("checked".into()),
        condition: Some("output contains 'x'".into()),
        max_iterations: 5,
        until: Some("done".into()),
    };
    Workflow {
        name: "review".into(),
        description: "what for".into(),
        steps: vec![step, Step { agent: Some(StepAgent::Id(agent().id)), ..Step::default() }].into(),
        created_at: Timestamp(1),
        updated_at: Timestamp(2),
        holder: None,
    }
}

fn run() -> RunRecord {
    let step = StepRun {
        state: StepState::Retrying,
        turn: Some(turn().id),
        attempts: 3,
        failures: 2,
        iterations: 1,
        started_at: Some(Timestamp(4)),
        ended_at: Some(Timestamp(5)),
        due: Some(Timestamp(6)),
        error: Some("no answer".into()),
    };
    RunRecord {
        id: RunId(Uuid::from_u128(21)),
        workflow: WorkflowId(Uuid::from_u128(20)),
        name: "review".into(),
        caller: Some(Caller { turn: turn().id, index: 2 }),
        above: vec![WorkflowId(Uuid::from_u128(22))],
        depth: 2,
        state: RunState::Failed,
        at: 1,
        started_at: Timestamp(3),
        ended_at: Some(Timestamp(7)),
        error: Some("it failed".into()),
        progress: vec![step, StepRun::default()],
        judged: 12,
        taint: Taint::UPLOAD,
        user: None,
        holder: None,
    }
}

fn run_plan() -> RunPlanRecord {
    RunPlanRecord { steps: workflow().steps, input: "tea".into() }
}

#[test]
fn parts_of_a_run_have_keys_of_their_own() {
    let id = run().id;
    let steps = [RunPart::Step(0), RunPart::Step(1), RunPart::Step(63)];
    let parts = [&[RunPart::Plan, RunPart::Output][..], &steps, &[RunPart::Given]].concat();
    let keys: Vec<Vec<u8>> = parts.iter().map(|part| run_rows::remove_part(id, *part).key).collect();
    assert!(keys.is_sorted() && keys.iter().all(|key| key.len() == 19 && key[1..17] == *id.0.as_bytes()));
    assert!(parts.iter().all(|part| RunPart::of(part.number()) == *part));
    assert!(matches!(Records::default().read(&keys[0][..18], &[1]), Err(Error::Key(_))));
}

#[test]
fn memory_entries_come_back_and_sort_by_key() {
    let (created_at, updated_at, taint) = (Timestamp(1), Timestamp(2), Taint::WEB);
    let record = MemoryRecord { value: "{\"a\":1}".into(), created_at, updated_at, taint };
    let op = put_content(memory_key(agent().id, "b"), &record);
    assert_eq!(decode::<MemoryRecord>(&op.key, &op.value.unwrap()).unwrap(), record);
    assert!(op.key > memory_key(agent().id, "a") && op.key < memory_key(agent().id, "ba"));
    assert!(agent_prefixes(agent().id).iter().any(|prefix| op.key.starts_with(prefix)));
}

/// Is the row read as exactly this record?
pub(crate) fn comes_back<T: PartialEq + std::fmt::Debug + Send + 'static>(op: &Op, record: &T) {
    let mut records = Records::default();
    records.read(&op.key, op.value.as_ref().expect("a put has a value")).unwrap();
    assert!(records.iter::<T>().eq([record]), "{:?}", op.key);
    assert_eq!(records.len(), 1);
}

#[test]
fn every_world_kind_comes_back_as_it_was() {
    comes_back(&put(&agent()), &agent());
    comes_back(&put(&session()), &session());
    comes_back(&put(&turn()), &turn());
    let hash = ManifestHash([9; 32]);
    comes_back(&agent_rows::put_manifest(hash, &Manifest::default()), &(hash, Manifest::default()));
    comes_back(&put(&compaction()), &compaction());
    comes_back(&put_sweep(LogId(8)), &SweptLog(LogId(8)));
    comes_back(&put_agent_sweep(agent().id), &SweptAgent(agent().id));
    comes_back(&crate::audit::put_head(&audit_head()), &audit_head());
    comes_back(&put(&memory_use()), &memory_use());
    let id = Uuid::from_u128(7);
    comes_back(&put_component(GoalId(id), &goal()), &(GoalId(id), goal()));
    comes_back(&put_component(TaskId(id), &task()), &(TaskId(id), task()));
    comes_back(&put_component(WorkflowId(id), &workflow()), &(WorkflowId(id), workflow()));
    comes_back(&put(&run()), &run());
    comes_back(&run_rows::put_plan(run().id, &run_plan()), &(run().id, run_plan()));
    let (at, part) = (run().id, RunPart::Step(63));
    let run_text = || RunTextRecord { text: "green tea".into() };
    comes_back(&run_rows::put_text(at, part, &run_text()), &(at, part, run_text()));
    comes_back(&put(&trigger()), &trigger());
    comes_back(&put(&trigger_state()), &trigger_state());
    comes_back(&trigger_rows::put_wave(&waves::wave()), &waves::wave());
    comes_back(&put(&schedule()), &schedule());
    comes_back(&put(&schedule_state()), &schedule_state());
}

fn audit_head() -> AuditHead {
    AuditHead { first: 3, anchor: [1; 32], last: 9, hash: [2; 32] }
}

#[test]
fn rows_of_the_audit_trail_sort_by_entry_with_its_checkpoint_behind_it() {
    let keys = [audit_entry_key(255), audit_checkpoint_key(255), audit_entry_key(256)];
    assert!(keys.is_sorted() && keys.iter().all(|key| key.starts_with(&AUDIT_PREFIX)));
    assert_eq!(parse_audit_key(&keys[1]), Some(AuditKey::Checkpoint(255)));
    assert_eq!(parse_audit_key(&keys[2]), Some(AuditKey::Entry(256)));
    assert_eq!(parse_audit_key(b"z1234567"), None);
}

fn trigger() -> TriggerRecord {
    TriggerRecord {
        id: TriggerId(Uuid::from_u128(11)),
        agent: agent().id,
        pattern: r#"{"all":{}}"#.into(),
        prompt_template: "Look: {{event}}".into(),
        enabled: true,
        max_fires: 3,
        cooldown_secs: Some(7),
        session_mode: Some(SessionMode::New),
        target: Some(AgentId(Uuid::from_u128(6))),
        created_at: Timestamp(5),
        holder: None,
        is_in_nobodys_line: false,
    }
}

fn trigger_state() -> TriggerStateRecord {
    let mut log = FireLog { last_fired_at: Some(Timestamp(8)), cascade_fires: 2, ..FireLog::default() };
    log.outcomes.add(FireOutcome::Fired, 2);
    log.outcomes.add(FireOutcome::CoolingDown, 300);
    log.fires.push_back(Fire {
        at: Timestamp(8),
        on: EventKind::AgentSpawned,
        turn: TurnId(Uuid::from_u128(3)),
        agent: agent().id,
        session: SessionId(Uuid::from_u128(2)),
        end: Some(TurnEnd::Done),
    });
    TriggerStateRecord { id: trigger().id, log, bursts: 7 }
}

fn schedule() -> ScheduleRecord {
    ScheduleRecord {
        id: ScheduleId(Uuid::from_u128(11)),
        agent: AgentId(Uuid::from_u128(1)),
        kind: ScheduleKind::Cron,
        name: Some("nightly".into()),
        rule: "0 3 * * *".into(),
        timezone: "Europe/Berlin".into(),
        prompt: "look".into(),
        missed: MissedPolicy::All,
        overlap: OverlapPolicy::Parallel,
        session_mode: Some(SessionMode::New),
        created_at: Timestamp(1),
        updated_at: Timestamp(2),
        anchored_at: Timestamp(3),
        taint: Taint::COMMAND,
        user: None,
        wake: None,
    }
}

fn schedule_state() -> ScheduleStateRecord {
    let past = Past {
        queue: vec![Timestamp(7)],
        last_run: Some(Timestamp(6)),
        last_result: Some(RunResult { status: RunStatus::Failed, text: "no".into(), at: Timestamp(8) }),
        run_count: 4,
        tally: Tally { fired: 3, missed: 2, ..Tally::default() },
        since: Some(Timestamp(5)),
        ..Past::default()
    };
    let id = ScheduleId(Uuid::from_u128(11));
    ScheduleStateRecord { id, enabled: true, cursor: Timestamp(7), past: Some(Box::new(past)) }
}

fn compaction() -> CompactionRecord {
    CompactionRecord {
        id: CompactionId(Uuid::from_u128(5)),
        session: SessionId(Uuid::from_u128(2)),
        log: LogId(77),
        from: 1,
        upto: 9,
        attempt: 2,
    }
}

#[test]
fn summaries_come_back_and_sort_by_log_and_turn() {
    let record = SummaryRecord {
        from: 1,
        upto: 300,
        messages: 17,
        text: "they spoke".into(),
        created_at: Timestamp(10),
        model: "builtin/builtin".into(),
        usage: Usage::of(1, 2),
    };
    let op = put_content(summary_key(LogId(7), record.upto), &record);
    assert_eq!(decode::<SummaryRecord>(&op.key, &op.value.unwrap()).unwrap(), record);
    assert!(op.key < summary_key(LogId(7), 301) && op.key.starts_with(&summary_prefix(LogId(7))));
    assert!(log_prefixes(LogId(7)).any(|prefix| op.key.starts_with(&prefix)), "it is swept with its log");
}

#[test]
fn messages_come_back_and_sort_by_log_turn_and_row() {
    let record = MessageRecord {
        turn: TurnId(Uuid::from_u128(3)),
        role: Role::Assistant,
        blocks: vec![Block::Text { text: "hello".into() }],
        created_at: Timestamp(10),
        usage: Some(Usage::of(1, 2)),
        model: Some("builtin/builtin".into()),
        stopped: false,
        repeats: None,
    };
    let at = MessageKey { log: LogId(1 << 40), ordinal: 300, index: 7 };
    let op = put_content(message_key(at), &record);
    assert_eq!(decode::<MessageRecord>(&op.key, &op.value.unwrap()).unwrap(), record);
    assert_eq!(parse_message_key(&op.key), Some(at));
    let next = message_key(MessageKey { ordinal: 301, index: 0, ..at });
    assert!(op.key < next && op.key.starts_with(&log_prefix(at.log)));
    assert_eq!(parse_message_key(b"r123"), None);
}

#[test]
fn hexadecimal_is_read_strictly() {
    assert_eq!((unhex(b"00fFa1"), unhex(b"")), (Some(vec![0, 255, 161]), Some(Vec::new())));
    ["0", "0g", "0x00", "äa"].iter().for_each(|wrong| assert_eq!(unhex(wrong.as_bytes()), None, "{wrong}"));
}
