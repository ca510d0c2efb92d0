//! Money: whole millionths of a US dollar, so that sums are exact. Fractions of dollars are for people only.

use serde::{Deserialize, Serialize};

/// An amount in micro-dollars (1 USD = 1,000,000).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub u64);

impl Micros {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Is it nothing?
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or nothing where `other` is more.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// In dollars, for the API.
    #[must_use]
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1_000_000.0
    }

    /// An amount of dollars, to the nearest micro-dollar; what is more than nothing is one at least, for a limit of nothing
    /// is none. `None` when it is negative, not a number, or above 1,000,000,000,000 dollars.
    #[must_use]
    pub fn from_usd(usd: f64) -> Option<Self> {
        let least = u64::from(usd > 0.0);
        (0.0..=1e12).contains(&usd).then(|| Self(((usd * 1_000_000.0).round() as u64).max(least)))
    }
}

impl std::fmt::Display for Micros {
    /// In dollars, with as many digits behind the point as there are, at least two: `12.50`, `0.000125`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000);
        let kept = text.trim_end_matches('0').len().max(text.len() - 4);
        f.write_str(&text[..kept])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_and_shown() {
        assert_eq!(Micros::from_usd(0.1), Some(Micros(100_000)));
        assert_eq!([0.0, -0.0, 1e-9, 1.4e-6].map(Micros::from_usd), [0, 0, 1, 1].map(|micros| Some(Micros(micros))));
        assert_eq!([-1.0, f64::NAN, f64::INFINITY, 1e13].map(Micros::from_usd), [None; 4]);
        let shown = |micros| Micros(micros).to_string();
        assert_eq!([0, 125, 12_500_000, 1_000_000].map(shown), ["0.00", "0.000125", "12.50", "1.00"]);
    }
}
