//! The figures of an experiment, as clients see them.

use agentsvc_components::prompt::{PromptExperiment, PromptExperimentId, PromptVariant};
use agentsvc_systems::prompt::significance::{ALPHA, Comparison, Comparisons, TEST, compare};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

/// The figures of a variant.
#[derive(Serialize, JsonSchema)]
struct VariantMetrics {
    variant_id: Uuid,
    variant_name: Box<str>,
    prompt_version_id: Uuid,
    /// Turns that ended.
    impressions: u64,
    /// Turns that met the success criteria.
    wins: u64,
    /// Wins of impressions, 0 to 1; null without impressions.
    win_rate: Option<f64>,
    /// Turns with feedback.
    rated: u64,
    /// The same as `impressions`.
    total_requests: u64,
    /// Turns with an answer.
    successful_requests: u64,
    /// Turns that failed. The rest was stopped.
    failed_requests: u64,
    /// Turns with an answer of those with an answer and those that failed; null without any.
    success_rate: Option<f64>,
    /// Mean time from the first model call to the end of a turn; null without impressions.
    avg_latency_ms: Option<f64>,
    /// Mean cost of a turn; null without impressions.
    avg_cost_usd: Option<f64>,
    total_cost_usd: f64,
}

#[expect(clippy::cast_precision_loss, reason = "turns and milliseconds are fewer than 2^52")]
fn ratio(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

impl From<&PromptVariant> for VariantMetrics {
    fn from(variant: &PromptVariant) -> Self {
        let totals = variant.totals;
        Self {
            variant_id: variant.id.0,
            variant_name: variant.name.clone(),
            prompt_version_id: variant.version.0,
            impressions: totals.impressions,
            wins: totals.wins,
            win_rate: ratio(totals.wins, totals.impressions),
            rated: totals.rated,
            total_requests: totals.impressions,
            successful_requests: totals.succeeded,
            failed_requests: totals.failed,
            success_rate: ratio(totals.succeeded, totals.succeeded + totals.failed),
            avg_latency_ms: ratio(totals.latency_ms, totals.impressions),
            avg_cost_usd: ratio(totals.cost.0, totals.impressions).map(|micros| micros / 1e6),
            total_cost_usd: totals.cost.usd(),
        }
    }
}

/// A variant beside the first one.
#[derive(Serialize, JsonSchema)]
struct ComparisonItem {
    variant_id: Uuid,
    /// Its win rate less that of the first variant; null while one of them has no impressions.
    difference: Option<f64>,
    /// `better`, `worse`, `no_difference`, or `not_enough_data`.
    verdict: &'static str,
    /// The z-score; null if there is not enough data.
    z: Option<f64>,
    /// The p-value, corrected for the number of comparisons; null if there is not enough data.
    p_value: Option<f64>,
    /// What is missing, if there is not enough data.
    reason: Option<String>,
}

impl From<Comparison> for ComparisonItem {
    fn from(of: Comparison) -> Self {
        let tested = of.outcome.as_ref().ok();
        let verdict = match tested {
            None => "not_enough_data",
            Some(tested) if !tested.is_significant => "no_difference",
            Some(tested) if tested.z > 0.0 => "better",
            Some(_) => "worse",
        };
        Self {
            variant_id: of.variant.0,
            difference: of.difference,
            verdict,
            z: tested.map(|tested| tested.z),
            p_value: tested.map(|tested| tested.p_value),
            reason: of.outcome.err(),
        }
    }
}

/// Whether differences are more than chance explains.
#[derive(Serialize, JsonSchema)]
struct Significance {
    /// The name of the test.
    test: &'static str,
    /// The p-value below which a difference counts.
    alpha: f64,
    /// The first variant, with which the others are compared.
    control_variant_id: Uuid,
    comparisons: Vec<ComparisonItem>,
    /// The variant that the figures show as better; null if they show none.
    winner_variant_id: Option<Uuid>,
    /// What the test assumes.
    note: &'static str,
}

/// What the test assumes.
const NOTE: &str = "The test takes each turn as independent. Turns of one session are not, so with few long sessions it is too \
    confident. It holds for one look at a time that you chose before. If you look often and stop at the first small p-value, \
    you are misled more often than alpha says.";

impl From<Comparisons> for Significance {
    fn from(of: Comparisons) -> Self {
        Self {
            test: TEST,
            alpha: ALPHA,
            control_variant_id: of.control.0,
            comparisons: of.of.into_iter().map(ComparisonItem::from).collect(),
            winner_variant_id: of.winner.map(|id| id.0),
            note: NOTE,
        }
    }
}

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
