//! The client saves versions of system prompts, compares them, and says what it thinks of answers.

use agentsvc_components::AgentId;
use agentsvc_components::prompt::{Feedback, PromptExperimentId, PromptVersionId, SuccessCriteria};
use agentsvc_systems::prompt::{
    ActivatePromptVersion, CompletePromptExperiment, CreatePromptExperiment, DeletePromptExperiment,
    DeletePromptVersion, GivePromptFeedback, NewVariant, PausePromptExperiment, SavePromptVersion,
    StartPromptExperiment,
};

use super::action::What;
use super::client::agent;
use super::facts::GONE;
use super::harness::Harness;

/// Versions and experiments that the client knows of at most.
const KNOWN: usize = 12;

/// What the client knows of prompts. Some of it is gone by now.
#[derive(Debug, Default)]
pub(crate) struct Prompts {
    versions: Vec<(AgentId, PromptVersionId, String)>,
    experiments: Vec<PromptExperimentId>,
}

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    match what {
        What::SavePrompt => save(harness),
        What::ActivatePrompt => activate(harness),
        What::NewExperiment => new_experiment(harness),
        What::ChangeExperiment => change_experiment(harness),
        _ => rate(harness),
    }
}

fn save(harness: &mut Harness) {
    let Some(agent) = agent(harness).filter(|_| harness.known.prompts.versions.len() < KNOWN) else { return };
    let description = harness.text("version");
    let (text, tools, variables) = (harness.text("Be brief."), Vec::new(), Vec::new());
    let system_prompt = Some(text.clone());
    let command = SavePromptVersion { agent, system_prompt, description: description.clone(), tools, variables };
    harness.ask(command, move |harness, view| {
        harness.known.prompts.versions.push((agent, view.id, text));
        harness.learn(format!("prompt_version/{agent}/{}", view.id), description);
    });
}

/// Activates a version, or deletes it.
fn activate(harness: &mut Harness) {
    let known = harness.known.prompts.versions.clone();
    let Some((agent, version, text)) = harness.rng.any(&known) else { return };
    if harness.rng.chance(70) {
        let fact = harness.facts.submit(format!("prompt/{agent}"), text);
        let command = ActivatePromptVersion { version, agent: Some(agent) };
        return harness.ask(command, move |harness, _| harness.facts.acknowledge(fact));
    }
    let fact = harness.facts.submit(format!("prompt_version/{agent}/{version}"), GONE);
    harness.ask(DeletePromptVersion(version), move |harness, ()| {
        harness.known.prompts.versions.retain(|(_, id, _)| *id != version);
        harness.facts.acknowledge(fact);
    });
}

fn new_experiment(harness: &mut Harness) {
    let known = harness.known.prompts.versions.clone();
    let Some((agent, first, _)) = harness.rng.any(&known).filter(|_| harness.known.prompts.experiments.len() < KNOWN)
    else {
        return;
    };
    let second = known.iter().rev().find(|(of, ..)| *of == agent).map_or(first, |(_, id, _)| *id);
    let variant = |version| NewVariant { version: Some(version), ..NewVariant::default() };
    let criteria = SuccessCriteria { require_user_helpful: harness.rng.chance(50), ..SuccessCriteria::default() };
    let command = CreatePromptExperiment {
        agent,
        name: harness.text("experiment"),
        variants: vec![variant(first), variant(second)],
        shares: harness.rng.pick(&[vec![], vec![10, 90]]),
        criteria,
    };
    harness.ask(command, |harness, view| {
        harness.known.prompts.experiments.push(view.id);
        harness.ask(StartPromptExperiment(view.id), |_, _| {});
    });
}

fn change_experiment(harness: &mut Harness) {
    let known = harness.known.prompts.experiments.clone();
    let Some(id) = harness.rng.any(&known) else { return };
    match harness.rng.below(5) {
        0 | 1 => harness.ask(StartPromptExperiment(id), |_, _| {}),
        2 => harness.ask(PausePromptExperiment(id), |_, _| {}),
        3 => {
            let complete = CompletePromptExperiment { experiment: id, winner: None, activate: false };
            harness.ask(complete, |_, _| {});
        }
        _ => harness.ask(DeletePromptExperiment(id), move |harness, ()| {
            harness.known.prompts.experiments.retain(|known| *known != id);
        }),
    }
}

fn rate(harness: &mut Harness) {
    let (experiments, sessions) = (harness.known.prompts.experiments.clone(), harness.known.sessions.clone());
    let (Some(experiment), Some((_, session))) = (harness.rng.any(&experiments), harness.rng.any(&sessions)) else {
        return;
    };
    let feedback = Feedback { helpful: harness.rng.chance(50), score: None };
    harness.ask(GivePromptFeedback { experiment, turn: None, session: Some(session), feedback }, |_, _| {});
}
