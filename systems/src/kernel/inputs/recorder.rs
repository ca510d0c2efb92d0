//! What one step takes in, written down while it does.

use bevy_ecs::prelude::{Resource, World};

use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::{Actor, Timestamp};

use super::table::{self, Form};
use super::wire::{put_bytes, put_number, put_signed, put_written};
use crate::kernel::command::Command;

/// Marks of arrivals in a written step; part of the log's format.
pub(crate) const COMMAND: u8 = 1;
pub(crate) const COMMAND_FOR_CALL: u8 = 2;
pub(crate) const TOLD: u8 = 3;
pub(crate) const OUTCOME: u8 = 4;
pub(crate) const TIME: u8 = 5;
pub(crate) const BEAT: u8 = 6;

/// Beats that leave nothing behind and are written together; with the last of them they are written although nothing
/// happened. A minute of the default rate, so that an idle daemon writes once a minute.
const QUIET_BEATS_MAX: u32 = 1_200;

/// Beats that left nothing behind, since the step before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuietBeats {
    /// How many.
    pub count: u32,
    /// When each was: the first in milliseconds since 1970, the others since the one before.
    pub(crate) times: Vec<u8>,
    last: Timestamp,
}

impl QuietBeats {
    fn note(&mut self, now: Timestamp) {
        put_signed(&mut self.times, now.0 - self.last.0);
        self.last = now;
        self.count += 1;
    }
}

/// The inputs of one step, ready to be written.
#[derive(Debug, Default)]
pub struct Inputs {
    /// The step's number if it stored something, else the number of the newest one before it that did.
    pub number: u64,
    /// Did it store something?
    pub stored: bool,
    /// The world's time when it took in the first of them.
    pub now: Timestamp,
    /// The world's time before, when the clock was set back by so much that schedules had to follow it.
    pub set_back_from: Option<Timestamp>,
    /// Did the beat run?
    pub beat: bool,
    /// The arrivals in order, in the form of the log.
    pub(crate) arrivals: Vec<u8>,
    /// Beats since the step before that left nothing behind.
    pub quiet: QuietBeats,
    /// The first one since recording was switched on: a new epoch begins with it.
    pub first: bool,
    /// A writing command that cannot be written down: behind this step nothing can be replayed.
    pub lost: Option<&'static str>,
}

impl Inputs {
    /// Bytes it takes in a queue.
    #[must_use]
    pub fn bytes(&self) -> usize {
        std::mem::size_of::<Self>() + self.arrivals.len() + self.quiet.times.len()
    }
}

/// Writes down what a step takes in, when it is switched on.
#[derive(Resource, Default)]
pub(crate) struct Recorder {
    is_on: bool,
    arrivals: Vec<u8>,
    /// The world's time at the first arrival.
    began: Option<Timestamp>,
    set_back_from: Option<Timestamp>,
    beat: bool,
    /// Work was left over from the step before: this one changes something without an input of its own.
    continues: bool,
    quiet: QuietBeats,
    lost: Option<&'static str>,
    /// Nothing was handed out since it was switched on.
    first: bool,
}

impl Recorder {
    /// Writes down from here on, or no longer.
    pub(crate) fn switch(&mut self, on: bool) {
        *self = Self { is_on: on, first: true, ..Self::default() };
    }

    /// The world's time is set; `set_back_from` when the world had to follow it back.
    pub(crate) fn time(&mut self, now: Timestamp, set_back_from: Option<Timestamp>) {
        if !self.is_on {
            return;
        }
        if self.began.is_some() {
            // Only before the first step of a start something arrives first.
            self.arrivals.push(TIME);
            put_signed(&mut self.arrivals, now.0);
        } else if set_back_from.is_some() {
            self.set_back_from = set_back_from;
        }
    }

    pub(crate) fn beat(&mut self, now: Timestamp) {
        if !self.is_on {
            return;
        }
        if self.began.is_some() {
            self.arrivals.push(BEAT);
        } else {
            (self.beat, self.began) = (true, Some(now));
        }
    }

    /// A command is about to be carried out. Reads are no inputs.
    pub(crate) fn command<C: Command>(&mut self, now: Timestamp, actor: Actor, command: &C) {
        if !self.is_on || !C::WRITES {
            return;
        }
        self.began.get_or_insert(now);
        let begun = self.arrivals.len();
        self.arrivals.push(COMMAND);
        put_written(&mut self.arrivals, |out| table::encode_into(&actor, out));
        put_bytes(&mut self.arrivals, C::NAME.as_bytes());
        let mut form = None;
        put_written(&mut self.arrivals, |out| form = table::record(command, out));
        match form {
            Some(Form::Plain) => {}
            Some(Form::ForCall) => self.arrivals[begun] = COMMAND_FOR_CALL,
            None => {
                self.arrivals.truncate(begun);
                self.lost = Some(C::NAME);
            }
        }
    }

    /// A tool call was told `text` by the command that is being carried out for it.
    pub(crate) fn told(&mut self, text: &str) {
        if self.is_on {
            self.arrivals.push(TOLD);
            put_bytes(&mut self.arrivals, text.as_bytes());
        }
    }

    pub(crate) fn outcome(&mut self, now: Timestamp, outcome: &AnyOutcome) {
        if self.is_on {
            self.began.get_or_insert(now);
            let begun = self.arrivals.len();
            self.arrivals.push(OUTCOME);
            let mut is_listed = false;
            put_written(&mut self.arrivals, |out| is_listed = table::write_outcome(outcome, out));
            if !is_listed {
                self.arrivals.truncate(begun);
                self.lost = Some("an outcome");
            }
        }
    }

    /// The step closes: its inputs, unless there is nothing to replay in it. `stored` is whether it has records,
    /// `left` whether it leaves anything else, `continues` whether work is left over for the next one.
    pub(crate) fn close(
        &mut self,
        now: Timestamp,
        number: u64,
        (stored, left, continues): (bool, bool, bool),
    ) -> Option<Box<Inputs>> {
        if !self.is_on {
            return None;
        }
        let continued = std::mem::replace(&mut self.continues, continues);
        let began = self.began.take().unwrap_or(now);
        let taken = !self.arrivals.is_empty() || self.set_back_from.is_some() || self.lost.is_some();
        let (beat, quiet) = (std::mem::take(&mut self.beat), !(taken || stored || left || continued || continues));
        if quiet {
            // A step of reads alone moves nothing: it is as if it had not been.
            if beat {
                self.quiet.note(now);
            }
            if self.quiet.count < QUIET_BEATS_MAX && !self.first {
                return None;
            }
        }
        Some(Box::new(Inputs {
            number,
            stored,
            now: began,
            set_back_from: self.set_back_from.take(),
            beat: beat && !quiet,
            arrivals: std::mem::take(&mut self.arrivals),
            quiet: std::mem::take(&mut self.quiet),
            first: std::mem::take(&mut self.first),
            lost: self.lost.take(),
        }))
    }
}

/// Writes to the recorder of `world`.
pub(crate) fn recorder(world: &mut World) -> bevy_ecs::prelude::Mut<'_, Recorder> {
    world.resource_mut::<Recorder>()
}

/// Writes a step and what it did in the form of the log: see [`Entry`](crate::replay::Entry).
pub(crate) fn put_head(inputs: &Inputs, out: &mut Vec<u8>) {
    put_number(out, u64::from(inputs.quiet.count));
    put_bytes(out, &inputs.quiet.times);
    let flags = u8::from(inputs.stored) | u8::from(inputs.beat) << 1 | u8::from(inputs.set_back_from.is_some()) << 2;
    out.push(flags);
    put_number(out, inputs.number);
    put_signed(out, inputs.now.0);
    if let Some(before) = inputs.set_back_from {
        put_signed(out, before.0);
    }
    put_bytes(out, &inputs.arrivals);
}
