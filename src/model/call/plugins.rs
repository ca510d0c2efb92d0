//! What plugins do in a model call: they bring memories to the first one of a turn, and change the messages of each.

use std::sync::Arc;

use agentsvc_components::plugin::PromptChanged;
use agentsvc_components::proactive_memory::recall::{MemoryRecalled, Recalled};
use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_systems::prompt::{MESSAGE_TOKENS, message_cost, message_tokens, text_tokens};

use super::{Prepared, Running};
use crate::model::error::CallError;
use crate::model::extra::Memory;
use crate::model::tokens::tokens_of;
use crate::plugin::Plugins;
use crate::proactive_memory::recall::Recaller;

impl Running {
    /// The turn hears of what was found before any model is asked: what comes back of the call is settled after it.
    pub(super) fn tell(&self, found: Recalled) {
        (self.models.calls.outcomes)(MemoryRecalled(self.call.attempt, found).into());
    }

    /// Searches the agent's memory and asks plugins for more, where that is needed, and goes on.
    pub(super) fn submit(mut self) {
        let scope = if let Memory::Search(scope) = &self.memory { Some(scope.clone()) } else { None };
        let plugins = self.models.config.get::<Plugins>();
        let asks_plugins = !self.is_ingested && plugins.is_used();
        if scope.is_none() && !asks_plugins {
            return self.get_ready();
        }
        let models = Arc::clone(&self.models);
        drop(models.calls.handle.clone().spawn(async move {
            if let Some(scope) = scope {
                let recaller = models.config.get::<Recaller>();
                self.memory = Memory::Found(recaller.recall(&self.call, scope, &models.config).await);
            }
            if asks_plugins {
                self.is_ingested = true;
                let brought = tokio::select! {
                    biased;
                    () = self.reply.ticket().aborted() => return self.abort_unasked(),
                    brought = plugins.ingest(&self.call) => brought,
                };
                match brought {
                    Ok(entries) => self.memory.add(entries),
                    Err(why) => return self.fail(CallError::last(FailureCode::PluginFailed, &why), false),
                }
            }
            self.get_ready();
        }));
    }

    /// Lets plugins change the messages. What does not fit, or breaks the conversation, is not used.
    pub(super) async fn assemble(&self, prepared: &mut Prepared) -> Result<(), CallError> {
        let plugins = self.models.config.get::<Plugins>();
        let prompt = &prepared.prompt;
        let context_tokens = prepared.target.context_tokens;
        let asked =
            plugins.assemble(&self.call, (prompt.system.as_str(), prompt.messages.as_slice()), context_tokens).await;
        let asked = asked.map_err(|why| CallError::last(FailureCode::PluginFailed, &why))?;
        let Some((plugin, assembled)) = asked else { return Ok(()) };
        let tokens = tokens_of(&prepared.target, self.call.answer_tokens_max.is_some());
        let system = MESSAGE_TOKENS + text_tokens(prompt.system.len());
        let fits = assembled.messages.iter().try_fold(prepared.tokens_max.saturating_sub(system), |left, message| {
            message_cost(tokens, message, left).map(|cost| left - cost)
        });
        if fits.is_none() {
            tracing::warn!(plugin, turn = %self.call.turn(), "the messages of a plugin do not fit; the default is used");
            return Ok(());
        }
        if assembled.is_changed {
            let (attempt, plugin) = (self.call.attempt, plugin.into());
            (self.models.calls.outcomes)(PromptChanged { attempt, plugin }.into());
        }
        let before: u64 = prepared.prompt.messages.iter().map(message_tokens).sum();
        let after: u64 = assembled.messages.iter().map(message_tokens).sum();
        prepared.prompt.estimated_tokens = prepared.prompt.estimated_tokens.saturating_sub(before) + after;
        prepared.prompt.messages = assembled.messages;
        Ok(())
    }
}
