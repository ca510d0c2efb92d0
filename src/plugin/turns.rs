//! What plugins do in turns, in the terms of turns.

use std::sync::Arc;

use agentsvc_api::session::content::MessageRange;
use agentsvc_components::AgentId;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::recall::RecalledEntry;
use agentsvc_components::session::message::{ChatMessage, Role, text_of};
use agentsvc_components::turn::effect::{ModelCall, ToolRun};
use serde_json::{Value, json};
use uuid::Uuid;

use super::conversation::{Assembled, assembled, compacted, shown};
use super::engine::{Aborted, Engine, Memory};
use super::hook::Hook;
use super::run::Who;
use super::{Parts, Plugins};
use crate::tool::{ResultTransform, Transformed};

/// Bytes of all memories that plugins bring for a turn.
const MEMORIES_BYTES_MAX: usize = 32 << 10;
/// Bytes of a result that a plugin gives.
const RESULT_BYTES_MAX: usize = 1 << 20;
/// Tokens of a summary that a plugin asks for, at most.
const SUMMARY_TOKENS_MAX: u64 = 4_096;
/// Bytes of what a plugin wants a summary to be like.
const PROMPT_BYTES_MAX: usize = 8 << 10;

/// What a plugin has made of the older messages of a session.
pub(crate) enum Compacted {
    /// The text that stands for them.
    Text(String),
    /// A model is to summarise them.
    Asked {
        /// What the plugin asks of the summary.
        prompt: String,
        /// Tokens of the summary.
        max_tokens: u32,
        /// What stands behind the summary as it is.
        keep: String,
    },
}

impl Plugins {
    fn used(&self) -> Option<&Parts> {
        self.0.as_ref().filter(|parts| parts.engine.is_used())
    }

    /// Does anything take part in turns?
    pub(crate) fn is_used(&self) -> bool {
        self.used().is_some()
    }

    /// The memories for the turn of a call, if it is the first of its turn.
    ///
    /// # Errors
    /// [`Aborted`], as a sentence.
    pub(crate) async fn ingest(&self, call: &ModelCall) -> Result<Vec<RecalledEntry>, String> {
        let Some(Parts { engine, teller }) = self.used() else { return Ok(Vec::new()) };
        teller.begun(call);
        if !engine.wants(Hook::Ingest) {
            return Ok(Vec::new());
        }
        let Some(message) = first_message(engine, call).await else { return Ok(Vec::new()) };
        let who = who(call, message);
        let request = call.request.as_deref();
        let peer = request.and_then(|request| request.chat.as_ref().map(|chat| &*chat.sender));
        let peer = peer.or_else(|| request.and_then(|request| request.user.as_deref()));
        let found = engine.ingest(&who, &call.session.to_string(), peer).await;
        let mut left = MEMORIES_BYTES_MAX;
        let mut entries = Vec::new();
        for Memory { plugin, content } in found.map_err(|Aborted(why)| why)? {
            let Some(rest) = left.checked_sub(content.len()) else { break };
            left = rest;
            entries.push(RecalledEntry {
                id: MemoryEntryId(Uuid::nil()),
                content: content.into(),
                category: Box::default(),
                score: 0.0,
                taint: Taint::TOOL,
                plugin: plugin.into(),
            });
        }
        Ok(entries)
    }

    /// Other messages for a call, with the name of the plugin that gave them.
    ///
    /// # Errors
    /// [`Aborted`], as a sentence.
    pub(crate) async fn assemble(
        &self,
        call: &ModelCall,
        (system, messages): (&str, &[ChatMessage]),
        context_tokens: u32,
    ) -> Result<Option<(String, Assembled)>, String> {
        let Some(Parts { engine, .. }) = self.used().filter(|parts| parts.engine.wants(Hook::Assemble)) else {
            return Ok(None);
        };
        let list: Vec<Value> = messages.iter().map(shown).collect();
        let input = json!({
            "type": "assemble", "agent_id": call.agent, "system_prompt": system, "messages": list,
            "context_window_tokens": context_tokens,
        });
        let read = |answer: &Value| match answer.get("messages") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(list)) if list.is_empty() => Ok(None),
            Some(given) => assembled(given, messages).map(Some),
        };
        let found = engine.first(Hook::Assemble, &input, &who(call, String::new()), read).await;
        found.map_err(|Aborted(why)| why)
    }

    /// Is there a plugin that compacts?
    pub(crate) fn compacts(&self) -> bool {
        self.used().is_some_and(|parts| parts.engine.wants(Hook::Compact))
    }

    /// What stands for the older messages of a session, with the name of the plugin.
    ///
    /// # Errors
    /// [`Aborted`], as a sentence.
    pub(crate) async fn compact(
        &self,
        (agent, name, holder): (AgentId, &str, Holder),
        (model, context_tokens): (&str, u32),
        messages: &[ChatMessage],
        token_pressure: f64,
    ) -> Result<Option<(String, Compacted)>, String> {
        let Some(Parts { engine, .. }) = self.used() else { return Ok(None) };
        let list: Vec<Value> = messages.iter().map(shown).collect();
        let input = json!({
            "type": "compact", "agent_id": agent, "messages": list, "model": model,
            "context_window_tokens": context_tokens, "token_pressure": token_pressure,
        });
        let who = Who { agent: agent.to_string(), name: name.to_owned(), message: String::new(), holder: Some(holder) };
        let read = |answer: &Value| read_compacted(answer, messages);
        engine.first(Hook::Compact, &input, &who, read).await.map_err(|Aborted(why)| why)
    }
}

fn read_compacted(answer: &Value, messages: &[ChatMessage]) -> Result<Option<Compacted>, String> {
    let asked = &answer["request_llm_summary"];
    if asked.is_object() {
        let prompt = asked["prompt"].as_str().unwrap_or_default();
        let prompt = prompt[..prompt.floor_char_boundary(PROMPT_BYTES_MAX)].to_owned();
        let tokens = asked["max_tokens"].as_u64().unwrap_or(SUMMARY_TOKENS_MAX).clamp(64, SUMMARY_TOKENS_MAX);
        let max_tokens = u32::try_from(tokens).unwrap_or(64);
        let keep = match &asked["keep"] {
            Value::Array(list) if !list.is_empty() => compacted(&asked["keep"], messages)?,
            _ => String::new(),
        };
        return Ok(Some(Compacted::Asked { prompt, max_tokens, keep }));
    }
    match answer.get("messages") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(list)) if list.is_empty() => Ok(None),
        Some(given) => compacted(given, messages).map(|text| Some(Compacted::Text(text))),
    }
}

fn who(call: &ModelCall, message: String) -> Who {
    Who { agent: call.agent.to_string(), name: call.agent_name.to_string(), message, holder: Some(call.holder) }
}

/// The message of the turn; `None` where it is not the first call of its turn, or cannot be read.
async fn first_message(engine: &Engine, call: &ModelCall) -> Option<String> {
    let (content, log, ordinal) = (Arc::clone(&engine.content), call.log, call.ordinal);
    let after = ordinal.checked_sub(1).map(|before| (before, u32::MAX));
    let read = move || content.messages(log, MessageRange::After { after, limit: 2 });
    let rows = match tokio::task::spawn_blocking(read).await {
        Ok(Ok(rows)) => rows,
        _ => {
            tracing::warn!(turn = %call.turn(), "the message of a turn cannot be read for plugins");
            return None;
        }
    };
    let mut own = rows.into_iter().filter(|row| row.ordinal == ordinal);
    let first = own.next().filter(|row| row.record.role == Role::User)?;
    if own.next().is_some_and(|row| row.record.role != Role::User) {
        return None;
    }
    Some(text_of(&first.record.blocks))
}

/// What plugins make of the results of tools.
pub(super) fn transform(engine: &Arc<Engine>) -> ResultTransform {
    let engine = Arc::clone(engine);
    let wants = Arc::clone(&engine);
    ResultTransform::new(
        move || wants.wants(Hook::TransformToolResult),
        move |run: Arc<ToolRun>, text: String, is_error| {
            let engine = Arc::clone(&engine);
            Box::pin(async move { transformed(&engine, &run, text, is_error).await })
        },
    )
}

/// The results of all plugins, one after the other.
async fn transformed(engine: &Engine, run: &ToolRun, text: String, is_error: bool) -> Result<Transformed, String> {
    let (agent, name) = (run.agent.to_string(), run.agent_name.to_string());
    let who = Who { agent, name, message: String::new(), holder: Some(run.holder) };
    let arguments: Value = serde_json::from_str(&run.call.input).unwrap_or_else(|_| run.call.input.as_str().into());
    let (mut text, mut is_changed) = (text, false);
    for plugin in engine.with(Hook::TransformToolResult).await {
        let status = if is_error { "error" } else { "ok" };
        let input = json!({
            "type": "transform_tool_result", "agent_id": run.agent, "tool_name": run.call.name, "tool_use_id": run.call.id,
            "args": arguments, "input": arguments, "result": text, "content": text, "is_error": is_error, "status": status,
        });
        let asked = engine.ask(&plugin, Hook::TransformToolResult, &input, &who).await;
        let Some(answer) = asked.map_err(|Aborted(why)| why)? else { continue };
        if answer["type"] == "skip" {
            continue;
        }
        let given = answer.get("result").or_else(|| answer.get("content")).filter(|given| !given.is_null());
        let Some(given) = given else { continue };
        let given = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
        if given != text {
            text = given[..given.floor_char_boundary(RESULT_BYTES_MAX)].to_owned();
            is_changed = true;
        }
    }
    Ok(Transformed { text, is_changed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_gives_messages_or_asks_for_a_summary() {
        let messages = [ChatMessage::text(Role::User, "a"), ChatMessage::text(Role::Assistant, "b")];
        let read = |answer: Value| read_compacted(&answer, &messages).unwrap();
        assert!(read(json!({})).is_none() && read(json!({ "messages": [] })).is_none());
        let Some(Compacted::Text(text)) = read(json!({ "messages": [{ "role": "user", "content": "short" }] })) else {
            panic!("a text")
        };
        assert_eq!(text, "user: short\n");
        let asked = json!({ "request_llm_summary": { "prompt": "be brief", "max_tokens": 9, "keep": [{ "role": "user", "content": "a" }] } });
        let Some(Compacted::Asked { prompt, max_tokens, keep }) = read(asked) else { panic!("a summary") };
        assert_eq!((&*prompt, max_tokens, &*keep), ("be brief", 64, "user: a\n"));
        assert!(read_compacted(&json!({ "messages": [3] }), &messages).is_err());
    }
}
