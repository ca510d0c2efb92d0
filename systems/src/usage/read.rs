//! Usage is read (spec 3, Usage).

use bevy_ecs::prelude::World;

use agentsvc_components::Timestamp;
use agentsvc_components::usage::{Bucket, UsageSum};

use super::{Rollups, calendar};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, Command, Place, command};

/// Which time to sum up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageWindow {
    /// The last so many hours, to the minute for one hour and to the hour for more.
    Hours(u32),
    /// Whole days, counted from 1970-01-01; both ends included, an open one as far as there is anything.
    Days(Option<i64>, Option<i64>),
}

/// What a time used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageTotals {
    /// The sum.
    pub sum: UsageSum,
    /// Agents with a call in it; of whole days only those that the world still knows to be active since.
    pub active_agents: usize,
}

/// Sums up a time.
#[derive(Clone, Copy, Debug)]
pub struct GetUsage(pub UsageWindow);

command! {
    read "get_usage" GetUsage => UsageTotals, All, |it, world| {
        let now = world.resource::<Now>().0;
        let rollups = world.resource::<Rollups>();
        let add = |sum: UsageSum, (_, more): (&Bucket, &UsageSum)| sum.plus(*more);
        let totals = match it.0 {
            UsageWindow::Hours(hours) => {
                let since = now.plus_ms(-i64::from(hours) * calendar::HOUR_MS);
                let (first, last, since) = if hours <= 1 {
                    let minute = calendar::minute(since);
                    (Bucket::Minute(minute), Bucket::Minute(i64::MAX), Timestamp(minute * calendar::MINUTE_MS))
                } else {
                    let hour = calendar::hour(since);
                    (Bucket::Hour(hour), Bucket::Hour(i64::MAX), Timestamp(hour * calendar::HOUR_MS))
                };
                let sum = rollups.range(first, last).fold(UsageSum::default(), add);
                UsageTotals { sum, active_agents: rollups.active_since(since) }
            }
            UsageWindow::Days(from, to) => {
                let (first, last) = (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX));
                let sum = rollups.range(Bucket::Day(first), Bucket::Day(last)).fold(UsageSum::default(), add);
                let since = Timestamp(first.saturating_mul(calendar::DAY_MS));
                UsageTotals { sum, active_agents: rollups.active_since(since) }
            }
        };
        Answer::read(totals)
    }
}

/// Usage of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelUsage {
    /// Whose model.
    pub provider: Box<str>,
    /// Which.
    pub model: Box<str>,
    /// The sum.
    pub sum: UsageSum,
}

/// Reads what each model used, the dearest first: since ever, or on the days from one to another.
#[derive(Clone, Copy, Debug)]
pub struct ListUsageByModel {
    /// Since this day; `None` from the first.
    pub from: Option<i64>,
    /// Up to this day; `None` up to now.
    pub to: Option<i64>,
}

command! {
    read "list_usage_by_model" ListUsageByModel => Vec<ModelUsage>, All, |it, world| {
        let rollups = world.resource::<Rollups>();
        let mut models = std::collections::BTreeMap::<(Box<str>, Box<str>), UsageSum>::new();
        let mut add = |provider: &str, model: &str, sum: UsageSum| {
            let place = models.entry((provider.into(), model.into())).or_default();
            *place = place.plus(sum);
        };
        if it.from.is_none() && it.to.is_none() {
            for (bucket, sum) in rollups.models() {
                if let Bucket::Model(provider, model) = bucket {
                    add(provider, model, *sum);
                }
            }
        } else {
            let first = |day: i64| Bucket::ModelDay(day, "".into(), "".into());
            let last = it.to.map_or(i64::MAX, |day| day.saturating_add(1));
            for (bucket, sum) in rollups.range(first(it.from.unwrap_or(i64::MIN)), first(last)) {
                if let Bucket::ModelDay(_, provider, model) = bucket {
                    add(provider, model, *sum);
                }
            }
        }
        let mut listed: Vec<ModelUsage> =
            models.into_iter().map(|((provider, model), sum)| ModelUsage { provider, model, sum }).collect();
        listed.sort_by_key(|model| std::cmp::Reverse((model.sum.cost, model.sum.tokens())));
        Answer::read(listed)
    }
}

/// The range of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Days {
    /// The last so many, today included.
    Last(u32),
    /// From one to another, both included. Without a first one seven days up to the last, without a last one up to today.
    Range(Option<i64>, Option<i64>),
}

impl Days {
    /// The first and the last day.
    #[must_use]
    pub fn resolve(self, today: i64) -> (i64, i64) {
        match self {
            Self::Last(days) => (today - i64::from(days.max(1)) + 1, today),
            Self::Range(from, to) => {
                let to = to.unwrap_or_else(|| today.max(from.unwrap_or(today)));
                (from.unwrap_or(to - 6), to)
            }
        }
    }
}

/// One day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayUsage {
    /// Counted from 1970-01-01.
    pub day: i64,
    /// Its sum.
    pub sum: UsageSum,
}

/// The days that were asked for, the oldest first; those without usage too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DailyUsage {
    /// The days.
    pub days: Vec<DayUsage>,
}

/// Reads the usage of each day. The asker bounds how many.
#[derive(Clone, Copy, Debug)]
pub struct ListDailyUsage(pub Days);

impl Command for ListDailyUsage {
    type Reply = DailyUsage;
    const NAME: &'static str = "list_daily_usage";
    const WRITES: bool = false;
    const PLACE: Place<Self> = Place::All;

    fn run(self, world: &mut World) -> Answer<DailyUsage> {
        let today = calendar::day(world.resource::<Now>().0);
        let (from, to) = self.0.resolve(today);
        // A range that is open to the right may end anywhere; it is cut, not refused, where it has to be.
        let from = from.max(to - i64::from(agentsvc_components::kernel::limit::USAGE_DAYS_MAX) + 1);
        let rollups = world.resource::<Rollups>();
        let days = (from..=to).map(|day| DayUsage { day, sum: rollups.sum(&Bucket::Day(day)) }).collect();
        Answer::read(DailyUsage { days })
    }
}
