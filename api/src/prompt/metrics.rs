//! The figures of an experiment, as clients see them.

use crate::http::shape::shape;
use agentsvc_components::prompt::{PromptExperiment, PromptExperimentId, PromptVariant};
use agentsvc_systems::prompt::significance::{ALPHA, Comparison, Comparisons, TEST, compare};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

shape! {
    /// The figures of a variant.
    struct VariantMetrics from variant: &PromptVariant {
        let totals = variant.totals;
    } {
        variant_id: Uuid = variant.id.0,
        variant_name: Box<str> = variant.name.clone(),
        prompt_version_id: Uuid = variant.version.0,
        /// Turns that ended.
        impressions: u64 = totals.impressions,
        /// Turns that met the success criteria.
        wins: u64 = totals.wins,
        /// Wins of impressions, 0 to 1; null without impressions.
        win_rate: Option<f64> = ratio(totals.wins, totals.impressions),
        /// Turns with feedback.
        rated: u64 = totals.rated,
        /// The same as `impressions`.
        total_requests: u64 = totals.impressions,
        /// Turns with an answer.
        successful_requests: u64 = totals.succeeded,
        /// Turns that failed. The rest was stopped.
        failed_requests: u64 = totals.failed,
        /// Turns with an answer of those with an answer and those that failed; null without any.
        success_rate: Option<f64> = ratio(totals.succeeded, totals.succeeded + totals.failed),
        /// Mean time from the first model call to the end of a turn; null without impressions.
        avg_latency_ms: Option<f64> = ratio(totals.latency_ms, totals.impressions),
        /// Mean cost of a turn; null without impressions.
        avg_cost_usd: Option<f64> = ratio(totals.cost.0, totals.impressions).map(|micros| micros / 1e6),
        total_cost_usd: f64 = totals.cost.usd(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "turns and milliseconds are fewer than 2^52")]
fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

shape! {
    /// A variant beside the first one.
    struct ComparisonItem from of: Comparison {
        let tested = of.outcome.as_ref().ok();
        let verdict = match tested {
            None => "not_enough_data",
            Some(tested) if !tested.is_significant => "no_difference",
            Some(tested) if tested.z > 0.0 => "better",
            Some(_) => "worse",
        };
    } {
        variant_id: Uuid = of.variant.0,
        /// Its win rate less that of the first variant; null while one of them has no impressions.
        difference: Option<f64> = of.difference,
        /// `better`, `worse`, `no_difference`, or `not_enough_data`.
        verdict: &'static str = verdict,
        /// The z-score; null if there is not enough data.
        z: Option<f64> = tested.map(|tested| tested.z),
        /// The p-value, corrected for the number of comparisons; null if there is not enough data.
        p_value: Option<f64> = tested.map(|tested| tested.p_value),
        /// What is missing, if there is not enough data.
        reason: Option<String> = of.outcome.err(),
    }
}

shape! {
    /// Whether differences are more than chance explains.
    struct Significance from of: Comparisons {
        /// The name of the test.
        test: &'static str = TEST,
        /// The p-value below which a difference counts.
        alpha: f64 = ALPHA,
        /// The first variant, with which the others are compared.
        control_variant_id: Uuid = of.control.0,
        comparisons: Vec<ComparisonItem> = of.of.into_iter().map(ComparisonItem::from).collect(),
        /// The variant that the figures show as better; null if they show none.
        winner_variant_id: Option<Uuid> = of.winner.map(|id| id.0),
        /// What the test assumes.
        note: &'static str = NOTE,
    }
}

/// What the test assumes.
const NOTE: &str = "The test takes each turn as independent. Turns of one session are not, so with few long sessions it is too \
    confident. It holds for one look at a time that you chose before. If you look often and stop at the first small p-value, \
    you are misled more often than alpha says.";

/// The figures of an experiment.
#[derive(Serialize, JsonSchema)]
pub(super) struct Metrics {
    experiment_id: Uuid,
    /// `draft`, `running`, `paused` or `completed`.
    status: &'static str,
    /// One for each variant, in their order.
    metrics: Vec<VariantMetrics>,
    significance: Significance,
}

impl Metrics {
    pub(super) fn of(id: PromptExperimentId, experiment: &PromptExperiment) -> Self {
        Self {
            experiment_id: id.0,
            status: experiment.status.as_str(),
            metrics: experiment.variants.iter().map(VariantMetrics::from).collect(),
            significance: compare(experiment).into(),
        }
    }
}
