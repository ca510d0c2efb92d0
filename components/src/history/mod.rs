//! What happened in the whole installation, minute by minute.
//!
//! There are no such sums of single agents or users: their number has no bound, and each would be a record in every minute.
//! What an agent or a user spent is in the [usage](crate::usage), and what one did in its traces and events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::effect::Effect;
use crate::kernel::money::Micros;
use crate::kernel::record::is_default;
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "history", uses: &[] };

/// The longest duration that is told from longer ones, in milliseconds: 24 days.
const DURATION_MS_MAX: u64 = 1 << 31;

/// What happened in some time. Field names are short in records, because there is one for each minute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    /// Turns that gave an answer.
    #[serde(rename = "d", skip_serializing_if = "is_default")]
    pub turns_completed: u64,
    /// Turns that ended in an error.
    #[serde(rename = "f", skip_serializing_if = "is_default")]
    pub turns_failed: u64,
    /// Turns that were stopped.
    #[serde(rename = "s", skip_serializing_if = "is_default")]
    pub turns_stopped: u64,
    /// Turns that were interrupted.
    #[serde(rename = "b", skip_serializing_if = "is_default")]
    pub turns_interrupted: u64,
    /// Milliseconds from the message to the end, of all turns that ended.
    #[serde(rename = "ms", skip_serializing_if = "is_default")]
    pub turn_ms: u64,
    /// How many turns lasted how long, by [`duration_bucket`].
    #[serde(rename = "l", skip_serializing_if = "is_default")]
    pub turn_durations: BTreeMap<u8, u64>,
    /// Model calls that ended.
    #[serde(rename = "c", skip_serializing_if = "is_default")]
    pub model_calls: u64,
    /// Those of them that failed, or whose end is not known.
    #[serde(rename = "cf", skip_serializing_if = "is_default")]
    pub model_calls_failed: u64,
    /// Tokens of prompts.
    #[serde(rename = "i", skip_serializing_if = "is_default")]
    pub input_tokens: u64,
    /// Tokens of answers.
    #[serde(rename = "o", skip_serializing_if = "is_default")]
    pub output_tokens: u64,
    /// What the model calls cost.
    #[serde(rename = "m", skip_serializing_if = "is_default")]
    pub cost: Micros,
    /// Tool calls that ended.
    #[serde(rename = "t", skip_serializing_if = "is_default")]
    pub tool_calls: u64,
    /// Those of them that gave an error or were refused, or whose end is not known.
    #[serde(rename = "tf", skip_serializing_if = "is_default")]
    pub tool_calls_failed: u64,
    /// Messages of clients of the API and the page.
    #[serde(rename = "pc", skip_serializing_if = "is_default")]
    pub client_messages: u64,
    /// Messages of chats.
    #[serde(rename = "ph", skip_serializing_if = "is_default")]
    pub chat_messages: u64,
    /// Messages of other agents, here or elsewhere.
    #[serde(rename = "pa", skip_serializing_if = "is_default")]
    pub agent_messages: u64,
    /// Messages of schedules, triggers, workflows, hooks and the daemon itself.
    #[serde(rename = "px", skip_serializing_if = "is_default")]
    pub automatic_messages: u64,
    /// The most turns that waited for a slot of their provider at the end of a step.
    #[serde(rename = "w", skip_serializing_if = "is_default")]
    pub turns_waiting_max: u64,
}

impl Activity {
    /// Turns that ended, however.
    #[must_use]
    pub const fn turns(&self) -> u64 {
        self.turns_completed
            .saturating_add(self.turns_failed)
            .saturating_add(self.turns_stopped)
            .saturating_add(self.turns_interrupted)
    }

    /// Adds what happened in another time.
    pub fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.turns_completed, other.turns_completed),
            (&mut self.turns_failed, other.turns_failed),
            (&mut self.turns_stopped, other.turns_stopped),
            (&mut self.turns_interrupted, other.turns_interrupted),
            (&mut self.turn_ms, other.turn_ms),
            (&mut self.model_calls, other.model_calls),
            (&mut self.model_calls_failed, other.model_calls_failed),
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.tool_calls, other.tool_calls),
            (&mut self.tool_calls_failed, other.tool_calls_failed),
            (&mut self.client_messages, other.client_messages),
            (&mut self.chat_messages, other.chat_messages),
            (&mut self.agent_messages, other.agent_messages),
            (&mut self.automatic_messages, other.automatic_messages),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        for (bucket, count) in &other.turn_durations {
            let place = self.turn_durations.entry(*bucket).or_default();
            *place = place.saturating_add(*count);
        }
        self.cost = self.cost.plus(other.cost);
        self.turns_waiting_max = self.turns_waiting_max.max(other.turns_waiting_max);
    }

    /// A turn ended that lasted so long.
    pub fn lasted(&mut self, ms: u64) {
        self.turn_ms = self.turn_ms.saturating_add(ms);
        let place = self.turn_durations.entry(duration_bucket(ms)).or_default();
        *place = place.saturating_add(1);
    }

    /// The duration that `percent` of the turns did not exceed, to within a tenth; `None` where none ended.
    #[must_use]
    pub fn duration_ms_at(&self, percent: u64) -> Option<u64> {
        let all: u64 = self.turn_durations.values().sum();
        let rank = all.saturating_mul(percent).div_ceil(100).max(1);
        let mut below = 0;
        let reaches = |(_, count): &(&u8, &u64)| {
            below += **count;
            below >= rank
        };
        self.turn_durations.iter().find(reaches).map(|(bucket, _)| duration_of(*bucket))
    }
}

/// The place of a duration: four in each doubling.
fn duration_bucket(ms: u64) -> u8 {
    // The logarithm of the fourth power is four times that of the duration.
    let fourth_power = u128::from(ms.clamp(1, DURATION_MS_MAX)).pow(4);
    u8::try_from(fourth_power.ilog2()).unwrap_or(u8::MAX)
}

/// The middle of a place: no duration in it is farther away than a tenth.
fn duration_of(bucket: u8) -> u64 {
    ((f64::from(bucket) + 0.5) / 4.0).exp2().round() as u64
}

/// One minute of the hour that is under way: its key has the minute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinuteRecord {
    /// The number of its hour, see [`HourRecord`].
    #[serde(rename = "n")]
    pub number: u64,
    /// What happened.
    #[serde(rename = "a")]
    pub activity: Activity,
}

/// An hour that is over: its key has the hour, and a number that grows from hour to hour. A clock that is set back leads to two
/// rows of one hour, never to one that takes the place of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HourRecord {
    /// The minutes in which something happened, counted from the beginning of the hour.
    #[serde(rename = "m")]
    pub minutes: BTreeMap<u8, Activity>,
}

/// Erase the hours that are older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepHistory(pub Timestamp);

impl Effect for SweepHistory {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_to_within_a_tenth() {
        for ms in (0..2_000).chain((1..2_000).map(|n| n * 104_729)) {
            let told = duration_of(duration_bucket(ms));
            assert!(told.abs_diff(ms) <= ms / 10 + 1, "{ms} is told as {told}");
        }
        assert_eq!(duration_bucket(u64::MAX), duration_bucket(DURATION_MS_MAX));
    }

    #[test]
    fn percentiles_of_a_sum_are_those_of_all_its_turns() {
        let mut fast = Activity::default();
        (0..95).for_each(|_| fast.lasted(100));
        let mut slow = Activity::default();
        (0..5).for_each(|_| slow.lasted(60_000));
        assert_eq!(fast.duration_ms_at(95), Some(duration_of(duration_bucket(100))));
        fast.add(&slow);
        let near = |told: Option<u64>, ms: u64| told.is_some_and(|told| told.abs_diff(ms) <= ms / 10);
        assert!(near(fast.duration_ms_at(95), 100) && near(fast.duration_ms_at(96), 60_000));
        assert_eq!(fast.turn_ms, 95 * 100 + 5 * 60_000);
        assert_eq!(Activity::default().duration_ms_at(95), None);
    }

    #[test]
    fn sums_add_and_the_longest_line_stays() {
        let one = Activity { turns_completed: 1, turns_waiting_max: 7, cost: Micros(5), ..Activity::default() };
        let mut sum = Activity { turns_failed: u64::MAX, turns_waiting_max: 3, ..Activity::default() };
        sum.add(&one);
        sum.add(&Activity { turns_failed: 1, ..one });
        assert_eq!((sum.turns_completed, sum.turns_failed, sum.turns_waiting_max), (2, u64::MAX, 7));
        assert_eq!((sum.cost, sum.turns()), (Micros(10), u64::MAX));
    }
}
