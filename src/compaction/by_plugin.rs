//! Plugins that compact: their messages stand for the older ones, or they say what a summary is to be like.

use std::sync::Arc;

use agentsvc_api::session::content::{MessageRange, in_force};
use agentsvc_components::compaction::call::Summary;
use agentsvc_components::kernel::limit::{PROMPT_MESSAGES_MAX, SUMMARY_BYTES_MAX};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::{ChatMessage, Role, text_of};
use agentsvc_systems::prompt::{Prompt, message_tokens, summary_text, text_tokens};

use super::Job;
use crate::plugin::{Compacted, Plugins};
use crate::skill::active;

/// Provider and model of a summary that a plugin wrote.
const PLUGIN: &str = "plugin";

/// What came of asking plugins.
pub(super) enum Taken {
    /// The summary.
    Done(Summary),
    /// A model writes it.
    Asked(Asked),
}

/// What a plugin asks of a summary.
pub(super) struct Asked {
    prompt: String,
    pub(super) max_tokens: u32,
    keep: String,
}

impl Asked {
    fn text(&self) -> String {
        format!("\n\nA plugin asks this of the summary: {}", self.prompt)
    }

    /// Tokens of what it adds to the task.
    pub(super) fn tokens(&self) -> u64 {
        if self.prompt.is_empty() { 0 } else { text_tokens(self.text().len()) }
    }

    /// Adds it to the task.
    pub(super) fn add_to(&self, prompt: &mut Prompt) {
        if !self.prompt.is_empty() {
            prompt.system.push_str(&self.text());
            prompt.estimated_tokens += self.tokens();
        }
    }

    /// The summary with what is to be kept as it is behind it.
    pub(super) fn with_kept(&self, summary: String) -> String {
        let text = if self.keep.is_empty() { summary } else { format!("{summary}\n\n{}", self.keep.trim_end()) };
        cut(text)
    }
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(SUMMARY_BYTES_MAX));
    text
}

impl Job {
    /// Asks plugins, if one compacts. What they cannot give the daemon's own way gives.
    ///
    /// # Errors
    /// A sentence: one failed that wants the compaction to fail.
    pub(super) async fn by_plugin(&self) -> Result<Option<Taken>, String> {
        let plugins = self.models.config.get::<Plugins>();
        if !plugins.compacts() {
            return Ok(None);
        }
        let (call, models) = (Arc::clone(&self.call), Arc::clone(&self.models));
        let read = self.read(move || {
            let range = MessageRange::NewestSince {
                from: call.from,
                ordinal: call.upto.saturating_sub(1),
                limit: PROMPT_MESSAGES_MAX,
            };
            let rows = models.content.messages(call.log, range)?;
            let before = if call.from == 0 { None } else { models.content.summary(call.log, call.from)? };
            Ok((rows, before))
        });
        let (rows, before) = read.await.map_err(|error| error.message)?;
        // More than a plugin is given would be lost in what it gives.
        if rows.len() >= PROMPT_MESSAGES_MAX {
            return Ok(None);
        }
        let before = before.map(|row| row.text).unwrap_or_default();
        let (text, skills) = active::split(&before);
        let mut messages = Vec::with_capacity(rows.len() + 1);
        if !text.is_empty() {
            messages.push(ChatMessage::text(Role::User, summary_text(text)));
        }
        let counted = rows.iter().filter(|row| match row.record.role {
            Role::User => row.index == 0,
            Role::Assistant => !text_of(&row.record.blocks).is_empty(),
            Role::Tool => false,
        });
        let (counted, bytes) =
            (counted.count(), rows.iter().map(|row| text_of(&row.record.blocks).len()).sum::<usize>());
        messages.extend(
            in_force(rows, None)
                .into_iter()
                .map(|row| ChatMessage { role: row.record.role, blocks: row.record.blocks }),
        );
        let context_tokens = self.context_tokens();
        let tokens: u64 = messages.iter().map(message_tokens).sum();
        let pressure = tokens as f64 / f64::from(context_tokens.max(1));
        let (call, agent) = (&self.call, (self.call.agent, &*self.call.agent_name, self.call.holder));
        let found = plugins.compact(agent, (&*call.model.model, context_tokens), &messages, pressure).await?;
        let Some((plugin, compacted)) = found else { return Ok(None) };
        match compacted {
            Compacted::Asked { prompt, max_tokens, keep } => Ok(Some(Taken::Asked(Asked { prompt, max_tokens, keep }))),
            // As of a model's summary: what is no shorter helps nobody.
            Compacted::Text(text)
                if text.len() > SUMMARY_BYTES_MAX || text.len() >= (bytes + before.len()).max(super::SHORT_BYTES) =>
            {
                tracing::warn!(plugin, "what a plugin made of older messages is too long; the default is used");
                Ok(None)
            }
            Compacted::Text(text) => Ok(Some(Taken::Done(Summary {
                text: active::marked(text.trim_end().to_owned(), &skills, SUMMARY_BYTES_MAX),
                upto: call.upto,
                messages: u32::try_from(counted).unwrap_or(u32::MAX),
                provider: PLUGIN.to_owned(),
                model: plugin,
                taint: Taint::TOOL,
            }))),
        }
    }

    /// Tokens of the context of the agent's model; 0 where it is not known.
    fn context_tokens(&self) -> u32 {
        let target = self.models.providers.load().target(&self.call.model);
        target.map_or(0, |target| target.context_tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plugin_asks_is_added_to_the_task_and_what_it_keeps_to_the_summary() {
        let asked = Asked { prompt: "be brief".to_owned(), max_tokens: 64, keep: "user: keep\n".to_owned() };
        let mut prompt = Prompt { system: "Summarise.".to_owned(), estimated_tokens: 10, ..Prompt::default() };
        asked.add_to(&mut prompt);
        assert!(prompt.system.ends_with("be brief") && prompt.estimated_tokens == 10 + asked.tokens());
        assert_eq!(asked.with_kept("short".to_owned()), "short\n\nuser: keep");
        let nothing = Asked { prompt: String::new(), max_tokens: 64, keep: String::new() };
        assert_eq!((nothing.tokens(), nothing.with_kept("s".to_owned())), (0, "s".to_owned()));
        assert!(asked.with_kept("é".repeat(SUMMARY_BYTES_MAX)).len() <= SUMMARY_BYTES_MAX);
    }
}
