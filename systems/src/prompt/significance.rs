//! Is the difference between variants more than chance explains?
//!
//! Each variant is compared with the first by a two-proportion z-test: pooled, two-sided, on wins out of impressions. With
//! more than two variants there are several tests, and their p-values are multiplied by their number (Bonferroni). The test
//! is an approximation for large numbers. Where they are small, it says so instead of a p-value.

use agentsvc_components::prompt::{PromptExperiment, PromptVariantId, VariantTotals};

/// The name of the test.
pub const TEST: &str = "two-proportion z-test, pooled, two-sided, Bonferroni-corrected";
/// The p-value below which a difference counts as significant.
pub const ALPHA: f64 = 0.05;
/// Impressions that each variant needs.
pub const IMPRESSIONS_MIN: u64 = 30;
/// Wins, and impressions without a win, that each variant needs to be expected if all were equally good.
pub const EXPECTED_MIN: f64 = 5.0;

/// What the figures of an experiment show.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparisons {
    /// The first variant, with which the others are compared.
    pub control: PromptVariantId,
    /// One for each other variant.
    pub of: Vec<Comparison>,
    /// The variant that did significantly better than the first, of several the one with the best win rate; the first, where
    /// it did significantly better than all others.
    pub winner: Option<PromptVariantId>,
}

/// A variant beside the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Which.
    pub variant: PromptVariantId,
    /// Its win rate less that of the first; `None` while one of them has no impressions.
    pub difference: Option<f64>,
    /// What the test gives, or why it says nothing.
    pub outcome: Result<Tested, String>,
}

/// What the test gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// The z-score.
    pub z: f64,
    /// The p-value, corrected for the number of tests.
    pub p_value: f64,
    /// The p-value is below [`ALPHA`].
    pub is_significant: bool,
}

/// Wins of impressions.
#[expect(clippy::cast_precision_loss, reason = "turns are fewer than 2^52")]
fn rate(totals: &VariantTotals) -> Option<f64> {
    (totals.impressions > 0).then(|| totals.wins as f64 / totals.impressions as f64)
}

/// Compares the variants of an experiment.
#[must_use]
pub fn compare(experiment: &PromptExperiment) -> Comparisons {
    let Some((control, others)) = experiment.variants.split_first() else {
        return Comparisons { control: PromptVariantId(uuid::Uuid::nil()), of: Vec::new(), winner: None };
    };
    let base = rate(&control.totals);
    let of: Vec<_> = others
        .iter()
        .map(|variant| Comparison {
            variant: variant.id,
            difference: rate(&variant.totals).zip(base).map(|(rate, base)| rate - base),
            outcome: test(&control.totals, &variant.totals, others.len()),
        })
        .collect();
    let significant = |wanted: fn(f64) -> bool| {
        let found = of.iter().filter(|it| it.outcome.as_ref().is_ok_and(|it| it.is_significant));
        found.filter_map(move |it| Some((it.variant, it.difference.filter(|by| wanted(*by))?)))
    };
    let best = significant(|by| by > 0.0).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(variant, _)| variant);
    let is_control = !of.is_empty() && significant(|by| by < 0.0).count() == of.len();
    let winner = best.or_else(|| is_control.then_some(control.id));
    Comparisons { control: control.id, of, winner }
}

/// Tests two variants; one of so many `tests`.
#[expect(clippy::cast_precision_loss, reason = "turns are fewer than 2^52")]
fn test(one: &VariantTotals, other: &VariantTotals, tests: usize) -> Result<Tested, String> {
    let fewest = one.impressions.min(other.impressions);
    if fewest < IMPRESSIONS_MIN {
        return Err(format!("a variant has {fewest} impressions; the test needs {IMPRESSIONS_MIN}"));
    }
    let (n, m) = (one.impressions as f64, other.impressions as f64);
    let pooled = (one.wins + other.wins) as f64 / (n + m);
    let expected = n.min(m) * pooled.min(1.0 - pooled);
    if expected < EXPECTED_MIN {
        let text = format!(
            "{expected:.1} wins, or impressions without a win, are expected of a variant; the test needs {EXPECTED_MIN}"
        );
        return Err(text);
    }
    let error = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
    let z = (other.wins as f64 / m - one.wins as f64 / n) / error;
    let p_value = (libm::erfc(z.abs() / std::f64::consts::SQRT_2) * tests as f64).min(1.0);
    Ok(Tested { z, p_value, is_significant: p_value < ALPHA })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(wins: u64, impressions: u64) -> VariantTotals {
        VariantTotals { wins, impressions, ..VariantTotals::default() }
    }

    #[test]
    fn the_test_gives_the_values_of_the_textbook() {
        // R: prop.test(c(45, 30), c(100, 100), correct = FALSE) has X-squared = 4.8, p-value = 0.02846.
        let tested = test(&totals(30, 100), &totals(45, 100), 1).unwrap();
        assert!((tested.z * tested.z - 4.8).abs() < 1e-9, "{tested:?}");
        assert!((tested.p_value - 0.02846).abs() < 1e-5 && tested.is_significant, "{tested:?}");
        // The same with two tests is not.
        let tested = test(&totals(30, 100), &totals(45, 100), 2).unwrap();
        assert!((tested.p_value - 0.05692).abs() < 2e-5 && !tested.is_significant, "{tested:?}");
        let equal = test(&totals(50, 100), &totals(50, 100), 9).unwrap();
        assert_eq!((equal.z, equal.p_value, equal.is_significant), (0.0, 1.0, false));
    }

    #[test]
    fn small_numbers_give_no_p_value() {
        let why = test(&totals(0, 29), &totals(29, 1_000), 1).unwrap_err();
        assert!(why.contains("29 impressions"), "{why}");
        // Enough impressions, but hardly any wins, or hardly any without one.
        for wins in [0, 4, 96, 100] {
            let why = test(&totals(wins, 100), &totals(wins, 100), 1).unwrap_err();
            assert!(why.contains("are expected"), "{wins}: {why}");
        }
        assert!(test(&totals(5, 100), &totals(5, 100), 1).is_ok());
    }
}
