//! Minutes, added up to steps of a minute, an hour or a day in UTC.

use agentsvc_components::Timestamp;
use agentsvc_components::enum_words;
use agentsvc_components::history::Activity;
use agentsvc_components::kernel::limit::HISTORY_STEPS_MAX;
use agentsvc_systems::history::Hour;

use crate::http::error::Error;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

enum_words! {
    /// How long a step is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) enum Step [parse] {
        /// A minute.
        Minute = "minute",
        /// An hour.
        #[default]
        Hour = "hour",
        /// A day in UTC.
        Day = "day",
    }
}

impl Step {
    const fn ms(self) -> i64 {
        match self {
            Self::Minute => MINUTE_MS,
            Self::Hour => HOUR_MS,
            Self::Day => 24 * HOUR_MS,
        }
    }
}

/// What happened in each step of a time.
pub(super) struct Series {
    step: Step,
    /// When the first step begins.
    from_ms: i64,
    /// One for each step.
    pub(super) points: Vec<Activity>,
}

impl Series {
    /// The steps that a time touches, without anything in them.
    ///
    /// # Errors
    /// 400 naming `step` when there are too many, and `to` when the time is empty.
    pub(super) fn new(from: Timestamp, to: Timestamp, step: Step) -> Result<Self, Error> {
        if to <= from {
            return Err(Error::bad_field("to", "to: must be after from"));
        }
        let (first, last) = (from.0.div_euclid(step.ms()), (to.0 - 1).div_euclid(step.ms()));
        let count = last - first + 1;
        if count > HISTORY_STEPS_MAX {
            let message = format!(
                "step: the range has {count} steps; an answer has at most {HISTORY_STEPS_MAX}: ask for a shorter range or longer steps"
            );
            return Err(Error::bad_field("step", message));
        }
        let points = vec![Activity::default(); usize::try_from(count).unwrap_or_default()];
        Ok(Self { step, from_ms: first * step.ms(), points })
    }

    /// When the step at a place begins.
    pub(super) fn begins(&self, at: usize) -> Timestamp {
        let passed = i64::try_from(at).unwrap_or(i64::MAX).saturating_mul(self.step.ms());
        Timestamp(self.from_ms.saturating_add(passed))
    }

    /// When the last step ends.
    fn ends(&self) -> Timestamp {
        self.begins(self.points.len())
    }

    /// The hours that the steps are in: the first, and the first behind them, counted from 1970.
    pub(super) fn hours(&self) -> (i64, i64) {
        let Timestamp(end) = self.ends();
        (self.from_ms.div_euclid(HOUR_MS), (end - 1).div_euclid(HOUR_MS) + 1)
    }

    /// Adds the minutes of an hour that are within the steps.
    pub(super) fn add(&mut self, hour: &Hour) {
        for (minute, activity) in &hour.record.minutes {
            let at = hour.hour.saturating_mul(HOUR_MS).saturating_add(i64::from(*minute) * MINUTE_MS);
            let place = at.saturating_sub(self.from_ms).div_euclid(self.step.ms());
            if let Some(point) = usize::try_from(place).ok().and_then(|place| self.points.get_mut(place)) {
                point.add(activity);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::history::HourRecord;

    use super::*;

    fn series(from: i64, to: i64, step: Step) -> Series {
        Series::new(Timestamp(from), Timestamp(to), step).unwrap()
    }

    fn hour(hour: i64, minutes: &[u8]) -> Hour {
        let one = |minute: &u8| (*minute, Activity { turns_completed: 1, ..Activity::default() });
        Hour { number: 1, hour, record: HourRecord { minutes: minutes.iter().map(one).collect() } }
    }

    fn turns(series: &Series) -> Vec<u64> {
        series.points.iter().map(Activity::turns).collect()
    }

    #[test]
    fn steps_are_whole_and_touch_the_range() {
        let day = series(24 * HOUR_MS + 1, 48 * HOUR_MS + 1, Step::Day);
        assert_eq!(
            (day.points.len(), day.begins(0), day.ends()),
            (2, Timestamp(24 * HOUR_MS), Timestamp(72 * HOUR_MS))
        );
        assert_eq!(day.hours(), (24, 72));
        let minute = series(HOUR_MS, HOUR_MS + 1, Step::Minute);
        assert_eq!((minute.points.len(), minute.hours()), (1, (1, 2)));
        assert_eq!(series(-1, 0, Step::Hour).hours(), (-1, 0));
    }

    #[test]
    fn minutes_add_up_in_their_steps_and_others_are_left_out() {
        let mut hours = series(HOUR_MS, 3 * HOUR_MS, Step::Hour);
        for it in [hour(0, &[59]), hour(1, &[0, 59]), hour(1, &[59]), hour(2, &[30]), hour(3, &[0])] {
            hours.add(&it);
        }
        assert_eq!(turns(&hours), [3, 1]);
        let mut minutes = series(HOUR_MS + 10 * MINUTE_MS, HOUR_MS + 12 * MINUTE_MS, Step::Minute);
        minutes.add(&hour(1, &[9, 10, 11, 12]));
        assert_eq!(turns(&minutes), [1, 1]);
    }

    #[test]
    fn what_is_wrong_names_its_field() {
        let refused = |from, to, step| Series::new(Timestamp(from), Timestamp(to), step).err().unwrap().to_string();
        assert!(refused(5, 5, Step::Hour).contains("to:"));
        assert!(refused(0, HISTORY_STEPS_MAX * MINUTE_MS + 1, Step::Minute).contains("1501 steps"));
        assert_eq!(series(0, HISTORY_STEPS_MAX * MINUTE_MS, Step::Minute).points.len(), 1_500);
    }
}
