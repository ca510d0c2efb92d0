//! One entry of the log: a step's inputs and the hashes of what it left behind.
//!
//! | bytes | |
//! |-------|---|
//! | number | quiet beats before the step |
//! | bytes | their times: each the milliseconds since the one before, signed |
//! | 1 | flags: 1 stored something, 2 the beat ran, 4 the clock was set back |
//! | number | the step's number, or that of the newest before it when it stored nothing |
//! | signed | the world's time |
//! | signed | the world's time before, when the clock was set back |
//! | bytes | the arrivals in order, each a mark and its parts |
//! | number | records stored or removed |
//! | for each | 1: space and whether it is removed; bytes: the key; 8: the hash of the value |
//! | 8 | the hash of all that stands in the lines of the records: the hash of the step |
//!
//! Records stand in the order of space and key, of each key only the last.

use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::{Actor, Timestamp};

use super::hash::quick_hash;
use super::table::{self, Form, Written};
use super::wire::{Malformed, Reader, put_bytes, put_number};
use crate::kernel::inputs::recorder::{BEAT, COMMAND, COMMAND_FOR_CALL, Inputs, OUTCOME, TIME, TOLD, put_head};

/// What became of one record in a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Is it content? Records of the world come first.
    pub is_content: bool,
    /// Its key.
    pub key: Vec<u8>,
    /// The hash of its value; `None` when it was removed.
    pub hash: Option<u64>,
}

/// One arrival.
#[derive(Debug)]
pub enum Arrival<'a> {
    /// A command.
    Command(Written<'a>),
    /// Something came back from the outside.
    Outcome(AnyOutcome),
    /// Time went on between two arrivals: those of a start come before its first step.
    Time(Timestamp),
    /// The beat ran between two arrivals.
    Beat,
}

/// A step that left something behind, or took something in.
#[derive(Debug)]
pub struct Step<'a> {
    /// Its number; that of the newest before it when it stored nothing.
    pub number: u64,
    /// Did it store something?
    pub stored: bool,
    /// Did the beat run?
    pub beat: bool,
    /// The world's time.
    pub now: Timestamp,
    /// The world's time before, when the clock was set back.
    pub set_back_from: Option<Timestamp>,
    /// What arrived, in order.
    pub arrivals: Vec<Arrival<'a>>,
    /// What it left, in order.
    pub marks: Vec<Mark>,
    /// The hash of that.
    pub hash: u64,
}

/// One entry of the log.
#[derive(Debug)]
pub struct Entry<'a> {
    /// When beats ran before the step that left nothing.
    pub quiet: Vec<Timestamp>,
    /// The step.
    pub step: Step<'a>,
}

/// Adds the form of `ops` to `out` and gives its hash: those of the world first, in order of keys, of each key only the
/// last.
fn put_marks<'a>(ops: impl ExactSizeIterator<Item = &'a Op>, out: &mut Vec<u8>) -> u64 {
    let order = |op: &Op| op.space == Space::Content;
    let mut sorted: Vec<&Op> = Vec::with_capacity(ops.len());
    sorted.extend(ops);
    // Stable: of one key the last one stays last.
    sorted.sort_by(|a, b| (order(a), &a.key).cmp(&(order(b), &b.key)));
    sorted.reverse();
    sorted.dedup_by(|a, b| a.space == b.space && a.key == b.key);
    sorted.reverse();
    put_number(out, sorted.len() as u64);
    let begin = out.len();
    for op in sorted {
        out.push(u8::from(order(op)) | u8::from(op.value.is_none()) << 1);
        put_bytes(out, &op.key);
        if let Some(value) = &op.value {
            out.extend_from_slice(&quick_hash(value).to_le_bytes());
        }
    }
    quick_hash(&out[begin..])
}

/// Writes the entry of a step that took `inputs` and left `ops`.
pub fn write_entry<'a>(inputs: &Inputs, ops: impl ExactSizeIterator<Item = &'a Op>, out: &mut Vec<u8>) {
    put_head(inputs, out);
    let hash = put_marks(ops, out);
    out.extend_from_slice(&hash.to_le_bytes());
}

/// Reads an entry.
pub(crate) fn read_entry(bytes: &[u8]) -> Result<Entry<'_>, Malformed> {
    let mut reader = Reader(bytes);
    let count = reader.number()?;
    let mut times = Reader(reader.bytes()?);
    let mut quiet = Vec::new();
    let mut last = Timestamp::default();
    for _ in 0..count {
        last = last.plus_ms(times.signed()?);
        quiet.push(last);
    }
    let flags = reader.byte()?;
    let (number, now) = (reader.number()?, reader.time()?);
    let set_back_from = (flags & 4 != 0).then(|| reader.time()).transpose()?;
    let arrivals = read_arrivals(reader.bytes()?)?;
    let count = reader.number()?;
    let begin = reader.0;
    let mut marks = Vec::new();
    for _ in 0..count {
        let kind = reader.byte()?;
        let key = reader.bytes()?.to_vec();
        let hash = (kind & 2 == 0).then(|| reader.eight()).transpose()?;
        marks.push(Mark { is_content: kind & 1 != 0, key, hash });
    }
    let hash = quick_hash(&begin[..begin.len() - reader.0.len()]);
    let written = reader.eight()?;
    if hash != written || !reader.is_empty() {
        let what = "the hash of a step".to_owned();
        return Err(Malformed::Part { what, reason: "it is that of other records".to_owned() });
    }
    let (stored, beat) = (flags & 1 != 0, flags & 2 != 0);
    Ok(Entry { quiet, step: Step { number, stored, beat, now, set_back_from, arrivals, marks, hash } })
}

fn read_arrivals(bytes: &[u8]) -> Result<Vec<Arrival<'_>>, Malformed> {
    let text = |bytes, what: &str| {
        std::str::from_utf8(bytes).map_err(|error| Malformed::Part { what: what.to_owned(), reason: error.to_string() })
    };
    let mut reader = Reader(bytes);
    let mut arrivals = Vec::new();
    while !reader.is_empty() {
        match reader.byte()? {
            mark @ (COMMAND | COMMAND_FOR_CALL) => {
                let actor: Actor = table::decode("an actor", reader.written()?)?;
                let name = text(reader.bytes()?, "a command's name")?;
                let form = if mark == COMMAND { Form::Plain } else { Form::ForCall };
                arrivals.push(Arrival::Command(Written { actor, name, told: None, form, bytes: reader.written()? }));
            }
            TOLD => {
                let words = text(reader.bytes()?, "what a tool call was told")?;
                let Some(Arrival::Command(command)) = arrivals.last_mut() else {
                    return Err(Malformed::Unknown { what: "command that was told", found: u64::from(TOLD) });
                };
                command.told = Some(words);
            }
            OUTCOME => arrivals.push(Arrival::Outcome(table::read_outcome(reader.written()?)?)),
            TIME => arrivals.push(Arrival::Time(reader.time()?)),
            BEAT => arrivals.push(Arrival::Beat),
            found => return Err(Malformed::Unknown { what: "arrival of the mark", found: u64::from(found) }),
        }
    }
    Ok(arrivals)
}
