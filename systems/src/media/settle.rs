//! What comes of a task: the job that asks the provider, the one that asks for its task, the one that downloads the result.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_ecs::prelude::{Resource, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;
use agentsvc_components::media::{DropUpload, MediaFault, MediaFile, MediaRequest, MediaState, MediaTask, MediaTaskId};
use agentsvc_components::usage::CallEnd;
use agentsvc_components::{AgentId, Micros};

use super::index::{MediaTasks, owner};
use super::list::MediaTaskView;
use super::metrics::MediaTotals;
use super::{keep, limits};
use crate::kernel::clock::Now;
use crate::kernel::entities::{change, state};
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::Removed;
use crate::kernel::waiters;
use crate::usage;

/// The kind of jobs that ask a provider for media. The input is a [`MakeOrder`]. `Retry` means that nothing was charged.
pub const MAKE: &str = "media_make";
/// The kind of jobs that ask for the task of a provider. The input is a [`PollOrder`].
pub const POLL: &str = "media_poll";
/// The kind of jobs that download a result. The input is a [`FetchOrder`].
pub const FETCH: &str = "media_fetch";

/// Asks a provider. Never repeated when nothing is known of its end: it would be paid twice.
pub(super) const MAKING: JobKind = JobKind {
    name: MAKE,
    repeatable: false,
    tries_max: limits::MEDIA_MAKE_TRIES_MAX,
    backoff_ms: 1_000,
    backoff_ms_max: 60_000,
    deadline_ms: limits::MEDIA_MAKE_DEADLINE_MS,
    timeout_ms: limits::MEDIA_MAKE_TIMEOUT_MS,
    lane: limits::MEDIA_MAKE_OUT_MAX,
    subject_lane: limits::MEDIA_AGENT_MAKE_OUT_MAX,
    is_shared: false,
    is_ordered: false,
    count_max: limits::MEDIA_OPEN_MAX,
    subject_count_max: limits::MEDIA_OPEN_MAX,
    subject_bytes_max: limits::MEDIA_OPEN_MAX * limits::MEDIA_INPUT_BYTES_MAX,
    input_bytes_max: limits::MEDIA_INPUT_BYTES_MAX,
    bytes_max: limits::MEDIA_OPEN_MAX * limits::MEDIA_INPUT_BYTES_MAX,
    settle: made,
};

/// Asks for a task until it has ended. Asking costs nothing.
pub(super) const POLLING: JobKind = JobKind {
    name: POLL,
    repeatable: true,
    tries_max: limits::MEDIA_POLL_TRIES_MAX,
    backoff_ms: limits::MEDIA_POLL_BACKOFF_MS,
    backoff_ms_max: limits::MEDIA_POLL_BACKOFF_MS_MAX,
    deadline_ms: limits::MEDIA_POLL_DEADLINE_MS,
    timeout_ms: limits::MEDIA_POLL_TIMEOUT_MS,
    lane: limits::MEDIA_POLL_OUT_MAX,
    subject_lane: limits::MEDIA_POLL_OUT_MAX / 2,
    settle: polled,
    ..MAKING
};

/// Downloads a result.
pub(super) const FETCHING: JobKind = JobKind {
    name: FETCH,
    repeatable: true,
    tries_max: limits::MEDIA_FETCH_TRIES_MAX,
    deadline_ms: limits::MEDIA_FETCH_DEADLINE_MS,
    lane: limits::MEDIA_FETCH_OUT_MAX,
    subject_lane: limits::MEDIA_FETCH_OUT_MAX,
    settle: fetched,
    ..MAKING
};

/// What the job that asks a provider is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MakeOrder {
    /// The task.
    pub task: MediaTaskId,
    /// What is asked for.
    pub request: MediaRequest,
}

/// What the job that asks for a task is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollOrder {
    /// The task.
    pub task: MediaTaskId,
}

/// What the job that downloads a result is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchOrder {
    /// The task.
    pub task: MediaTaskId,
    /// Where the result is.
    pub from: MediaSource,
}

/// Where a result is that a provider keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaSource {
    /// At these links, which expire. Untrusted.
    Links(Vec<String>),
    /// In a file of this id, for which the provider gives a new link each time.
    File(String),
}

/// What a try learned: what the performer brings, as JSON. What is `None` was not said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MediaReport {
    /// What the request cost; `None` is all that was reserved when it succeeded, and nothing when it failed.
    pub cost: Option<Micros>,
    /// Where the task is at the provider.
    pub state: Option<MediaState>,
    /// The task, as the provider knows it.
    pub remote: Option<String>,
    /// Where the result is to be downloaded.
    pub from: Option<MediaSource>,
    /// The result.
    pub files: Vec<MediaFile>,
    /// The transcript, or the prompt as the provider changed it.
    pub text: Option<String>,
    /// The language of the transcript.
    pub language: Option<String>,
    /// How long the recording of a transcript plays, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Why there is no result.
    pub fault: Option<MediaFault>,
    /// The same for people.
    pub error: Option<String>,
}

impl MediaReport {
    /// What a text says that no performer may have written, such as that a deadline passed.
    fn read(text: String) -> Self {
        serde_json::from_str(&text).unwrap_or_else(|_| Self {
            fault: Some(MediaFault::Timeout),
            error: Some(text),
            ..Self::default()
        })
    }
}

/// The task that a job is for.
pub(super) fn task_of(job: &Job) -> Option<MediaTaskId> {
    serde_json::from_str::<PollOrder>(&job.input).ok().map(|order| order.task)
}

/// Is this what a task in its state waits for? Where a part of a backup was restored, tasks and jobs may be of two times.
pub(super) fn fits(job: &Job, task: &MediaTask) -> bool {
    match &*job.kind {
        MAKE => task.state == MediaState::Pending,
        POLL => task.state.is_open() && task.remote.is_some(),
        FETCH => task.state == MediaState::Processing,
        _ => false,
    }
}

/// The open task that a job is for.
fn open_task_of(world: &World, job: &Job) -> Option<MediaTaskId> {
    task_of(job).filter(|id| state::<MediaTask>(world, *id).is_some_and(|task| fits(job, task)))
}

/// Hears of a try to ask a provider, or of its end.
fn made(world: &mut World, _: JobId, job: &Job, event: JobEvent) {
    let Some(id) = open_task_of(world, job) else { return };
    match event {
        JobEvent::Retried(_) => book(world, id, Some(Micros::ZERO), CallEnd::Failed),
        JobEvent::Done(text) => {
            let report = MediaReport::read(text);
            book(world, id, report.cost, CallEnd::Answered);
            go_on(world, id, report);
        }
        JobEvent::Failed(text) => {
            let report = MediaReport::read(text);
            book(world, id, Some(report.cost.unwrap_or_default()), CallEnd::Failed);
            fail(world, id, report);
        }
        JobEvent::Unknown => lost(world, id, job),
    }
}

/// A try was out when the daemon ended. What is reserved may have been paid, so the request is not repeated. Where nothing is
/// reserved, the provider was not asked, and is asked now.
fn lost(world: &mut World, id: MediaTaskId, job: &Job) {
    let Some(task) = state::<MediaTask>(world, id) else { return };
    let (agent, holder, was_asked) = (task.agent, task.holder, task.grant.is_some());
    if was_asked || task.restarts >= limits::MEDIA_RESTARTS_MAX {
        drop_recording(world, job);
        let why = if was_asked {
            "the provider may have been paid; the request is not repeated"
        } else {
            "the daemon ended too often before the provider was asked"
        };
        return lose(world, id, why.to_owned());
    }
    update(world, id, |task| task.restarts += 1);
    let again = NewJob { subject: owner(agent).0, owner: agent, holder, input: Arc::clone(&job.input) };
    if let Err(refusal) = job::add(world, MAKE, again) {
        fail(world, id, failure(MediaFault::Unknown, refusal.message));
    }
}

/// Nothing is known of the end of a task, or ever will be.
pub(super) fn lose(world: &mut World, id: MediaTaskId, why: String) {
    book(world, id, None, CallEnd::Unknown);
    fail(world, id, failure(MediaFault::Unknown, why));
}

/// A recording that was uploaded for a request alone goes. A try that comes to its end removes it itself.
pub(super) fn drop_recording(world: &mut World, job: &Job) {
    let order = serde_json::from_str::<MakeOrder>(&job.input).ok();
    if let Some(MediaRequest::Transcription { file, is_temporary: true, .. }) = order.map(|order| order.request) {
        world.effect(DropUpload(file));
    }
}

/// Hears of a question for a task, or of its end.
fn polled(world: &mut World, _: JobId, job: &Job, event: JobEvent) {
    let Some(id) = open_task_of(world, job) else { return };
    match event {
        JobEvent::Retried(text) => {
            if let Some(at) = MediaReport::read(text).state.filter(|state| state.is_open()) {
                update(world, id, |task| task.state = at);
            }
        }
        JobEvent::Done(text) => go_on(world, id, MediaReport::read(text)),
        JobEvent::Failed(text) => {
            let late = || failure(MediaFault::Timeout, "the provider did not end the task in time".to_owned());
            let report = MediaReport::read(text);
            fail(world, id, if report.fault.is_some() { report } else { late() });
        }
        JobEvent::Unknown => fail(world, id, failure(MediaFault::Unknown, "its end is not known".to_owned())),
    }
}

/// Hears of a download, or of its end.
fn fetched(world: &mut World, _: JobId, job: &Job, event: JobEvent) {
    let Some(id) = open_task_of(world, job) else { return };
    match event {
        JobEvent::Retried(_) => {}
        JobEvent::Done(text) => complete(world, id, MediaReport::read(text)),
        JobEvent::Failed(text) => fail(world, id, MediaReport::read(text)),
        JobEvent::Unknown => fail(world, id, failure(MediaFault::Unknown, "its end is not known".to_owned())),
    }
}

fn failure(fault: MediaFault, error: String) -> MediaReport {
    MediaReport { fault: Some(fault), error: Some(error), ..MediaReport::default() }
}

/// Settles the call of a task, if one is out; `None` as its cost is all that was reserved.
fn book(world: &mut World, id: MediaTaskId, cost: Option<Micros>, end: CallEnd) {
    let Some(task) = state::<MediaTask>(world, id) else { return };
    let Some(grant) = task.grant else { return };
    let most = task.most;
    // A call that was out when the daemon ended is settled already, with all that was reserved.
    let booked = usage::fixed(world, grant, cost, end).unwrap_or(most);
    update(world, id, |task| {
        task.grant = None;
        task.cost = task.cost.plus(booked);
    });
}

fn update(world: &mut World, id: MediaTaskId, with: impl FnOnce(&mut MediaTask)) {
    if let Some(entity) = world.resource::<MediaTasks>().get(id) {
        change(world, entity, with);
    }
}

/// The provider has the result, or works on it.
fn go_on(world: &mut World, id: MediaTaskId, mut report: MediaReport) {
    let Some(task) = state::<MediaTask>(world, id) else { return };
    let (agent, holder) = (task.agent, task.holder);
    let next = if let Some(from) = report.from.take() {
        Some((FETCH, MediaState::Processing, serde_json::to_string(&FetchOrder { task: id, from })))
    } else if report.files.is_empty() && report.remote.is_some() {
        Some((POLL, MediaState::Queued, serde_json::to_string(&PollOrder { task: id })))
    } else {
        None
    };
    let Some((kind, at, input)) = next else { return complete(world, id, report) };
    let (remote, text) = (report.remote.take(), report.text.take());
    if remote.as_deref().is_some_and(|remote| remote.is_empty() || remote.len() > limits::MEDIA_REMOTE_BYTES_MAX) {
        let why = "the provider gave the task an id that is empty or too long".to_owned();
        return fail(world, id, failure(MediaFault::Protocol, why));
    }
    let at = report.state.filter(|state| state.is_open()).unwrap_or(at);
    update(world, id, |task| {
        task.state = at;
        task.remote = remote.map(Into::into).or(task.remote.take());
        task.text = text.map(|text| cut(&text, limits::MEDIA_TEXT_BYTES_MAX)).or(task.text.take());
    });
    let input = match input {
        Ok(input) => Arc::from(input),
        Err(error) => return fail(world, id, failure(MediaFault::Protocol, error.to_string())),
    };
    if let Err(refusal) = job::add(world, kind, NewJob { subject: owner(agent).0, owner: agent, holder, input }) {
        fail(world, id, failure(MediaFault::Protocol, refusal.message));
    }
}

/// The result is here.
fn complete(world: &mut World, id: MediaTaskId, report: MediaReport) {
    let MediaReport { files, text, language, duration_ms, .. } = report;
    if files.is_empty() && text.is_none() {
        return fail(world, id, failure(MediaFault::Protocol, "the result is empty".to_owned()));
    }
    end(world, id, |task| {
        task.state = MediaState::Completed;
        task.files = files;
        task.text = text.map(|text| cut(&text, limits::MEDIA_TEXT_BYTES_MAX)).or(task.text.take());
        task.language = language.map(|language| cut(&language, limits::MEDIA_NAME_BYTES_MAX));
        task.duration_ms = duration_ms;
    });
}

/// There is no result.
fn fail(world: &mut World, id: MediaTaskId, report: MediaReport) {
    end(world, id, |task| {
        task.state = MediaState::Failed;
        task.fault = Some(report.fault.unwrap_or_default());
        let error = report.error.unwrap_or_else(|| "the provider failed".to_owned());
        task.error = Some(cut(&error, limits::MEDIA_ERROR_BYTES_MAX));
    });
}

/// Ends a task, and tells those who wait for it.
fn end(world: &mut World, id: MediaTaskId, with: impl FnOnce(&mut MediaTask)) {
    let now = world.resource::<Now>().0;
    update(world, id, |task| {
        with(task);
        task.ended_at = Some(now);
    });
    let Some(task) = state::<MediaTask>(world, id) else { return };
    let (kind, fault) = (task.kind, task.fault);
    world.resource_mut::<MediaTotals>().count(kind, fault);
    waiters::tell::<MediaTaskView>(world, id);
    keep::trim(world);
}

pub(super) fn cut(text: &str, most: usize) -> Box<str> {
    text[..text.floor_char_boundary(most)].into()
}

/// Calls that were out when their agent went. They are settled at the end of the step, when the usage of the agent is gone too.
#[derive(Resource, Debug, Default)]
pub(super) struct Orphans(Vec<Attempt>);

/// An agent goes: its jobs are gone already, and its tasks go with it.
pub(super) fn agent_removed(world: &mut World, gone: &Removed<AgentId>) {
    for id in world.resource::<MediaTasks>().of(gone.id) {
        let grant = state::<MediaTask>(world, id).and_then(|task| task.grant);
        world.resource_mut::<Orphans>().0.extend(grant);
        keep::forget(world, id);
        waiters::tell::<MediaTaskView>(world, id);
    }
}

/// Settles calls whose agent went in this step; they cost what was reserved.
// &mut World: settling writes usage and reacts to what budgets have left.
pub(super) fn settle_orphans(world: &mut World) {
    for grant in std::mem::take(&mut world.resource_mut::<Orphans>().0) {
        usage::fixed(world, grant, None, CallEnd::Aborted);
    }
}

/// How many jobs each task has.
pub(super) fn with_jobs(world: &mut World) -> BTreeMap<MediaTaskId, usize> {
    let mut found = world.query::<&Job>();
    let mut counts = BTreeMap::new();
    let its = found.iter(world).filter(|job| matches!(&*job.kind, MAKE | POLL | FETCH)).filter_map(task_of);
    for id in its {
        *counts.entry(id).or_default() += 1;
    }
    counts
}
