//! What the turns of a rehearsal would cost, with an interval (docs/rehearsal.md, The forecast).

use super::history::Costs;

/// The part of cases that an interval holds.
pub const INTERVAL: f64 = 0.8;
/// Standard deviations of a normal error to either side for that.
const DEVIATIONS: f64 = 1.281_551_565_544_6;
/// The deviation of an agent without history, as a part of its cost.
const UNKNOWN: f64 = 0.75;

/// A sum of money that is not certain: an expected value and a variance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    /// What is expected, in dollars.
    pub usd: f64,
    /// Its variance.
    pub variance: f64,
}

impl Forecast {
    /// `turns` turns of an agent whose turns cost so much so far. `None` when it has no history.
    pub fn from_history(costs: Costs, turns: u64) -> Option<Self> {
        if costs.count == 0 {
            return None;
        }
        let (turns, count) = (turns as f64, costs.count as f64);
        let variance = costs.variance() * (turns + turns * turns / count);
        Some(Self { usd: turns * costs.mean, variance })
    }

    /// What it cost in the rehearsal, where nothing better is known.
    pub fn from_estimate(usd: f64) -> Self {
        Self { usd, variance: (UNKNOWN * usd).powi(2) }
    }

    /// Both together; their errors have nothing to do with each other.
    pub fn plus(self, other: Self) -> Self {
        Self { usd: self.usd + other.usd, variance: self.variance + other.variance }
    }

    /// The ends of the interval.
    pub fn interval(self) -> (f64, f64) {
        let side = DEVIATIONS * self.variance.max(0.0).sqrt();
        ((self.usd - side).max(0.0), self.usd + side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small deterministic generator of numbers from 0 to 1.
    fn rolls() -> impl FnMut() -> f64 {
        let mut state = 7_u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn the_interval_holds_about_the_part_it_says() {
        // Turns cost between 0 and 2 cents; 20 were seen, 100 will come.
        let mut roll = rolls();
        let mut held = 0;
        for _ in 0..2_000 {
            let mut costs = Costs::default();
            (0..20).for_each(|_| costs.add(0.02 * roll()));
            let (low, high) = Forecast::from_history(costs, 100).unwrap().interval();
            let real: f64 = (0..100).map(|_| 0.02 * roll()).sum();
            held += usize::from((low..=high).contains(&real));
        }
        assert!((1_500..=1_700).contains(&held), "{held} of 2,000");
    }

    #[test]
    fn no_turns_cost_nothing_and_no_history_is_no_forecast() {
        let mut costs = Costs::default();
        assert_eq!(Forecast::from_history(costs, 5), None);
        costs.add(1.0);
        assert_eq!(Forecast::from_history(costs, 0).unwrap().interval(), (0.0, 0.0));
        let (low, high) = Forecast::from_estimate(10.0).interval();
        assert!(low > 0.0 && low < 10.0 && high > 10.0 && high < 20.0, "{low} {high}");
    }

    #[test]
    fn variances_add() {
        let both = Forecast::from_estimate(3.0).plus(Forecast::from_estimate(4.0));
        assert!((both.usd - 7.0).abs() < 1e-9);
        assert!((both.variance - (UNKNOWN * 5.0).powi(2)).abs() < 1e-9);
    }
}
