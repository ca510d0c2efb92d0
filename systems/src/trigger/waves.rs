//! What has matched and waits to be delivered: a line for each holder of triggers and one for those of nobody, each in order. The
//! lines are served in turn, and each held one has a part of a step and no more, so that nobody's triggers delay those of others.
//!
//! A wave of few is listed when its event happens. Of more it is kept which event they wait for, and those whose turn comes are found
//! then: an event costs a line as much whether it finds a hundred of its triggers or a hundred thousand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, OnceLock};

use bevy_ecs::prelude::{Entity, Mut, Resource, World};
use uuid::Uuid;

use agentsvc_components::event::EventKind;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::trigger::record::{AskedRecord, UnlistedRecord, WaveRecord};
use agentsvc_components::{SessionId, Timestamp, TriggerId};

use super::index::{Found, Line, Triggers};
use super::rows;
use crate::kernel::outbox::Emit;
use crate::kernel::quota::Used;
use crate::kernel::share::Shares;

/// What a fire counts for, where a match without a turn counts for one.
pub(super) const FIRE: usize = limit::MATCHES_PER_FIRE as usize;
/// What a held line may have of a step.
const STEP_MAX: usize = limit::FIRES_PER_STEP_MAX / limit::POOL_SHARES * FIRE;
/// What a line has before the turn of the next one.
const TURN_MAX: usize = limit::BURST_FIRES_MAX * FIRE;

/// What happened, as far as a fire needs it.
#[derive(Debug)]
pub(super) struct Occurrence {
    pub(super) kind: EventKind,
    pub(super) at: Timestamp,
    pub(super) depth: u8,
    /// What stood behind the event before anybody read it.
    pub(super) taint: Taint,
    /// The session in which strangers began what the event comes from.
    pub(super) began_in: Option<SessionId>,
    /// Which event of its step it is; read from there, when it is to be shown or stored, and never in a later step.
    pub(super) place: usize,
    pub(super) shown: OnceLock<Shown>,
    /// The event itself, where triggers that it found are not listed yet.
    pub(super) asked: Option<Box<AskedRecord>>,
}

/// An event as the agents of its triggers read it.
#[derive(Debug)]
pub(super) struct Shown {
    /// Its compact JSON.
    pub(super) event: Box<str>,
    /// Untrusted content behind it, that included which it shows.
    pub(super) taint: Taint,
}

/// Matches of one event in one line.
#[derive(Debug)]
pub(super) struct Wave {
    pub(super) what: Arc<Occurrence>,
    /// Those that are listed.
    triggers: Vec<(TriggerId, Entity)>,
    /// How many of them are delivered.
    delivered: usize,
    rest: Option<Rest>,
    /// How many of them wait, and how many they take of their holder's share until all are delivered. Of those that are not listed,
    /// as many as there were when the event happened.
    waiting: usize,
    count: usize,
    /// Orders the records.
    number: u64,
    /// How many were delivered when its record was written; `None` when it has none.
    stored: Option<usize>,
    /// How many are delivered in all.
    passed: usize,
}

/// Which triggers of a wave are not listed.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// The last one that was delivered.
    after: Option<TriggerId>,
    /// The newest that there was when the event happened.
    upto: TriggerId,
    /// Are those that are listed the last?
    is_listed: bool,
}

impl Wave {
    /// Those of these triggers that waited for the event.
    pub(super) fn of(what: &Arc<Occurrence>, triggers: Vec<(TriggerId, Entity)>) -> Self {
        let (what, count) = (Arc::clone(what), triggers.len());
        Self { what, triggers, delivered: 0, rest: None, waiting: count, count, number: 0, stored: None, passed: 0 }
    }

    /// So many triggers that are not listed yet; `upto` is the newest of all.
    pub(super) fn unlisted(what: &Arc<Occurrence>, upto: TriggerId, count: usize) -> Self {
        let rest = Some(Rest { after: None, upto, is_listed: false });
        Self { rest, waiting: count, count, ..Self::of(what, Vec::new()) }
    }

    /// The number of its record, if it has one.
    pub(super) fn stored_as(&self) -> Option<u64> {
        self.stored.map(|_| self.number)
    }

    /// How many of its matches wait.
    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// May there be triggers in it that do not want the event, or may not see it? Of those that are listed at once all do.
    pub(super) const fn is_unsifted(&self) -> bool {
        self.rest.is_some()
    }

    /// The next one that is to be delivered.
    pub(super) fn next(&mut self, world: &World, line: Line) -> Option<(TriggerId, Entity)> {
        if self.delivered == self.triggers.len() {
            self.list(world, line);
        }
        self.triggers.get(self.delivered).copied()
    }

    /// The next one is delivered.
    pub(super) fn pass(&mut self) {
        if let (Some(rest), Some((id, _))) = (&mut self.rest, self.triggers.get(self.delivered)) {
            rest.after = Some(*id);
        }
        (self.delivered, self.passed) = (self.delivered + 1, self.passed + 1);
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Lists the next ones, if there are more.
    fn list(&mut self, world: &World, line: Line) {
        let Some(rest) = self.rest.as_mut().filter(|rest| !rest.is_listed) else { return };
        let Some(asked) = &self.what.asked else { return };
        let mut found = Found::new();
        let name = || asked.name.as_deref().map(Into::into);
        let subject = world.resource::<Triggers>().matcher().find(&asked.event, name, &mut found);
        found.retain(|of| line.is_some() || of.pass(&subject));
        let from = rest.after.unwrap_or(TriggerId(Uuid::nil()));
        self.triggers.clear();
        self.delivered = 0;
        for members in found.iter().filter_map(|of| of.set.of(line)) {
            let more = members.range((from, Entity::PLACEHOLDER)..).skip_while(|(id, _)| *id <= from);
            let more = more.take_while(|(id, _)| *id <= rest.upto).take(limit::WAVE_TRIGGERS_MAX);
            self.triggers.extend(more);
        }
        if found.len() > 1 {
            self.triggers.sort_unstable();
        }
        rest.is_listed = self.triggers.len() < limit::WAVE_TRIGGERS_MAX;
        self.triggers.truncate(limit::WAVE_TRIGGERS_MAX);
    }

    /// Of a wave whose event has been shown, which at the end of a step all have.
    fn record(&self, line: Line) -> WaveRecord {
        let (event, taint) =
            self.what.shown.get().map_or_else(Default::default, |shown| (shown.event.clone(), shown.taint));
        let unlisted = self.rest.zip(self.what.asked.as_deref()).map(|(Rest { after, upto, .. }, asked)| {
            Box::new(UnlistedRecord { asked: asked.clone(), after, upto, waiting: self.waiting })
        });
        let listed = if unlisted.is_some() { &[] } else { &self.triggers[self.delivered..] };
        WaveRecord {
            number: self.number,
            kind: self.what.kind,
            event,
            at: self.what.at,
            depth: self.what.depth,
            taint,
            began_in: self.what.began_in,
            triggers: listed.iter().map(|(id, _)| *id).collect(),
            holder: line,
            unlisted,
        }
    }
}

/// What waits in a line.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) queue: VecDeque<Wave>,
    /// What it may still have of this step.
    left: usize,
}

/// What a line may have of a step. Nobody's share bounds what those have made who may make as much as they want.
const fn part(line: Line) -> usize {
    if line.is_some() { STEP_MAX } else { usize::MAX }
}

/// All that waits.
#[derive(Resource, Default)]
pub(crate) struct Waves {
    lanes: BTreeMap<Line, Lane>,
    /// Lines in which something waits that may go on in this step.
    ready: BTreeSet<Line>,
    /// The line that was served last.
    last: Option<Line>,
    waiting: usize,
    /// What waits of each holder of triggers. Those of a wave count until it has gone.
    shares: Shares,
    next_number: u64,
    /// Matches without a turn that may still end on the last fire that was taken for them.
    pub(super) allowance: u32,
}

impl Waves {
    /// Matches that wait.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    fn all(&self) -> impl Iterator<Item = (Line, &Wave)> {
        self.lanes.iter().flat_map(|(line, lane)| lane.queue.iter().map(|wave| (*line, wave)))
    }

    /// The matches that wait, counted wave by wave.
    pub(super) fn count(&self) -> usize {
        self.all().map(|(_, wave)| wave.waiting).sum()
    }

    /// The records of the waves.
    pub(crate) fn records(&self) -> impl Iterator<Item = WaveRecord> {
        self.all().map(|(line, wave)| wave.record(line))
    }

    /// The lines that may go on in this step, as they are kept and as they are found.
    pub(super) fn lines(&self) -> (&BTreeSet<Line>, BTreeSet<Line>) {
        let waits = self.lanes.iter().filter(|(_, lane)| !lane.queue.is_empty() && lane.left > 0);
        (&self.ready, waits.map(|(line, _)| *line).collect())
    }

    /// Adds matches of one event, which count for their holder already.
    pub(super) fn push(&mut self, line: Line, wave: Wave) {
        self.waiting += wave.waiting;
        let number = self.next_number;
        self.next_number += 1;
        let lane = self.lanes.entry(line).or_insert_with(|| Lane { queue: VecDeque::new(), left: part(line) });
        lane.queue.push_back(Wave { number, ..wave });
        if lane.left > 0 {
            self.ready.insert(line);
        }
    }

    /// What waits of each holder, as it is kept and as it is counted wave by wave.
    pub(super) fn shares(&self) -> (&Shares, Shares) {
        let mut scan = Shares::default();
        self.all().for_each(|(line, wave)| scan.add(line, wave.count, 0));
        (&self.shares, scan)
    }

    /// Takes so many matches in where their holder has room among so many; says whether it has.
    pub(super) fn admit(&mut self, line: Line, count: usize, pool: usize) -> bool {
        let has_room = self.shares.has_room(Used { count: pool, bytes: 0 }, line, count, 0);
        if has_room {
            self.shares.add(line, count, 0);
        }
        has_room
    }

    /// Goes on as if so many matches of a holder waited, for tests.
    #[cfg(test)]
    pub(super) fn pretend_of(&mut self, line: Line, count: usize) {
        self.shares.add(line, count, 0);
    }

    /// Adds what is stored; called in the order of numbers (restore).
    pub(super) fn restore(&mut self, record: WaveRecord, triggers: Vec<(TriggerId, Entity)>) {
        let WaveRecord { number, kind, event, at, depth, taint, began_in, holder, unlisted, .. } = record;
        self.next_number = number;
        let shown = OnceLock::from(Shown { event, taint });
        let (rest, asked) = unlisted.map(|it| ((it.after, it.upto, it.waiting), Box::new(it.asked))).unzip();
        let what = Arc::new(Occurrence { kind, at, depth, taint, began_in, place: 0, shown, asked });
        let mut wave = Wave::of(&what, triggers);
        if let Some((after, upto, waiting)) = rest {
            wave = Wave::unlisted(&what, upto, waiting);
            wave.rest = Some(Rest { after, upto, is_listed: false });
        }
        wave.stored = Some(0);
        self.shares.add(holder, wave.count, 0);
        self.push(holder, wave);
    }

    /// Goes on as if so many matches waited, for tests of what a crowd comes to.
    #[cfg(test)]
    pub(super) const fn pretend(&mut self, waiting: usize) {
        self.waiting = waiting;
    }

    /// Takes the line out whose turn it is, with what it may have.
    pub(super) fn next_turn(&mut self) -> Option<(Line, Lane, usize)> {
        let after = self.last.map_or(Unbounded, Excluded);
        let line = *self.ready.range((after, Unbounded)).next().or_else(|| self.ready.first())?;
        let is_alone = self.ready.len() == 1;
        self.last = Some(line);
        let lane = self.lanes.remove(&line)?;
        let most = if is_alone { lane.left } else { lane.left.min(TURN_MAX) };
        Some((line, lane, most))
    }

    /// Puts it back; it has had so much.
    pub(super) fn end_turn(&mut self, line: Line, lane: Lane, spent: usize) {
        let left = if line.is_some() { lane.left.saturating_sub(spent) } else { lane.left };
        if left == 0 || lane.queue.is_empty() {
            self.ready.remove(&line);
        }
        self.lanes.insert(line, Lane { left, ..lane });
    }

    /// So many matches of a wave that was taken out have been delivered.
    pub(super) const fn delivered(&mut self, before: usize, wave: &Wave) {
        self.waiting = self.waiting.saturating_sub(before - wave.waiting);
    }

    /// All matches of a wave that was taken out have been delivered.
    pub(super) fn gone(&mut self, line: Line, wave: &Wave) {
        self.waiting = self.waiting.saturating_sub(wave.waiting);
        self.shares.remove(line, wave.count, 0);
    }

    /// A step ends: what had its part of it may go on in the next.
    fn end_step(&mut self) {
        self.lanes.retain(|line, lane| {
            lane.left = part(*line);
            !lane.queue.is_empty()
        });
        self.ready = self.lanes.keys().copied().collect();
    }
}

/// Do matches wait to be delivered that may be in this step?
pub(crate) fn has_waiting(world: &World) -> bool {
    !world.resource::<Waves>().ready.is_empty()
}

/// At the end of a step: what waits and is not stored as it is gets its record. `show` makes what agents read of an event.
pub(super) fn keep_waiting(world: &mut World, show: impl Fn(&mut World, &Occurrence)) {
    if world.resource::<Waves>().lanes.is_empty() {
        return;
    }
    world.resource_scope(|world, mut waves: Mut<'_, Waves>| {
        for (line, lane) in &mut waves.lanes {
            let queue = &mut lane.queue;
            // The new ones are the last; of the others only the first can have changed.
            let new = queue.iter().rev().take_while(|wave| wave.stored.is_none()).count();
            let from = queue.len() - new;
            for at in (0..from.min(1)).chain(from..from + new) {
                let wave = &mut queue[at];
                if wave.stored != Some(wave.passed) {
                    wave.stored = Some(wave.passed);
                    show(world, &wave.what);
                    world.op(rows::put_wave(&wave.record(*line)));
                }
            }
        }
        waves.end_step();
    });
}
