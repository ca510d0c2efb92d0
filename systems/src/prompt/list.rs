//! Versions and experiments are read and listed.

use agentsvc_components::agent::Agent;
use agentsvc_components::prompt::{PromptExperiment, PromptExperimentId, PromptVersion, PromptVersionId};
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::{Entity, World};

use super::index::{Experiments, Versions, check_enabled};
use crate::agent::reached;
use crate::kernel::command::Place;
use crate::kernel::entities::{Indexed, List, View, ViewPage, find};
use crate::kernel::index::{self, id_of};

/// What the world knows of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptVersionView {
    /// Its id.
    pub id: PromptVersionId,
    /// Its state.
    pub version: PromptVersion,
    /// It was activated last, and the agent still has its text.
    pub is_active: bool,
}

/// The text of an agent's own prompt.
pub(super) fn own_prompt(world: &World, agent: AgentId) -> Option<&str> {
    let agent = world.get::<Agent>(index::agent(world, agent).ok()?)?;
    Some(&agent.manifest.manifest.system_prompt)
}

impl View for PromptVersionView {
    type Kind = PromptVersion;
    /// Those of this agent.
    type Filter = AgentId;
    const NAMES: [&'static str; 2] = ["get_prompt_version", "list_prompt_versions"];
    const PLACE: Place<List<Self>> = Place::Id(|list| list.filter.0);

    fn of(world: &World, at: Entity) -> Option<Self> {
        let version = world.get::<PromptVersion>(at)?.clone();
        let is_active = version.is_active && own_prompt(world, version.agent) == Some(&*version.system_prompt);
        Some(Self { id: id_of(world, at), version, is_active })
    }

    fn passes(&self, filter: &AgentId) -> bool {
        self.version.agent == *filter
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        check_enabled(world)?;
        reached(world, list.filter)?;
        Ok(list.counted(world, |after| world.resource::<Versions>().of(list.filter, after)))
    }

    fn seen(world: &World, id: PromptVersionId) -> Result<Self, Refusal> {
        check_enabled(world)?;
        let at = find::<PromptVersion>(world, id)?;
        Self::of(world, at).ok_or_else(|| Refusal::not_found(PromptVersion::NOUN, id))
    }
}

/// What the world knows of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptExperimentView {
    /// Its id.
    pub id: PromptExperimentId,
    /// Its state.
    pub experiment: PromptExperiment,
}

impl View for PromptExperimentView {
    type Kind = PromptExperiment;
    /// Those of this agent.
    type Filter = AgentId;
    const NAMES: [&'static str; 2] = ["get_prompt_experiment", "list_prompt_experiments"];
    const PLACE: Place<List<Self>> = Place::Id(|list| list.filter.0);

    fn of(world: &World, at: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, at), experiment: world.get::<PromptExperiment>(at)?.clone() })
    }

    fn passes(&self, filter: &AgentId) -> bool {
        self.experiment.agent == *filter
    }

    fn page(world: &World, list: &List<Self>) -> Result<ViewPage<Self>, Refusal> {
        check_enabled(world)?;
        reached(world, list.filter)?;
        Ok(list.counted(world, |after| world.resource::<Experiments>().of(list.filter, after)))
    }

    fn seen(world: &World, id: PromptExperimentId) -> Result<Self, Refusal> {
        check_enabled(world)?;
        let at = find::<PromptExperiment>(world, id)?;
        Self::of(world, at).ok_or_else(|| Refusal::not_found(PromptExperiment::NOUN, id))
    }
}
