//! What a replay tells.

use agentsvc_components::Timestamp;
use agentsvc_systems::replay::FieldDifference;
use serde::Serialize;
use serde_json::Value;

/// What came of it.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Every step did what the log says, and none is lost in between.
    pub equal: bool,
    /// The first step that was compared.
    pub from: u64,
    /// The newest step that was lived through.
    pub to: u64,
    /// The world's time then.
    pub at: Timestamp,
    /// SHA-256 over all records of the world then.
    pub world_hash: String,
    /// Records of the world then.
    pub records: u64,
    /// Steps that were compared.
    pub steps: u64,
    /// Of those with a number: they stored something.
    pub numbered: u64,
    /// Commands that were carried out.
    pub commands: u64,
    /// Outcomes that were taken in.
    pub outcomes: u64,
    /// Beats.
    pub beats: u64,
    /// The epochs that it went through.
    pub epochs: Vec<EpochReport>,
    /// Steps that did something else.
    pub differing: u64,
    /// The first of them.
    pub first_difference: Option<StepDifference>,
    /// Every record that a step left otherwise than the log says, in the order in which they first did; those beyond
    /// [`REPLAY_RECORDS_MAX`](agentsvc_components::kernel::limit::REPLAY_RECORDS_MAX) are left out.
    pub differing_records: Vec<DifferingRecord>,
    /// Numbered steps of the range that are in no epoch: what the log lost. See [`Seam::Lost`].
    pub lost_steps: u64,
    /// Why the range could not be lived through to its end.
    pub stopped: Option<String>,
    /// The step that was asked for.
    pub shown: Option<StepShown>,
}

/// One epoch.
#[derive(Debug, Serialize)]
pub struct EpochReport {
    /// The name of its directory.
    pub name: String,
    /// The release that ran it.
    pub release: String,
    /// The newest step before it.
    pub after: u64,
    /// How its log ends, when it ends within the range: `torn`, or why there is a gap.
    pub end: Option<String>,
    /// Its first rows are those that the epoch before ended with; `null` for the first one.
    pub continues: Option<bool>,
    /// Why they are not.
    pub seam: Option<Seam>,
    /// What its first step took in first, where it does not continue the one before: what began it.
    pub begun_by: Option<String>,
}

/// Where two epochs do not continue each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Seam {
    /// Another world took the place of the one before: a snapshot or a backup was restored. Steps are numbered on.
    OtherWorld,
    /// Steps were carried out and stored that the log does not have: its tail was lost, or it had a gap.
    Lost {
        /// The first of them.
        from: u64,
        /// The last.
        to: u64,
    },
    /// The numbers begin at an earlier step again: the store was repaired or is another one.
    Renumbered {
        /// The newest step that the new numbers know of.
        after: u64,
    },
}

/// A record that steps left otherwise than the log says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferingRecord {
    /// `world` or `content`.
    pub space: &'static str,
    /// The first byte of its key.
    pub kind: char,
    /// The rest of its key.
    pub id: String,
    /// The first step that left it otherwise.
    pub first: u64,
    /// How many did.
    pub steps: u64,
    /// The fields in which it differs at the end from what is stored; none when it does not differ any more. `null` when
    /// that is not known: a daemon has the store open, the replay ended before its newest step, or it is content of an
    /// epoch before the last.
    pub fields: Option<Vec<FieldDifference>>,
}

/// A step that did something else.
#[derive(Debug, Serialize)]
pub struct StepDifference {
    /// Its number; that of the newest before it when it stored nothing.
    pub step: u64,
    /// The number it got now, when that is another one.
    pub number_now: Option<u64>,
    /// The world's time.
    pub at: Timestamp,
    /// What it took in.
    pub inputs: Vec<String>,
    /// The records that differ.
    pub records: Vec<RecordDifference>,
}

/// A record that differs.
#[derive(Debug, Serialize)]
pub struct RecordDifference {
    /// `world` or `content`.
    pub space: &'static str,
    /// The first byte of its key: see the table of keys.
    pub kind: char,
    /// The rest of its key.
    pub id: String,
    /// `changed` is stored by both with another value, `missing` is in the log alone, `surplus` is in the replay alone.
    pub difference: &'static str,
    /// The fields that differ from the value of then, when the store still has it; else the fields that the replay
    /// changed.
    pub fields: Vec<FieldDifference>,
    /// Are they compared with the value of then?
    pub against_log: bool,
}

/// What a step did.
#[derive(Debug, Serialize)]
pub struct StepShown {
    /// Its number.
    pub step: u64,
    /// The world's time.
    pub at: Timestamp,
    /// What it took in, in order.
    pub inputs: Vec<String>,
    /// Quiet beats before it.
    pub quiet_beats: usize,
    /// What it stored.
    pub records: Vec<RecordShown>,
}

/// One record of a step.
#[derive(Debug, Serialize)]
pub struct RecordShown {
    /// `world` or `content`.
    pub space: &'static str,
    /// The first byte of its key.
    pub kind: char,
    /// The rest of its key.
    pub id: String,
    /// What it was; `null` when there was none, or when it is content from before the epoch.
    pub before: Value,
    /// What it is; `null` when it was removed.
    pub after: Value,
    /// The fields that changed.
    pub fields: Vec<FieldDifference>,
}
