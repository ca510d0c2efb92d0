//! What comes of a message: the job that sends it, the job that asks for its task until that has ended, and the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::a2a::outbound::{A2aAgent, A2aAgentId, A2aDialect, A2aSent, A2aSentId, A2aSentState};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;

use super::index::{ExternalAgents, SentTasks};
use super::{A2aSentView, SentTotals};
use crate::a2a::limits;
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, state};
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};
use crate::kernel::waiters;

/// The kind of jobs that send a message.
pub const SEND: &str = "a2a_send";
/// The kind of jobs that ask for a task.
pub const ASK: &str = "a2a_ask";
/// Bytes of the input of a job: the id of a task.
const INPUT_BYTES: usize = 64;

/// Sends a message. It is sent again only when nothing was sent, or when the external agent refused to take it for now.
pub(in crate::a2a) const SENDING: JobKind = JobKind {
    name: SEND,
    repeatable: false,
    tries_max: limits::A2A_SEND_TRIES_MAX,
    backoff_ms: limits::A2A_SEND_BACKOFF_MS,
    backoff_ms_max: limits::A2A_SEND_BACKOFF_MS_MAX,
    deadline_ms: limits::A2A_SEND_DEADLINE_MS,
    timeout_ms: limits::A2A_EXTERNAL_TIMEOUT_MS_MAX,
    lane: limits::A2A_SENDS_OUT_MAX,
    subject_lane: limits::A2A_AGENT_SENDS_OUT_MAX,
    is_shared: true,
    is_ordered: false,
    count_max: limits::A2A_SENT_OPEN_MAX,
    subject_count_max: limits::A2A_AGENT_SENT_OPEN_MAX,
    subject_bytes_max: limits::A2A_AGENT_SENT_OPEN_MAX * INPUT_BYTES,
    input_bytes_max: INPUT_BYTES,
    bytes_max: limits::A2A_SENT_OPEN_MAX * INPUT_BYTES,
    settle: sent,
};

/// Asks for a task until it has ended. Asking changes nothing.
pub(in crate::a2a) const ASKING: JobKind = JobKind {
    name: ASK,
    repeatable: true,
    tries_max: limits::A2A_ASK_TRIES_MAX,
    backoff_ms: limits::A2A_ASK_BACKOFF_MS,
    backoff_ms_max: limits::A2A_ASK_BACKOFF_MS_MAX,
    deadline_ms: limits::A2A_ASK_DEADLINE_MS,
    // A message that was sent has its place to be asked for: all open tasks fit.
    subject_count_max: limits::A2A_SENT_OPEN_MAX,
    subject_bytes_max: limits::A2A_SENT_OPEN_MAX * INPUT_BYTES,
    settle: asked,
    ..SENDING
};

/// What a try learned: what the performer brings, as JSON. What is `None` was not said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentReport {
    /// Where the task is.
    pub state: Option<A2aSentState>,
    /// What the external agent answered.
    pub result: Option<String>,
    /// Why there is no answer.
    pub error: Option<String>,
    /// The task, as the external agent knows it.
    pub remote: Option<String>,
    /// The conversation, as the external agent knows it.
    pub context: Option<String>,
    /// The dialect that the external agent turned out to read.
    pub dialect: Option<A2aDialect>,
}

impl SentReport {
    /// What a text says that no performer may have written.
    fn read(text: String) -> Self {
        serde_json::from_str(&text).unwrap_or_else(|_| Self { error: Some(text), ..Self::default() })
    }
}

/// The task that a job is for.
fn task_of(job: &Job) -> Option<A2aSentId> {
    job.input.parse().ok()
}

/// Hears of a try to send, or of its end.
fn sent(world: &mut World, _: JobId, job: &Job, event: JobEvent) {
    let Some(id) = task_of(job) else { return };
    match event {
        JobEvent::Retried(text) => learn(world, id, SentReport::read(text)),
        JobEvent::Done(text) => {
            let report = SentReport::read(text);
            let state = report.state.unwrap_or(A2aSentState::Completed);
            finish_or_ask(world, id, state, report);
        }
        JobEvent::Failed(text) => {
            let report = SentReport::read(text);
            let state = report.state.filter(|state| !state.is_open()).unwrap_or(A2aSentState::Failed);
            finish_or_ask(world, id, state, report);
        }
        // Where this side chose the id of the task, it can be asked for.
        JobEvent::Unknown if chooses_id(world, id) => {
            let remote = state::<A2aSent>(world, id).and_then(|task| task.remote.as_deref().map(str::to_owned));
            let remote = Some(remote.unwrap_or_else(|| id.to_string()));
            finish_or_ask(world, id, A2aSentState::Submitted, SentReport { remote, ..SentReport::default() });
        }
        JobEvent::Unknown => {
            let why = "no answer came; the message may have been received, and is not sent again".to_owned();
            end(world, id, A2aSentState::Unknown, None, Some(why));
        }
    }
}

/// Hears of a try to ask, or of its end.
fn asked(world: &mut World, _: JobId, job: &Job, event: JobEvent) {
    let Some(id) = task_of(job) else { return };
    match event {
        JobEvent::Retried(text) => learn(world, id, SentReport::read(text)),
        JobEvent::Done(text) => {
            let report = SentReport::read(text);
            let state = report.state.filter(|state| !state.is_open()).unwrap_or(A2aSentState::Unknown);
            finish_or_ask(world, id, state, report);
        }
        JobEvent::Failed(text) => {
            let why = SentReport::read(text).error;
            let why =
                why.map_or_else(|| "its end is not known".to_owned(), |why| format!("its end is not known: {why}"));
            end(world, id, A2aSentState::Unknown, None, Some(why));
        }
        JobEvent::Unknown => {
            let why = "its end is not known".to_owned();
            end(world, id, A2aSentState::Unknown, None, Some(why));
        }
    }
}

/// Is the id of the task the one of this side?
fn chooses_id(world: &World, id: A2aSentId) -> bool {
    let agent = state::<A2aSent>(world, id).and_then(|task| state::<A2aAgent>(world, task.to));
    agent.is_some_and(|agent| matches!(agent.card.dialect, A2aDialect::Tasks | A2aDialect::Rest))
}

/// Takes in what a try learned of a task that is still open.
fn learn(world: &mut World, id: A2aSentId, report: SentReport) {
    let now = world.resource::<Now>().0;
    let SentReport { state: at, error, remote, context, dialect, .. } = report;
    if let Some(dialect) = dialect {
        take_dialect(world, id, dialect);
    }
    let Some(entity) = world.resource::<SentTasks>().get(id) else { return };
    change(world, entity, |task: &mut A2aSent| {
        if let Some(at) = at.filter(|at| at.is_open()) {
            task.state = at;
        }
        task.error = error.map(|error| cut(error, limits::A2A_SENT_ERROR_BYTES_MAX).into());
        if let Some(remote) = remote.and_then(short) {
            task.remote = Some(remote);
        }
        if let Some(context) = context.and_then(short) {
            task.context = Some(context);
        }
        task.updated_at = now;
    });
}

/// The external agent turned out to read another dialect than its card lets expect.
fn take_dialect(world: &mut World, id: A2aSentId, dialect: A2aDialect) {
    let Some(to) = state::<A2aSent>(world, id).map(|task| task.to) else { return };
    let Some(entity) = world.resource::<ExternalAgents>().get(to) else { return };
    if world.get::<A2aAgent>(entity).is_some_and(|agent| agent.card.dialect != dialect) {
        change(world, entity, |agent: &mut A2aAgent| agent.card.dialect = dialect);
    }
}

/// Ends the task, or has it asked for.
fn finish_or_ask(world: &mut World, id: A2aSentId, at: A2aSentState, mut report: SentReport) {
    let (result, error) = (report.result.take(), report.error.take());
    report.state = Some(at);
    learn(world, id, report);
    if !at.is_open() {
        return end(world, id, at, result, error);
    }
    let Some(task) = state::<A2aSent>(world, id) else { return };
    if task.remote.is_none() {
        let why = "the external agent named no task that could be asked for".to_owned();
        return end(world, id, A2aSentState::Unknown, result, Some(why));
    }
    let new = NewJob { subject: task.to.0, owner: None, holder: task.holder, input: Arc::from(id.to_string()) };
    if let Err(refusal) = job::add(world, ASK, new) {
        end(world, id, A2aSentState::Unknown, result, Some(refusal.message.to_string()));
    }
}

/// Ends a task that is open, and tells those who wait for it.
pub(super) fn end(world: &mut World, id: A2aSentId, how: A2aSentState, result: Option<String>, error: Option<String>) {
    let Some(entity) = world.resource::<SentTasks>().get(id) else { return };
    if world.get::<A2aSent>(entity).is_none_or(|task| task.ended_at.is_some()) {
        return;
    }
    let now = world.resource::<Now>().0;
    change(world, entity, |task: &mut A2aSent| {
        task.state = how;
        task.result = result.map(|text| cut(text, limits::A2A_RESULT_BYTES_MAX).into());
        task.error = error.map(|text| cut(text, limits::A2A_SENT_ERROR_BYTES_MAX).into());
        (task.updated_at, task.ended_at) = (now, Some(now));
    });
    let mut totals = world.resource_mut::<SentTotals>();
    match how {
        A2aSentState::Completed => totals.completed += 1,
        A2aSentState::Failed | A2aSentState::Rejected => totals.failed += 1,
        A2aSentState::Unknown => totals.unknown += 1,
        _ => totals.other += 1,
    }
    waiters::tell::<A2aSentView>(world, id);
    super::keep::trim(world);
}

/// The jobs of an external agent that is removed.
pub(super) fn cancel_jobs(world: &mut World, agent: A2aAgentId) {
    job::cancel_all(world, SEND, agent.0);
    job::cancel_all(world, ASK, agent.0);
}

/// How many jobs each task has.
pub(super) fn with_jobs(world: &mut World) -> BTreeMap<A2aSentId, usize> {
    let mut found = world.query::<&Job>();
    let mut counts = BTreeMap::new();
    let its = found.iter(world).filter(|job| matches!(&*job.kind, SEND | ASK)).filter_map(task_of);
    for id in its {
        *counts.entry(id).or_default() += 1;
    }
    counts
}

/// An id that an external agent gave; one that is too long is no id.
fn short(id: String) -> Option<Box<str>> {
    (!id.is_empty() && id.len() <= limits::A2A_REMOTE_ID_BYTES_MAX).then(|| id.into())
}

fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let note = format!("\n[... truncated: the full text is {} bytes ...]", text.len());
        text.truncate(text.floor_char_boundary(most - note.len()));
        text.push_str(&note);
    }
    text
}
