//! Changes of skills by agents: made at once where that is allowed and harmless, otherwise kept for a person.

use std::sync::Arc;

use agentsvc_api::skill_evolution::audit_kinds::{SKILL_CHANGE_PROPOSED, SKILL_CHANGED};
use agentsvc_api::skill_evolution::change::Change;
use agentsvc_api::skill_source::sources::SourceError;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::config::taint::TaintPolicy;
use serde_json::json;

use super::evolver::Evolver;
use super::pending::Proposal;
use super::{InForce, now};
use crate::security::config::Security;
use crate::skill::config::{Evolution, SkillSettings};
use crate::tool::toolset::{Context, Ended};

/// Makes or proposes a change for the agent that calls.
pub(super) async fn change(context: Context, change: Change) -> Result<Ended, String> {
    change.check().map_err(|error| sentence(&error))?;
    let (settings, run) = (&context.parts.settings, Arc::clone(&context.run));
    let evolution = settings.get::<SkillSettings>().evolution;
    if evolution == Evolution::Off {
        return Err("Refused: agents may not change skills here ([skills] evolution is \"off\").".to_owned());
    }
    if run.manifest.manifest.frozen_skills.is_some() {
        return Err("Refused: this agent is in mode Stable, and its skills are frozen.".to_owned());
    }
    let evolver =
        settings.get::<InForce>().0.clone().ok_or("Skills cannot be changed before the start is complete.")?;
    let is_tracked = settings.get::<Security>().taint != TaintPolicy::Off;
    let is_untainted = is_tracked && context.run.taint.is_none();
    let proposal = proposal(&context, change)?;
    let asked = Arc::clone(&evolver);
    let (proposal, is_live) = blocking(move || {
        let mut proposal = proposal;
        asked.check_grant(&run.manifest.manifest, &proposal.change)?;
        let (draft, present) = asked.draft(&proposal.change, &author(&proposal))?;
        proposal.warnings = draft.warnings;
        proposal.base_hash = present.map(|present| present.hash());
        let is_live = evolution == Evolution::On && is_untainted && asked.is_harmless(&proposal.change);
        Ok((proposal, is_live))
    })
    .await?;
    // Before it is done: a change that then fails leaves an entry, one that is done never leaves none.
    let kind = if is_live { SKILL_CHANGED } else { SKILL_CHANGE_PROPOSED };
    let mut details = proposal.change.details();
    if !is_live {
        details["id"] = json!(proposal.id);
    }
    context.ask(NoteAction { kind, agent: context.agent(), details }).await?;
    let done = blocking(move || finish(&evolver, &proposal, is_live)).await?;
    Ok(Ended::Text(done))
}

fn finish(evolver: &Evolver, proposal: &Proposal, is_live: bool) -> Result<String, SourceError> {
    let (skill, warnings) = (&proposal.change.skill, proposal.warnings.len());
    let noticed = if warnings > 0 { format!(" The scan noticed {warnings} things.") } else { String::new() };
    if is_live {
        let changed = evolver.make(&proposal.change, &author(proposal), None)?;
        return Ok(format!("Done. Version of skill {skill:?} now: {}.{noticed}", changed.version));
    }
    let id = evolver.pending.add(proposal)?;
    Ok(format!("Proposed as {id}. The change of skill {skill:?} takes effect when a person approves it.{noticed}"))
}

fn proposal(context: &Context, change: Change) -> Result<Proposal, String> {
    let (run, mut random) = (&context.run, [0; 16]);
    getrandom::fill(&mut random).map_err(|error| format!("No random numbers: {error}."))?;
    Ok(Proposal {
        id: uuid::Builder::from_random_bytes(random).into_uuid(),
        agent: run.agent.0,
        holder: Some(run.holder),
        agent_name: run.agent_name.to_string(),
        session: (!context.direct).then_some(run.session.0),
        taint: run.taint.words().into_iter().map(str::to_owned).collect(),
        created_at: now().0,
        base_hash: None,
        warnings: Vec::new(),
        change,
    })
}

fn author(proposal: &Proposal) -> String {
    format!("agent:{}", proposal.agent)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
) -> Result<T, String> {
    let done = agentsvc_api::http::blocking::spawn_blocking(work).await;
    done.map_err(|_| "The change of the skill failed with an internal error.".to_owned())?
        .map_err(|error| sentence(&error))
}

/// An error as the model reads it. The findings of a scan say where, and not what stands there: that may be of others.
fn sentence(error: &SourceError) -> String {
    match error {
        SourceError::Blocked { message, findings } => format!("Refused: {message} ({}).", findings.join("; ")),
        other => format!("Refused: {other}."),
    }
}
