//! Whose turn it is in a lane: that of the holder who was served longest ago, and of the holder's subjects of the one that was served
//! longest ago. Who comes anew stands behind those who wait already. Each change costs as much as its subject has holders.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::{Job, JobState};
use uuid::Uuid;

use super::JobKind;
use crate::kernel::share::places_of;

/// Who takes places; jobs of nobody stand in line like those of one holder.
type Whose = Option<Holder>;
/// Where a job stands among those of its subject.
type Place = (Timestamp, JobId);

/// When something may begin: when it is due, or, if that is later, when its like began last; of one time, who began before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    at: Timestamp,
    /// The number of the try that began last; 0 for none.
    served: u64,
}

/// The jobs of a lane that may be tried when they are due, and those that are out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    /// The next job of each holder who has room.
    queue: BTreeSet<(Turn, JobId, Whose)>,
    /// Holders who have jobs.
    holders: BTreeMap<Whose, Of>,
    /// Subjects that have jobs.
    subjects: BTreeMap<Uuid, Subject>,
    out: usize,
    /// Tries that have begun.
    served: u64,
}

/// The jobs of one holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Of {
    /// The first job of each subject that has room.
    queue: BTreeSet<(Turn, JobId)>,
    /// The last turn.
    served: Turn,
    queued: Option<(Turn, JobId)>,
    jobs: usize,
    out: usize,
}

/// The jobs of one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Subject {
    lines: BTreeMap<Whose, Line>,
    out: usize,
    jobs: usize,
    bytes: usize,
}

/// The jobs of one subject that are of one holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    /// Those that wait, in their order: by when they are due; of an ordered kind, by age.
    waiting: BTreeMap<Place, Timestamp>,
    out: BTreeSet<JobId>,
    /// The last turn.
    served: Turn,
    queued: Option<(Turn, JobId)>,
}

/// Where a job stands among those of its subject.
const fn place(kind: &JobKind, id: JobId, job: &Job) -> Place {
    (if kind.is_ordered { Timestamp(0) } else { job.due }, id)
}

impl Turn {
    /// The next turn of what was served then, and is due at `due`.
    fn next(self, due: Timestamp) -> Self {
        Self { at: due.max(self.at), ..self }
    }
}

impl Turns {
    /// Tries that are out.
    pub(super) const fn out(&self) -> usize {
        self.out
    }

    /// How many jobs a subject has, and the bytes of their inputs.
    pub(super) fn held_for(&self, subject: Uuid) -> (usize, usize) {
        self.subjects.get(&subject).map_or((0, 0), |subject| (subject.jobs, subject.bytes))
    }

    /// How many of them are of a holder.
    pub(super) fn count_of(&self, subject: Uuid, whose: Whose) -> usize {
        let line = self.subjects.get(&subject).and_then(|subject| subject.lines.get(&whose));
        line.map_or(0, |line| line.waiting.len() + line.out.len())
    }

    /// The next job, and from when on it may be tried; none while the lane is full.
    pub(super) fn first(&self, kind: &JobKind) -> Option<(Timestamp, JobId)> {
        let (turn, id, _) = self.queue.first().filter(|_| self.out < kind.lane)?;
        Some((turn.at, *id))
    }

    /// The jobs of a subject.
    pub(super) fn of_subject(&self, subject: Uuid) -> Vec<JobId> {
        let lines = self.subjects.get(&subject).into_iter().flat_map(|subject| subject.lines.values());
        lines.flat_map(|line| line.waiting.keys().map(|(_, id)| *id).chain(line.out.iter().copied())).collect()
    }

    pub(super) fn insert(&mut self, kind: &JobKind, id: JobId, job: &Job) {
        let subject = self.subjects.entry(job.subject).or_default();
        (subject.jobs, subject.bytes) = (subject.jobs + 1, subject.bytes + job.input.len());
        let (line, of) = (subject.lines.entry(job.holder).or_default(), self.holders.entry(job.holder).or_default());
        of.jobs += 1;
        match job.state {
            JobState::Out => {
                line.out.insert(id);
                (self.out, of.out, subject.out) = (self.out + 1, of.out + 1, subject.out + 1);
            }
            JobState::Waiting => {
                line.waiting.insert(place(kind, id, job), job.due);
            }
        }
        self.line_up(kind, job.subject);
    }

    pub(super) fn remove(&mut self, kind: &JobKind, id: JobId, job: &Job) {
        let Some(subject) = self.subjects.get_mut(&job.subject) else { return };
        let (Some(line), Some(of)) = (subject.lines.get_mut(&job.holder), self.holders.get_mut(&job.holder)) else {
            return;
        };
        (subject.jobs, subject.bytes) = (subject.jobs - 1, subject.bytes - job.input.len());
        of.jobs -= 1;
        match job.state {
            JobState::Out => {
                line.out.remove(&id);
                (self.out, of.out, subject.out) = (self.out - 1, of.out - 1, subject.out - 1);
            }
            JobState::Waiting => {
                line.waiting.remove(&place(kind, id, job));
            }
        }
        self.line_up(kind, job.subject);
        if self.holders.get(&job.holder).is_some_and(|of| of.jobs == 0) {
            self.holders.remove(&job.holder);
        }
    }

    /// A try of a job began: the others of its holder, and of its subject, have their turn first.
    pub(super) fn began(&mut self, kind: &JobKind, job: &Job, now: Timestamp) {
        self.served += 1;
        let turn = Turn { at: now, served: self.served };
        if let Some(of) = self.holders.get_mut(&job.holder) {
            of.served = turn;
        }
        let lines = self.subjects.get_mut(&job.subject).map(|subject| &mut subject.lines);
        if let Some(line) = lines.and_then(|lines| lines.get_mut(&job.holder)) {
            line.served = turn;
        }
        self.line_up(kind, job.subject);
    }

    /// The clock was set back: what was served is not later than now.
    pub(super) fn clock_set_back(&mut self, kind: &JobKind, now: Timestamp) {
        let lines =
            self.subjects.values_mut().flat_map(|subject| subject.lines.values_mut().map(|line| &mut line.served));
        for served in lines.chain(self.holders.values_mut().map(|of| &mut of.served)) {
            served.at = served.at.min(now);
        }
        self.line_up_all(kind);
    }

    /// Takes over who was served when: what the jobs do not say.
    pub(super) fn serve_as(&mut self, kind: &JobKind, other: &Self) {
        self.served = other.served;
        for (whose, of) in &mut self.holders {
            of.served = other.holders.get(whose).map_or_else(Turn::default, |of| of.served);
        }
        for (id, subject) in &mut self.subjects {
            for (whose, line) in &mut subject.lines {
                let known = other.subjects.get(id).and_then(|subject| subject.lines.get(whose));
                line.served = known.map_or_else(Turn::default, |line| line.served);
            }
        }
        self.line_up_all(kind);
    }

    /// A holder who has more places than its share.
    pub(super) fn over(&self, kind: &JobKind) -> Option<Whose> {
        self.holders.iter().find(|(whose, of)| of.out > places_of(kind.lane, **whose)).map(|(whose, _)| *whose)
    }

    fn line_up_all(&mut self, kind: &JobKind) {
        let all: Vec<Uuid> = self.subjects.keys().copied().collect();
        all.into_iter().for_each(|subject| self.line_up(kind, subject));
    }

    /// Puts the first jobs of a subject into the queues of their holders, and each holder's next job into that of all.
    fn line_up(&mut self, kind: &JobKind, id: Uuid) {
        let Self { queue, holders, subjects, .. } = self;
        let Some(subject) = subjects.get_mut(&id) else { return };
        let firsts = subject.lines.values().filter_map(|line| line.waiting.first_key_value());
        let oldest = firsts.map(|(place, _)| *place).min();
        for (whose, line) in &mut subject.lines {
            let share = if kind.is_shared { places_of(kind.subject_lane, *whose) } else { kind.subject_lane };
            let has_room = subject.out < kind.subject_lane && line.out.len() < share;
            // Of an ordered kind, nobody passes the oldest job.
            let may = |place: &Place| has_room && (!kind.is_ordered || oldest == Some(*place));
            let first = line.waiting.first_key_value().filter(|(place, _)| may(place));
            let first = first.map(|((_, job), due)| (line.served.next(*due), *job));
            let Some(of) = holders.get_mut(whose) else { continue };
            if let Some(before) = std::mem::replace(&mut line.queued, first) {
                of.queue.remove(&before);
            }
            of.queue.extend(first);
            let next = of.queue.first().filter(|_| of.out < places_of(kind.lane, *whose));
            let next = next.map(|(turn, job)| (of.served.next(turn.at), *job));
            if let Some((turn, job)) = std::mem::replace(&mut of.queued, next) {
                queue.remove(&(turn, job, *whose));
            }
            queue.extend(next.map(|(turn, job)| (turn, job, *whose)));
        }
        subject.lines.retain(|_, line| !line.waiting.is_empty() || !line.out.is_empty());
        if subject.lines.is_empty() {
            subjects.remove(&id);
        }
    }
}
