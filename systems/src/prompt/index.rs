//! Where versions and experiments are found: by agent; and impressions: by experiment and by session.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::prompt::{
    ExperimentStatus, PromptExperiment, PromptExperimentId, PromptImpression, PromptImpressionId, PromptVersion,
    PromptVersionId,
};
use agentsvc_components::{AgentId, Refusal, SessionId};
use bevy_ecs::prelude::World;
use uuid::Uuid;

use super::{error_codes, limits};
use crate::agent::{is_limited, reaches_of};
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Mirrored, Places, Put, indexed, put_under, state};
use crate::kernel::index;
use crate::kernel::kept::Kept;
use crate::kernel::quota::Quota;
use crate::kernel::share::Shares;

/// Every version.
pub(super) type Versions = Entities<PromptVersion>;
/// Every experiment.
pub(super) type Experiments = Entities<PromptExperiment>;
/// Every impression that takes feedback.
pub(super) type Impressions = Entities<PromptImpression>;

indexed!(PromptVersion: VersionPlaces, "prompt version", is_limited => is_known_version);
indexed!(PromptExperiment: ExperimentPlaces, "prompt experiment", is_limited => is_known_experiment);
indexed!(PromptImpression: ImpressionPlaces, "prompt impression");

fn is_known_version(world: &World, version: &PromptVersion) -> bool {
    reaches_of(world, Some(version.agent))
}

fn is_known_experiment(world: &World, experiment: &PromptExperiment) -> bool {
    reaches_of(world, Some(experiment.agent))
}

/// What versions may take.
pub(super) const VERSIONS: Quota = Quota {
    count: limits::PROMPT_VERSIONS_MAX,
    bytes: limits::PROMPT_VERSIONS_BYTES_MAX,
    what: "prompt versions",
    code: error_codes::PROMPT_VERSIONS_FULL,
};

/// What those of one agent may take.
pub(super) const AGENT_VERSIONS: Quota = Quota {
    count: limits::AGENT_PROMPT_VERSIONS_MAX,
    bytes: limits::AGENT_PROMPT_VERSIONS_BYTES_MAX,
    what: "prompt versions of this agent",
    code: error_codes::PROMPT_VERSIONS_FULL,
};

/// What experiments may take.
pub(super) const EXPERIMENTS: Quota = Quota {
    count: limits::PROMPT_EXPERIMENTS_MAX,
    bytes: limits::PROMPT_EXPERIMENTS_BYTES_MAX,
    what: "prompt experiments",
    code: error_codes::PROMPT_EXPERIMENTS_FULL,
};

/// What those of one agent may take.
pub(super) const AGENT_EXPERIMENTS: Quota = Quota {
    count: limits::AGENT_PROMPT_EXPERIMENTS_MAX,
    bytes: usize::MAX,
    what: "prompt experiments of this agent",
    code: error_codes::PROMPT_EXPERIMENTS_FULL,
};

/// Refuses everything where the configuration does not switch it on.
pub(super) fn check_enabled(world: &World) -> Result<(), Refusal> {
    if world.resource::<Settings>().prompt_intelligence {
        return Ok(());
    }
    let text = "prompt intelligence is disabled; set [prompt_intelligence] enabled = true in config.toml";
    Err(Refusal::of(error_codes::PROMPT_INTELLIGENCE_DISABLED, text))
}

/// Versions by agent.
#[derive(Debug, Default, PartialEq)]
pub struct VersionPlaces {
    of: BTreeSet<(AgentId, PromptVersionId)>,
    /// What each holder takes.
    pub(super) shares: Shares,
}

impl VersionPlaces {
    /// Those of an agent in the order of their numbers, from after `after` on.
    pub(super) fn of(
        &self,
        agent: AgentId,
        after: Option<PromptVersionId>,
    ) -> impl DoubleEndedIterator<Item = PromptVersionId> + '_ {
        use std::ops::Bound::{Excluded, Included};
        let first = after.map_or(Included((agent, PromptVersionId(Uuid::nil()))), |after| Excluded((agent, after)));
        self.of.range((first, Included((agent, PromptVersionId(Uuid::max()))))).map(|(_, id)| *id)
    }
}

impl Mirrored<PromptVersion> for VersionPlaces {
    fn place(&mut self, id: PromptVersionId, version: &PromptVersion, is_in: bool) {
        self.of.put((version.agent, id), is_in);
        self.shares.put(version.holder, 1, version.bytes(), is_in);
    }
}

/// Experiments by agent, and the one that runs.
#[derive(Debug, Default, PartialEq)]
pub struct ExperimentPlaces {
    of: BTreeSet<(AgentId, PromptExperimentId)>,
    running: BTreeMap<AgentId, PromptExperimentId>,
    /// What each holder takes.
    pub(super) shares: Shares,
}

impl ExperimentPlaces {
    /// Those of an agent in the order of their creation, from after `after` on.
    pub(super) fn of(
        &self,
        agent: AgentId,
        after: Option<PromptExperimentId>,
    ) -> impl Iterator<Item = PromptExperimentId> + '_ {
        use std::ops::Bound::{Excluded, Included};
        let first = after.map_or(Included((agent, PromptExperimentId(Uuid::nil()))), |after| Excluded((agent, after)));
        self.of.range((first, Included((agent, PromptExperimentId(Uuid::max()))))).map(|(_, id)| *id)
    }

    /// The one that runs.
    pub(super) fn running(&self, agent: AgentId) -> Option<PromptExperimentId> {
        self.running.get(&agent).copied()
    }

    /// How many run.
    pub(super) fn running_count(&self) -> usize {
        self.running.len()
    }
}

impl Places<PromptExperiment> for ExperimentPlaces {
    fn insert(&mut self, id: PromptExperimentId, experiment: &PromptExperiment) {
        self.of.insert((experiment.agent, id));
        self.shares.add(experiment.holder, 1, experiment.bytes());
        if experiment.status == ExperimentStatus::Running {
            self.running.insert(experiment.agent, id);
        }
    }

    fn remove(&mut self, id: PromptExperimentId, experiment: &PromptExperiment) {
        self.of.remove(&(experiment.agent, id));
        self.shares.remove(experiment.holder, 1, experiment.bytes());
        if self.running.get(&experiment.agent) == Some(&id) {
            self.running.remove(&experiment.agent);
        }
    }
}

/// Impressions by experiment and by session.
#[derive(Debug, Default, PartialEq)]
pub struct ImpressionPlaces {
    of: BTreeMap<PromptExperimentId, BTreeSet<PromptImpressionId>>,
    in_session: BTreeSet<(SessionId, PromptImpressionId)>,
    /// By whose share they take.
    kept: Kept<PromptImpressionId>,
}

impl ImpressionPlaces {
    /// Those of an experiment, the oldest turn first.
    pub(super) fn of(&self, experiment: PromptExperimentId) -> Vec<PromptImpressionId> {
        self.of.get(&experiment).into_iter().flatten().copied().collect()
    }

    /// The one of the oldest turn of an experiment, where there are more than `most`.
    pub(super) fn beyond(&self, experiment: PromptExperimentId, most: usize) -> Option<PromptImpressionId> {
        self.of.get(&experiment).filter(|all| all.len() > most)?.first().copied()
    }

    /// The one that goes where there are too many of all: of the holder that has most, the one that ended first.
    pub(super) fn first_of_most(&self) -> Option<PromptImpressionId> {
        self.kept.by_count().next()
    }

    /// Those of a session, the newest turn first.
    pub(super) fn in_session(&self, session: SessionId) -> impl Iterator<Item = PromptImpressionId> + '_ {
        let all = (session, PromptImpressionId(Uuid::nil()))..=(session, PromptImpressionId(Uuid::max()));
        self.in_session.range(all).rev().map(|(_, id)| *id)
    }
}

impl Mirrored<PromptImpression> for ImpressionPlaces {
    fn place(&mut self, id: PromptImpressionId, impression: &PromptImpression, is_in: bool) {
        put_under(&mut self.of, impression.experiment, id, is_in);
        self.in_session.put((impression.session, id), is_in);
        self.kept.put(impression.holder, impression.at, id, 0, is_in);
    }
}

/// Says which index is wrong, and what lacks its owner or does not add up ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<PromptVersion>(world, faults, |world, id, version, faults| {
        let has_agent = index::agent(world, version.agent).is_ok();
        faults.that(has_agent, || format!("prompt version {id}: its agent does not exist"));
    });
    VERSIONS.check(world.resource::<Versions>().used, faults);
    entities::check::<PromptExperiment>(world, faults, |world, id, experiment, faults| {
        let has_agent = index::agent(world, experiment.agent).is_ok();
        faults.that(has_agent, || format!("prompt experiment {id}: its agent does not exist"));
        let shares: u32 = experiment.variants.iter().map(|variant| u32::from(variant.share)).sum();
        faults.that(shares == 100, || format!("prompt experiment {id}: the shares sum to {shares}"));
        let is_over = experiment.status == ExperimentStatus::Completed;
        faults.that(is_over == experiment.ended_at.is_some(), || format!("prompt experiment {id}: {experiment:?}"));
        for variant in &experiment.variants {
            let has_version = is_over || state::<PromptVersion>(world, variant.version).is_some();
            faults.that(has_version, || format!("prompt experiment {id}: {}: no version", variant.name));
            let totals = variant.totals;
            let is_sum = totals.wins <= totals.impressions && totals.succeeded + totals.failed <= totals.impressions;
            faults.that(is_sum, || format!("prompt experiment {id}: {totals:?}"));
        }
    });
    EXPERIMENTS.check(world.resource::<Experiments>().used, faults);
    entities::check::<PromptImpression>(world, faults, |world, id, impression, faults| {
        let experiment = state::<PromptExperiment>(world, impression.experiment);
        let is_open = experiment.is_some_and(|experiment| {
            experiment.status != ExperimentStatus::Completed && experiment.variant(impression.variant).is_some()
        });
        faults.that(is_open, || format!("prompt impression {id}: no open experiment"));
    });
}
