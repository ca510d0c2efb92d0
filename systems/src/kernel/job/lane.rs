//! The lane of a kind: its jobs in the order in which they are due, its bounds and its counts.

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::{Job, JobState};
use agentsvc_components::{Refusal, RefusalKind, Timestamp};
use serde::Serialize;
use uuid::Uuid;

use super::turns::Turns;
use super::{JobEvent, JobKind};
use crate::kernel::quota::Used;
use crate::kernel::share::Shares;
use crate::kernel::share::places_of;

/// How many jobs of a kind wait and are out, and what became of the others since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobCounts {
    /// Jobs that wait.
    pub waiting: usize,
    /// Jobs of which a try is out.
    pub out: usize,
    /// Jobs that were done.
    pub done: u64,
    /// Tries that failed and were followed by another one.
    pub retried: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs of which nobody knows whether they took effect.
    pub unknown: u64,
    /// Jobs that were not added because there were too many, or because their input was too long.
    pub refused: u64,
}

/// What a lane holds: what `check` compares with a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    turns: Turns,
    /// What each holder takes.
    shares: Shares,
    waiting: usize,
    bytes: usize,
}

/// The lane of one kind.
pub(super) struct Lane {
    pub(super) kind: JobKind,
    held: Held,
    counts: JobCounts,
}

impl Lane {
    pub(super) fn new(kind: JobKind) -> Self {
        assert!(!kind.is_ordered || kind.subject_lane == 1, "{}: only one try at a time keeps an order", kind.name);
        Self { kind, held: Held::default(), counts: JobCounts::default() }
    }

    pub(super) const fn held(&self) -> &Held {
        &self.held
    }

    pub(super) const fn out(&self) -> usize {
        self.held.turns.out()
    }

    pub(super) const fn counts(&self) -> JobCounts {
        JobCounts { waiting: self.held.waiting, out: self.held.turns.out(), ..self.counts }
    }

    /// Takes over what became of the jobs of this kind in another world.
    pub(super) const fn count_on_from(&mut self, other: &Self) {
        self.counts = other.counts;
    }

    /// Counts what became of a job.
    pub(super) const fn count(&mut self, event: &JobEvent) {
        let counts = &mut self.counts;
        let count = match event {
            JobEvent::Retried(_) => &mut counts.retried,
            JobEvent::Done(_) => &mut counts.done,
            JobEvent::Failed(_) => &mut counts.failed,
            JobEvent::Unknown => &mut counts.unknown,
        };
        *count += 1;
    }

    /// Refuses another job for `subject` with an input of so many bytes where there is no room, and counts that.
    pub(super) fn admit(&mut self, subject: Uuid, holder: Option<Holder>, bytes: usize) -> Result<(), Refusal> {
        let room = self.has_room(subject, bytes).and_then(|()| self.has_share(subject, holder, bytes));
        self.counts.refused += u64::from(room.is_err());
        room
    }

    fn has_share(&self, subject: Uuid, holder: Option<Holder>, bytes: usize) -> Result<(), Refusal> {
        let JobKind { name, count_max, bytes_max, subject_count_max, is_shared, .. } = self.kind;
        let is_bounded = is_shared && holder.is_some();
        let has_place = !is_bounded || self.held.turns.count_of(subject, holder) < places_of(subject_count_max, holder);
        if has_place && self.held.shares.has_room(Used { count: count_max, bytes: bytes_max }, holder, 1, bytes) {
            return Ok(());
        }
        let text = format!("too many {name} jobs of one user or family of agents are open");
        Err(Refusal::new(RefusalKind::TooMany, text))
    }

    fn has_room(&self, subject: Uuid, bytes: usize) -> Result<(), Refusal> {
        let JobKind { name, count_max, subject_count_max, subject_bytes_max, input_bytes_max, bytes_max, .. } =
            self.kind;
        let (count, held) = (self.held.waiting + self.out(), self.held.bytes);
        let (of_subject, held_for_it) = self.held.turns.held_for(subject);
        if bytes > input_bytes_max {
            let text = format!("the input of a {name} job has {bytes} bytes, of {input_bytes_max} at most");
            return Err(Refusal::bad_field("input", text));
        }
        let full = |text: String| Err(Refusal::new(RefusalKind::TooMany, text));
        if count >= count_max {
            return full(format!("there are {count} {name} jobs already, of {count_max} at most"));
        }
        if of_subject >= subject_count_max {
            return full(format!("{of_subject} {name} jobs of one subject are open, of {subject_count_max} at most"));
        }
        if held_for_it + bytes > subject_bytes_max {
            let text =
                format!("the {name} jobs of one subject hold {held_for_it} bytes, of {subject_bytes_max} at most");
            return full(text);
        }
        if held + bytes > bytes_max {
            return full(format!("the {name} jobs hold {held} bytes already, of {bytes_max} at most"));
        }
        Ok(())
    }

    /// The job whose turn it is, when one is due and there is room for it.
    pub(super) fn first(&self, now: Timestamp) -> Option<JobId> {
        self.held.turns.first(&self.kind).filter(|(at, _)| *at <= now).map(|(_, id)| id)
    }

    /// When the next job is due for which there is room.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.held.turns.first(&self.kind).map(|(at, _)| at)
    }

    /// The jobs of a subject.
    pub(super) fn of_subject(&self, subject: Uuid) -> Vec<JobId> {
        self.held.turns.of_subject(subject)
    }

    pub(super) fn insert(&mut self, id: JobId, job: &Job) {
        self.held.bytes += job.input.len();
        self.held.shares.add(job.holder, 1, job.input.len());
        self.held.waiting += usize::from(job.state == JobState::Waiting);
        self.held.turns.insert(&self.kind, id, job);
    }

    pub(super) fn remove(&mut self, id: JobId, job: &Job) {
        self.held.bytes -= job.input.len();
        self.held.shares.remove(job.holder, 1, job.input.len());
        self.held.waiting -= usize::from(job.state == JobState::Waiting);
        self.held.turns.remove(&self.kind, id, job);
    }

    /// A try of a job began.
    pub(super) fn began(&mut self, job: &Job, now: Timestamp) {
        self.held.turns.began(&self.kind, job, now);
    }

    /// The clock was set back.
    pub(super) fn clock_set_back(&mut self, now: Timestamp) {
        self.held.turns.clock_set_back(&self.kind, now);
    }

    /// Takes over who was served when: what the jobs do not say.
    pub(super) fn serve_as(&mut self, other: &Self) {
        self.held.turns.serve_as(&self.kind, &other.held.turns);
    }

    /// A holder who has more places than its share.
    pub(super) fn over(&self) -> Option<Option<Holder>> {
        self.held.turns.over(&self.kind)
    }
}
