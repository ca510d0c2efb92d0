//! Versions of prompts and experiments, at random.

use agentsvc_components::prompt::{Feedback, PromptExperimentId, PromptVersionId, SuccessCriteria};
use agentsvc_components::{Actor, AgentId, TurnId};
use agentsvc_systems::Engine;
use agentsvc_systems::prompt::{
    ActivatePromptVersion, CompletePromptExperiment, CreatePromptExperiment, DeletePromptExperiment,
    DeletePromptVersion, GivePromptFeedback, NewVariant, PausePromptExperiment, SavePromptVersion,
    StartPromptExperiment,
};

use super::{Fuzz, ask};

impl Fuzz {
    pub(super) fn of_prompts(&mut self, engine: &mut Engine) {
        let (version, experiment) = (PromptVersionId(self.some(b'V')), PromptExperimentId(self.some(b'Z')));
        let (agent, api) = (self.tested(), Actor::Api);
        match self.random.below(12) {
            0..=2 => {
                let system_prompt = self.random.one_in(2).then(|| self.text());
                let (description, tools, variables) = (self.text(), vec![self.text()], Vec::new());
                ask(engine, api, SavePromptVersion { agent, system_prompt, description, tools, variables });
            }
            3 => ask(engine, api, ActivatePromptVersion { version, agent: None }),
            4 => ask(engine, api, DeletePromptVersion(version)),
            5 | 6 => {
                let command = self.experiment();
                ask(engine, api, command);
            }
            7 => ask(engine, api, StartPromptExperiment(experiment)),
            8 => ask(engine, api, PausePromptExperiment(experiment)),
            9 => {
                let activate = self.random.one_in(2);
                ask(engine, api, CompletePromptExperiment { experiment, winner: None, activate });
            }
            10 => ask(engine, api, DeletePromptExperiment(experiment)),
            _ => {
                let turn = self.random.one_in(2).then(|| TurnId(self.some(b'I')));
                let feedback = Feedback { helpful: self.random.one_in(2), score: Some(0.5) };
                ask(engine, api, GivePromptFeedback { experiment, turn, session: self.maybe_session(), feedback });
            }
        }
    }

    /// Often the same agent, so that versions and experiments find each other.
    fn tested(&mut self) -> AgentId {
        let oldest = self.all(b'a').next().filter(|_| !self.count.is_multiple_of(4));
        oldest.map_or_else(|| self.agent(), AgentId)
    }

    /// Its versions are often of other agents, or gone.
    fn experiment(&mut self) -> CreatePromptExperiment {
        let version = PromptVersionId(self.some(b'V'));
        let other = if self.random.one_in(2) { version } else { PromptVersionId(self.some(b'V')) };
        let variant = |version| NewVariant { version: Some(version), ..NewVariant::default() };
        let criteria = SuccessCriteria { require_user_helpful: self.random.one_in(2), ..SuccessCriteria::default() };
        CreatePromptExperiment {
            agent: self.tested(),
            name: self.text(),
            variants: vec![variant(version), variant(other)],
            shares: if self.random.one_in(2) { vec![30, 70] } else { Vec::new() },
            criteria,
        }
    }
}
