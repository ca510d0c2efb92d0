//! The lane of a kind: its jobs in the order in which they are due, its bounds and its counts.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::{Job, JobState};
use agentsvc_components::{Refusal, RefusalKind, Timestamp};
use serde::Serialize;
use uuid::Uuid;

use super::{JobEvent, JobKind};
use crate::kernel::quota::Used;
use crate::kernel::share::Shares;

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
    /// Jobs that may be tried when they are due, by that time.
    queue: BTreeSet<Place>,
    /// The jobs of each subject.
    subjects: BTreeMap<Uuid, Subject>,
    /// What each holder takes.
    shares: Shares,
    waiting: usize,
    out: usize,
    bytes: usize,
}

/// When a job is due, and which it is.
type Place = (Timestamp, JobId);

/// The jobs of one subject. Only the first of them is in the queue, and none while as many as may be are out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Subject {
    /// Those that wait, in their order: by when they are due; of an ordered kind, by age.
    waiting: BTreeMap<Place, Timestamp>,
    out: BTreeSet<JobId>,
    bytes: usize,
    queued: Option<Place>,
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
        self.held.out
    }

    pub(super) const fn counts(&self) -> JobCounts {
        JobCounts { waiting: self.held.waiting, out: self.held.out, ..self.counts }
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
        let room = self.has_room(subject, bytes).and_then(|()| self.has_share(holder, bytes));
        self.counts.refused += u64::from(room.is_err());
        room
    }

    fn has_share(&self, holder: Option<Holder>, bytes: usize) -> Result<(), Refusal> {
        let JobKind { name, count_max, bytes_max, .. } = self.kind;
        if self.held.shares.has_room(Used { count: count_max, bytes: bytes_max }, holder, 1, bytes) {
            return Ok(());
        }
        let text = format!("too many {name} jobs of one user or family of agents are open");
        Err(Refusal::new(RefusalKind::TooMany, text))
    }

    fn has_room(&self, subject: Uuid, bytes: usize) -> Result<(), Refusal> {
        let JobKind { name, count_max, subject_count_max, subject_bytes_max, input_bytes_max, bytes_max, .. } =
            self.kind;
        let (count, held) = (self.held.waiting + self.held.out, self.held.bytes);
        let of_subject = self.held.subjects.get(&subject);
        let (of_subject, held_for_it) =
            of_subject.map_or((0, 0), |subject| (subject.waiting.len() + subject.out.len(), subject.bytes));
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
        let (due, id) = self.held.queue.first().filter(|_| self.held.out < self.kind.lane)?;
        (*due <= now).then_some(*id)
    }

    /// When the next job is due for which there is room.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.held.queue.first().filter(|_| self.held.out < self.kind.lane).map(|(due, _)| *due)
    }

    /// The jobs of a subject.
    pub(super) fn of_subject(&self, subject: Uuid) -> Vec<JobId> {
        let Some(subject) = self.held.subjects.get(&subject) else { return Vec::new() };
        subject.waiting.keys().map(|(_, id)| *id).chain(subject.out.iter().copied()).collect()
    }

    pub(super) fn insert(&mut self, id: JobId, job: &Job) {
        self.held.bytes += job.input.len();
        self.held.shares.add(job.holder, 1, job.input.len());
        let place = self.place(id, job);
        match job.state {
            JobState::Out => self.held.out += 1,
            JobState::Waiting => self.held.waiting += 1,
        }
        self.change(job.subject, |subject| {
            subject.bytes += job.input.len();
            match job.state {
                JobState::Out => {
                    subject.out.insert(id);
                }
                JobState::Waiting => {
                    subject.waiting.insert(place, job.due);
                }
            }
        });
    }

    pub(super) fn remove(&mut self, id: JobId, job: &Job) {
        self.held.bytes -= job.input.len();
        self.held.shares.remove(job.holder, 1, job.input.len());
        let place = self.place(id, job);
        match job.state {
            JobState::Out => self.held.out -= 1,
            JobState::Waiting => self.held.waiting -= 1,
        }
        self.change(job.subject, |subject| {
            subject.bytes -= job.input.len();
            match job.state {
                JobState::Out => {
                    subject.out.remove(&id);
                }
                JobState::Waiting => {
                    subject.waiting.remove(&place);
                }
            }
        });
    }

    /// Where a job stands among those of its subject.
    const fn place(&self, id: JobId, job: &Job) -> Place {
        (if self.kind.is_ordered { Timestamp(0) } else { job.due }, id)
    }

    /// Changes what there is of a subject, and puts its first job into the queue.
    fn change(&mut self, id: Uuid, change: impl FnOnce(&mut Subject)) {
        let Held { queue, subjects, .. } = &mut self.held;
        let subject = subjects.entry(id).or_default();
        change(subject);
        let has_room = subject.out.len() < self.kind.subject_lane;
        let first = subject.waiting.first_key_value().map(|((_, job), due)| (*due, *job)).filter(|_| has_room);
        if let Some(before) = std::mem::replace(&mut subject.queued, first) {
            queue.remove(&before);
        }
        queue.extend(first);
        if subject.waiting.is_empty() && subject.out.is_empty() {
            subjects.remove(&id);
        }
    }
}
