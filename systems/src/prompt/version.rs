//! A version is saved, activated and deleted.

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::prompt::{ExperimentStatus, PromptExperiment, PromptVersion, PromptVersionId};
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::index::{AGENT_VERSIONS, Experiments, VERSIONS, Versions, check_enabled};
use super::list::{PromptVersionView, own_prompt};
use super::{audit_kinds, error_codes, limits};
use crate::agent::{acting_holder, reached, set_system_prompt};
use crate::audit::Audit;
use crate::kernel::acting::Acting;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::{View, change, find, state};
use crate::kernel::id_generator::mint_for;
use crate::kernel::outbox::Emit;
use crate::kernel::quota::Used;
use crate::kernel::text::check_length;

/// Saves a system prompt as the next version of an agent. The agent goes on with the prompt that it has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavePromptVersion {
    /// Whose.
    pub agent: AgentId,
    /// The text; `None` saves the one that the agent has.
    pub system_prompt: Option<String>,
    /// What changed, for people.
    pub description: String,
    /// The tools that it was written for, for people.
    pub tools: Vec<String>,
    /// The names of what people fill in, for people.
    pub variables: Vec<String>,
}

command! {
    write "save_prompt_version" SavePromptVersion => PromptVersionView, Id(|it| it.agent.0), |it, world|
        Answer::stored(save(world, it))
}

fn save(world: &mut World, command: SavePromptVersion) -> Result<PromptVersionView, Refusal> {
    check_enabled(world)?;
    let owner = reached(world, command.agent)?;
    let own = || own_prompt(world, command.agent).unwrap_or_default().to_owned();
    let system_prompt = command.system_prompt.unwrap_or_else(own);
    if system_prompt.trim().is_empty() {
        return Err(Refusal::bad_field("system_prompt", "system_prompt must not be empty"));
    }
    check_text("system_prompt", &system_prompt, limits::PROMPT_BYTES_MAX)?;
    check_text("description", &command.description, limits::PROMPT_DESCRIPTION_BYTES_MAX)?;
    let all = world.resource::<Versions>();
    let last = all.of(command.agent, None).next_back().and_then(|id| state::<PromptVersion>(world, id));
    let version = PromptVersion {
        agent: command.agent,
        version: last.map_or(1, |last| last.version.saturating_add(1)),
        content_hash: Sha256::digest(system_prompt.as_bytes()).into(),
        system_prompt: system_prompt.into(),
        description: command.description.into(),
        tools: words("tools", command.tools)?,
        variables: words("variables", command.variables)?,
        created_at: world.resource::<Now>().0,
        created_by: world.resource::<Acting>().0.to_string().into(),
        is_active: false,
        holder: acting_holder(world),
    };
    let mut used = Used::default();
    all.of(command.agent, None).filter_map(|id| state::<PromptVersion>(world, id)).for_each(|it| used.add(it.bytes()));
    AGENT_VERSIONS.admit(used, 1, version.bytes())?;
    VERSIONS.admit(all.used, 1, version.bytes())?;
    all.shares.admit(&VERSIONS, version.holder, 1, version.bytes())?;
    let id: PromptVersionId = mint_for(world, owner);
    note(world, audit_kinds::PROMPT_VERSION_SAVED, id, &version);
    let entity = world.spawn((id, version)).id();
    world.mark(entity);
    PromptVersionView::seen(world, id)
}

fn note(world: &mut World, kind: AuditKind, id: PromptVersionId, version: &PromptVersion) {
    world.audit(kind, version.agent, json!({ "prompt_version": id, "version": version.version }));
}

/// Refuses a text that is too long, or has NUL.
pub(super) fn check_text(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    check_length(field, text, most)?;
    if text.contains('\0') {
        return Err(Refusal::bad_field(field, format!("{field} must not contain NUL characters")));
    }
    Ok(())
}

/// A name as it is stored: on one line, without blanks around it.
pub(super) fn checked_name(field: &str, name: &str) -> Result<Box<str>, Refusal> {
    let (name, most) = (name.trim(), limits::PROMPT_NAME_BYTES_MAX);
    if name.is_empty() || name.len() > most || name.chars().any(char::is_control) {
        let text = format!("{field} must be one line of 1 to {most} bytes without control characters");
        return Err(Refusal::bad_field(field, text));
    }
    Ok(name.into())
}

fn words(field: &str, words: Vec<String>) -> Result<Vec<Box<str>>, Refusal> {
    let most = limits::PROMPT_WORDS_MAX;
    if words.len() > most {
        return Err(Refusal::bad_field(field, format!("{field} has more than {most} entries")));
    }
    words.iter().map(|word| checked_name(field, word)).collect()
}

/// Makes a version the system prompt of its agent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ActivatePromptVersion {
    /// Which.
    pub version: PromptVersionId,
    /// Refuse it (400) unless it is this agent's.
    pub agent: Option<AgentId>,
}

command! {
    write "activate_prompt_version" ActivatePromptVersion => PromptVersionView, Id(|it| it.version.0), |it, world|
        Answer::stored(activate_version(world, it))
}

fn activate_version(world: &mut World, command: ActivatePromptVersion) -> Result<PromptVersionView, Refusal> {
    check_enabled(world)?;
    let entity = find::<PromptVersion>(world, command.version)?;
    let owner = world.get::<PromptVersion>(entity).map(|version| version.agent);
    if command.agent.is_some() && command.agent != owner {
        return Err(Refusal::bad_field("agent_id", "agent_id: the version belongs to another agent"));
    }
    activate(world, command.version)?;
    PromptVersionView::seen(world, command.version)
}

/// The agent has the text of the version from here on.
pub(super) fn activate(world: &mut World, id: PromptVersionId) -> Result<(), Refusal> {
    let missing = || Refusal::not_found("prompt version", id);
    let version = state::<PromptVersion>(world, id).cloned().ok_or_else(missing)?;
    set_system_prompt(world, version.agent, &version.system_prompt)?;
    let all = world.resource::<Versions>();
    let marked = all
        .of(version.agent, None)
        .filter(|other| state::<PromptVersion>(world, *other).is_some_and(|it| it.is_active != (*other == id)));
    let marked: Vec<_> = marked.filter_map(|other| Some((other, all.get(other)?))).collect();
    for (other, entity) in marked {
        change(world, entity, |version: &mut PromptVersion| version.is_active = other == id);
    }
    note(world, audit_kinds::PROMPT_VERSION_ACTIVATED, id, &version);
    Ok(())
}

/// Deletes a version that is neither active nor in use.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DeletePromptVersion(pub PromptVersionId);

command! {
    write "delete_prompt_version" DeletePromptVersion => (), Id(|it| it.0.0), |it, world|
        Answer::stored(delete(world, it.0))
}

fn delete(world: &mut World, id: PromptVersionId) -> Result<(), Refusal> {
    let PromptVersionView { version, is_active, .. } = PromptVersionView::seen(world, id)?;
    let entity = find::<PromptVersion>(world, id)?;
    let in_use = |text| Err(Refusal::of(error_codes::PROMPT_VERSION_IN_USE, text));
    if is_active {
        return in_use("the version is active; activate another one first".to_owned());
    }
    if let Some(experiment) = user_of(world, version.agent, id) {
        return in_use(format!("the experiment {:?} uses the version", experiment.name));
    }
    note(world, audit_kinds::PROMPT_VERSION_DELETED, id, &version);
    world.despawn(entity);
    Ok(())
}

/// The experiment that is not over and uses the version.
fn user_of(world: &World, agent: AgentId, version: PromptVersionId) -> Option<&PromptExperiment> {
    let all = world.resource::<Experiments>().of(agent, None).filter_map(|id| state::<PromptExperiment>(world, id));
    let mut open = all.filter(|experiment| experiment.status != ExperimentStatus::Completed);
    open.find(|experiment| experiment.variants.iter().any(|variant| variant.version == version))
}
