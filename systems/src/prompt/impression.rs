//! A turn of an experiment ends, and someone says what they think of it.

use agentsvc_components::prompt::{
    ExperimentStatus, Feedback, PromptExperiment, PromptExperimentId, PromptImpression, PromptImpressionId,
    PromptVariantId, TurnVariant, VariantTotals,
};
use agentsvc_components::turn::trace::{StepKind, StepStatus, TraceStep};
use agentsvc_components::turn::{Turn, TurnEnd};
use agentsvc_components::{Refusal, RefusalKind, SessionId, TurnId};
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use super::index::{Experiments, Impressions};
use super::list::PromptExperimentView;
use super::{error_codes, limits};
use crate::agent::holder_of;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, state};
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;

/// A turn ends; `has_text` says whether its answer has text. In the same step its variant counts it, so no turn counts twice
/// or never.
pub(crate) fn turn_ended(world: &mut World, entity: Entity, end: TurnEnd, has_text: bool) {
    let Some(turn) = world.get::<Turn>(entity) else { return };
    let Some(journal) = &turn.journal else { return };
    let Some(TurnVariant { experiment: id, variant }) = journal.variant else { return };
    let Some(at) = world.resource::<Experiments>().get(id) else { return };
    let Some(experiment) = world.get::<PromptExperiment>(at) else { return };
    if experiment.status == ExperimentStatus::Completed || experiment.variant(variant).is_none() {
        return;
    }
    let (criteria, now) = (experiment.criteria, world.resource::<Now>().0);
    let is_failed = |step: &TraceStep| step.kind == StepKind::Tool && step.status != StepStatus::Ok;
    let met = end == TurnEnd::Done
        && (has_text || !criteria.require_non_empty)
        && !(criteria.require_no_tool_errors && journal.steps.iter().any(is_failed));
    let began = journal.steps.iter().map(|step| step.started_at).min().unwrap_or(turn.called_at);
    let (cost, latency_ms, won) = (turn.usage.cost, now.ms_since(began), criteria.is_win(met, None));
    let holder = Some(holder_of(world, turn.agent));
    let (turn, session) = (PromptImpressionId(id_of::<TurnId>(world, entity).0), id_of(world, turn.session));
    change_totals(world, at, variant, |totals| {
        totals.impressions += 1;
        totals.wins += u64::from(won);
        totals.succeeded += u64::from(end == TurnEnd::Done);
        totals.failed += u64::from(end == TurnEnd::Failed);
        totals.cost = totals.cost.plus(cost);
        totals.latency_ms = totals.latency_ms.saturating_add(latency_ms);
    });
    let impression = PromptImpression { experiment: id, variant, session, at: now, met, won, feedback: None, holder };
    let entity = world.spawn((turn, impression)).id();
    world.mark(entity);
    trim(world, id);
}

fn change_totals(world: &mut World, at: Entity, variant: PromptVariantId, with: impl FnOnce(&mut VariantTotals)) {
    change(world, at, |experiment: &mut PromptExperiment| {
        let found = experiment.variants.iter_mut().find(|other| other.id == variant);
        if let Some(variant) = found {
            with(&mut variant.totals);
        }
    });
}

/// One comes, so at most one goes of each.
fn trim(world: &mut World, experiment: PromptExperimentId) {
    let kept = world.resource::<Impressions>();
    let of_this = kept.beyond(experiment, limits::EXPERIMENT_IMPRESSIONS_KEPT_MAX);
    let is_over = kept.len() - usize::from(of_this.is_some()) > limits::PROMPT_IMPRESSIONS_KEPT_MAX;
    let of_all = if is_over { kept.first_of_most() } else { None };
    for id in of_this.into_iter().chain(of_all) {
        remove(world, id);
    }
}

fn remove(world: &mut World, id: PromptImpressionId) {
    if let Some(entity) = world.resource::<Impressions>().get(id) {
        world.despawn(entity);
    }
}

/// The turns of an experiment take no feedback any more.
pub(super) fn forget(world: &mut World, experiment: PromptExperimentId) {
    for id in world.resource::<Impressions>().of(experiment) {
        remove(world, id);
    }
}

/// Says whether a turn of an experiment helped. The last word on a turn counts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct GivePromptFeedback {
    /// Of which experiment.
    pub experiment: PromptExperimentId,
    /// Of which turn; `None` is the newest one of `session`.
    pub turn: Option<TurnId>,
    /// Of which session.
    pub session: Option<SessionId>,
    /// What is said.
    pub feedback: Feedback,
}

/// A turn with what was said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptImpressionView {
    /// The turn.
    pub turn: TurnId,
    /// Its state.
    pub impression: PromptImpression,
}

command! {
    write "give_prompt_feedback" GivePromptFeedback => PromptImpressionView, Id(|it| it.experiment.0), |it, world|
        Answer::stored(give(world, it))
}

fn give(world: &mut World, command: GivePromptFeedback) -> Result<PromptImpressionView, Refusal> {
    let GivePromptFeedback { experiment: of, turn, session, feedback } = command;
    let experiment = PromptExperimentView::seen(world, of)?.experiment;
    if experiment.status == ExperimentStatus::Completed {
        let text = "the experiment is completed; it takes no feedback";
        return Err(Refusal::of(error_codes::PROMPT_EXPERIMENT_STATUS, text));
    }
    if feedback.score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
        return Err(Refusal::bad_field("score", "score must be 0 to 1"));
    }
    let kept = world.resource::<Impressions>();
    let is_of = |id: &PromptImpressionId| state::<PromptImpression>(world, *id).is_some_and(|it| it.experiment == of);
    let found = match (turn, session) {
        (Some(turn), _) => Some(PromptImpressionId(turn.0)).filter(is_of),
        (None, Some(session)) => kept.in_session(session).find(is_of),
        (None, None) => return Err(Refusal::bad_field("turn_id", "turn_id or session_id is missing")),
    };
    let found = found.and_then(|id| Some((id, kept.get(id)?, state::<PromptImpression>(world, id)?.clone())));
    let of_all = world.resource::<Experiments>().get(of);
    let (Some((id, entity, before)), Some(at)) = (found, of_all) else {
        let what = turn.map_or_else(|| "the session has no turn".to_owned(), |turn| format!("turn not found: {turn}"));
        let text = format!("{what} in this experiment that takes feedback");
        return Err(Refusal::new(RefusalKind::NotFound, text));
    };
    let won = experiment.criteria.is_win(before.met, Some(feedback));
    let impression = PromptImpression { won, feedback: Some(feedback), ..before.clone() };
    let after = impression.clone();
    change(world, entity, |impression: &mut PromptImpression| *impression = after);
    change_totals(world, at, before.variant, |totals| {
        totals.wins = (totals.wins + u64::from(won)).saturating_sub(u64::from(before.won));
        totals.rated += u64::from(before.feedback.is_none());
    });
    Ok(PromptImpressionView { turn: TurnId(id.0), impression })
}
