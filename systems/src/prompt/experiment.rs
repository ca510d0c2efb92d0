//! An experiment is made, started, paused, completed and deleted.
//!
//! | from              | by       | to        |
//! |-------------------|----------|-----------|
//! | (none)            | create   | draft     |
//! | draft, paused     | start    | running   |
//! | running           | pause    | paused    |
//! | running, paused   | complete | completed |
//! | all but running   | delete   | (none)    |

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::prompt::{
    ExperimentStatus, PromptExperiment, PromptExperimentId, PromptVariant, PromptVariantId, PromptVersion,
    PromptVersionId, SuccessCriteria, VariantTotals,
};
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::index::{AGENT_EXPERIMENTS, EXPERIMENTS, Experiments, Versions, check_enabled};
use super::list::PromptExperimentView;
use super::version::{activate, check_text, checked_name};
use super::{audit_kinds, error_codes, impression, limits, significance};
use crate::agent::{acting_holder, reached};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find, state};
use crate::kernel::id_generator::mint_for;
use crate::kernel::outbox::Emit;
use crate::kernel::quota::Used;

/// One prompt to compare.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewVariant {
    /// Its name; `None` is a letter.
    pub name: Option<String>,
    /// More about it, for people.
    pub description: String,
    /// Its prompt, a version of the same agent.
    pub version: Option<PromptVersionId>,
}

/// Makes an experiment; it does not run yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CreatePromptExperiment {
    /// Whose.
    pub agent: AgentId,
    /// Its name.
    pub name: String,
    /// What is compared.
    pub variants: Vec<NewVariant>,
    /// Percent of the sessions, for each variant; empty shares them out evenly.
    pub shares: Vec<u8>,
    /// When a turn counts as a win.
    pub criteria: SuccessCriteria,
}

command! {
    write "create_prompt_experiment" CreatePromptExperiment => PromptExperimentView, Id(|it| it.agent.0), |it, world|
        Answer::stored(create(world, it))
}

fn create(world: &mut World, command: CreatePromptExperiment) -> Result<PromptExperimentView, Refusal> {
    check_enabled(world)?;
    let owner = reached(world, command.agent)?;
    let name = checked_name("name", &command.name)?;
    if command.criteria.custom_min_score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
        return Err(Refusal::bad_field("custom_min_score", "custom_min_score must be 0 to 1"));
    }
    let shares = checked_shares(command.shares, command.variants.len())?;
    let mut variants = Vec::new();
    for (at, (variant, share)) in command.variants.into_iter().zip(shares).enumerate() {
        let variant = checked_variant(world, command.agent, at, variant, share)?;
        if variants.iter().any(|other: &PromptVariant| other.name == variant.name) {
            return Err(Refusal::bad_field("variants", format!("variants: two have the name {:?}", variant.name)));
        }
        variants.push(variant);
    }
    let mut experiment = PromptExperiment {
        agent: command.agent,
        name,
        status: ExperimentStatus::Draft,
        criteria: command.criteria,
        variants,
        created_at: world.resource::<Now>().0,
        started_at: None,
        ended_at: None,
        winner: None,
        holder: acting_holder(world),
    };
    let all = world.resource::<Experiments>();
    AGENT_EXPERIMENTS.admit(Used { count: all.of(command.agent, None).count(), bytes: 0 }, 1, 0)?;
    EXPERIMENTS.admit(all.used, 1, experiment.bytes())?;
    all.shares.admit(&EXPERIMENTS, experiment.holder, 1, experiment.bytes())?;
    let id: PromptExperimentId = mint_for(world, owner);
    for variant in &mut experiment.variants {
        variant.id = mint_for(world, owner);
    }
    let details = json!({ "name": experiment.name, "variants": experiment.variants.len() });
    note(world, audit_kinds::PROMPT_EXPERIMENT_CREATED, id, experiment.agent, details);
    let entity = world.spawn((id, experiment)).id();
    world.mark(entity);
    PromptExperimentView::seen(world, id)
}

fn checked_shares(shares: Vec<u8>, variants: usize) -> Result<Vec<u8>, Refusal> {
    let most = limits::PROMPT_VARIANTS_MAX;
    if !(2..=most).contains(&variants) {
        return Err(Refusal::bad_field("variants", format!("variants must be 2 to {most}")));
    }
    if shares.is_empty() {
        let (each, more) = (100 / variants, 100 % variants);
        let share = |at: usize| u8::try_from(each + usize::from(at < more)).unwrap_or(u8::MAX);
        return Ok((0..variants).map(share).collect());
    }
    let sum: u32 = shares.iter().map(|share| u32::from(*share)).sum();
    if shares.len() != variants || sum != 100 || shares.contains(&0) {
        let text = "traffic_split must have a number from 1 to 99 for each variant, 100 in all";
        return Err(Refusal::bad_field("traffic_split", text));
    }
    Ok(shares)
}

fn checked_variant(
    world: &World,
    agent: AgentId,
    at: usize,
    variant: NewVariant,
    share: u8,
) -> Result<PromptVariant, Refusal> {
    let missing = || Refusal::bad_field("prompt_version_id", "prompt_version_id is missing in a variant");
    let version = variant.version.ok_or_else(missing)?;
    if state::<PromptVersion>(world, version).is_none_or(|version| version.agent != agent) {
        let text = format!("prompt_version_id: the agent has no prompt version {version}");
        return Err(Refusal::bad_field("prompt_version_id", text));
    }
    check_text("description", &variant.description, limits::PROMPT_DESCRIPTION_BYTES_MAX)?;
    let letter = || char::from(b'A' + u8::try_from(at).unwrap_or_default()).to_string();
    Ok(PromptVariant {
        id: PromptVariantId(uuid::Uuid::nil()),
        name: checked_name("name", &variant.name.unwrap_or_else(letter))?,
        description: variant.description.into(),
        version,
        share,
        totals: VariantTotals::default(),
    })
}

/// Puts what became of an experiment on record.
fn note(world: &mut World, kind: AuditKind, id: PromptExperimentId, agent: AgentId, mut details: Value) {
    details["prompt_experiment"] = json!(id);
    world.audit(kind, agent, details);
}

/// The experiment, if it may be found and has one of these statuses.
fn in_status(
    world: &World,
    id: PromptExperimentId,
    from: &[ExperimentStatus],
    what: &str,
) -> Result<(Entity, PromptExperiment), Refusal> {
    let view = PromptExperimentView::seen(world, id)?;
    let status = view.experiment.status;
    if !from.contains(&status) {
        let text = format!("the experiment is {}; it cannot be {what}", status.as_str());
        return Err(Refusal::of(error_codes::PROMPT_EXPERIMENT_STATUS, text));
    }
    Ok((find::<PromptExperiment>(world, id)?, view.experiment))
}

/// Starts an experiment, or goes on with it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StartPromptExperiment(pub PromptExperimentId);

command! {
    write "start_prompt_experiment" StartPromptExperiment => PromptExperimentView, Id(|it| it.0.0), |it, world|
        Answer::stored(start(world, it.0))
}

fn start(world: &mut World, id: PromptExperimentId) -> Result<PromptExperimentView, Refusal> {
    let from = [ExperimentStatus::Draft, ExperimentStatus::Paused];
    let (entity, experiment) = in_status(world, id, &from, "started")?;
    if let Some(other) = world.resource::<Experiments>().running(experiment.agent) {
        let text = format!("the experiment {other} of this agent is running; pause or complete it first");
        return Err(Refusal::of(error_codes::PROMPT_EXPERIMENT_RUNNING, text));
    }
    let now = world.resource::<Now>().0;
    change(world, entity, |experiment: &mut PromptExperiment| {
        experiment.status = ExperimentStatus::Running;
        experiment.started_at.get_or_insert(now);
    });
    note(world, audit_kinds::PROMPT_EXPERIMENT_STARTED, id, experiment.agent, json!({}));
    PromptExperimentView::seen(world, id)
}

/// Pauses an experiment: sessions have the agent's own prompt from their next turn on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct PausePromptExperiment(pub PromptExperimentId);

command! {
    write "pause_prompt_experiment" PausePromptExperiment => PromptExperimentView, Id(|it| it.0.0), |it, world|
        Answer::stored(pause(world, it.0))
}

fn pause(world: &mut World, id: PromptExperimentId) -> Result<PromptExperimentView, Refusal> {
    let (entity, experiment) = in_status(world, id, &[ExperimentStatus::Running], "paused")?;
    change(world, entity, |experiment: &mut PromptExperiment| experiment.status = ExperimentStatus::Paused);
    note(world, audit_kinds::PROMPT_EXPERIMENT_PAUSED, id, experiment.agent, json!({}));
    PromptExperimentView::seen(world, id)
}

/// Ends an experiment and records its winner.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CompletePromptExperiment {
    /// Which.
    pub experiment: PromptExperimentId,
    /// The winner; `None` takes the one that the figures show, if they show one.
    pub winner: Option<PromptVariantId>,
    /// The agent has the winner's prompt from here on.
    pub activate: bool,
}

command! {
    write "complete_prompt_experiment" CompletePromptExperiment => PromptExperimentView, Id(|it| it.experiment.0),
    |it, world| Answer::stored(complete(world, it))
}

fn complete(world: &mut World, command: CompletePromptExperiment) -> Result<PromptExperimentView, Refusal> {
    let CompletePromptExperiment { experiment: id, winner, activate: activates } = command;
    let from = [ExperimentStatus::Running, ExperimentStatus::Paused];
    let (entity, experiment) = in_status(world, id, &from, "completed")?;
    let winner = match winner {
        Some(winner) => {
            let text = format!("winner_variant_id: the experiment has no variant {winner}");
            let found = experiment.variant(winner);
            Some(found.ok_or_else(|| Refusal::bad_field("winner_variant_id", text))?)
        }
        None => significance::compare(&experiment).winner.and_then(|id| experiment.variant(id)),
    };
    match winner {
        Some(winner) if activates => activate(world, winner.version)?,
        None if activates => {
            let text =
                "no variant did better than the first by more than chance explains; name one in winner_variant_id";
            return Err(Refusal::of(error_codes::PROMPT_EXPERIMENT_STATUS, text));
        }
        _ => {}
    }
    let (now, winner) = (world.resource::<Now>().0, winner.map(|winner| winner.id));
    change(world, entity, |experiment: &mut PromptExperiment| {
        experiment.status = ExperimentStatus::Completed;
        (experiment.ended_at, experiment.winner) = (Some(now), winner);
    });
    impression::forget(world, id);
    let details = json!({ "winner": winner, "activated": activates });
    note(world, audit_kinds::PROMPT_EXPERIMENT_COMPLETED, id, experiment.agent, details);
    PromptExperimentView::seen(world, id)
}

/// Deletes an experiment that is not running, with its figures.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DeletePromptExperiment(pub PromptExperimentId);

command! {
    write "delete_prompt_experiment" DeletePromptExperiment => (), Id(|it| it.0.0), |it, world|
        Answer::stored(delete(world, it.0))
}

fn delete(world: &mut World, id: PromptExperimentId) -> Result<(), Refusal> {
    let from = [ExperimentStatus::Draft, ExperimentStatus::Paused, ExperimentStatus::Completed];
    let (entity, experiment) = in_status(world, id, &from, "deleted; pause or complete it first")?;
    impression::forget(world, id);
    let details = json!({ "name": experiment.name });
    note(world, audit_kinds::PROMPT_EXPERIMENT_DELETED, id, experiment.agent, details);
    world.despawn(entity);
    Ok(())
}

/// The agent is gone, and its versions and experiments with it.
pub(super) fn agent_removed(world: &mut World, agent: AgentId) {
    let all = world.resource::<Experiments>();
    let experiments: Vec<_> = all.of(agent, None).filter_map(|id| Some((id, all.get(id)?))).collect();
    for (id, entity) in experiments {
        impression::forget(world, id);
        world.despawn(entity);
    }
    let all = world.resource::<Versions>();
    let versions: Vec<_> = all.of(agent, None).filter_map(|id| all.get(id)).collect();
    for entity in versions {
        world.despawn(entity);
    }
}
