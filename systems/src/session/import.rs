//! A conversation that was held elsewhere becomes a session (spec 2, Migration).

use crate::session::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::{AgentId, Refusal, SessionId, Timestamp, TurnId};
use serde_json::json;

use super::{admit, clean_label, has_room, label_free, owned_or_absent, put_row, spawn};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::mint_for;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::record::{self, MessageKey};
use crate::taint;

/// One message of an imported conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedMessage {
    /// Who speaks. A result belongs to the answer before it.
    pub role: Role,
    /// What is said.
    pub blocks: Vec<Block>,
    /// When it was said.
    pub at: Timestamp,
    /// `provider/model` that wrote it; answers only, where it is known.
    pub model: Option<Box<str>>,
}

/// Makes a session of a conversation, whole or not at all. The id says which conversation it is: one that is there
/// already is left as it is, so that a second import changes nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportSession {
    /// Whose.
    pub agent: AgentId,
    /// Its id, which follows from where it comes from.
    pub session: SessionId,
    /// A name for it; left out when another session of the agent has it.
    pub label: Option<String>,
    /// What was said, in order; at most [`limit::IMPORTED_MESSAGES_MAX`] and [`limit::IMPORTED_BYTES_MAX`].
    pub messages: Vec<ImportedMessage>,
}

command! {
    /// False when the session was there already.
    write "import_session" ImportSession => bool, Id(|it| it.agent.0), |it, world| Answer::stored(import(world, it))
}

fn import(world: &mut World, command: ImportSession) -> Result<bool, Refusal> {
    let ImportSession { agent, session, label, messages } = command;
    let owner = index::agent(world, agent)?;
    if owned_or_absent(world, owner, session)?.is_some() {
        return Ok(false);
    }
    check(&messages)?;
    admit(world, Some(owner))?;
    has_room(world, owner)?;
    let now = world.resource::<Now>().0;
    let messages: Vec<ImportedMessage> = messages
        .into_iter()
        .map(|message| ImportedMessage { at: message.at.clamp(Timestamp(0), now), ..message })
        .collect();
    let label = clean_label(label.as_deref().unwrap_or_default())?;
    let label = label.filter(|label| label_free(world, owner, label, None).is_ok());
    let entity = spawn(world, owner, Some(session), label);
    let counted = write(world, entity, &messages);
    if let (Some(mut session), Some(first), Some(last)) =
        (world.get_mut::<Session>(entity), messages.first(), messages.last())
    {
        (session.created_at, session.updated_at) = (first.at, last.at.max(first.at));
        (session.message_count, session.next_ordinal) = counted;
        // Nobody here knows what those tools were.
        let is_result = |block: &Block| matches!(block, Block::ToolResult { .. });
        if messages.iter().flat_map(|message| &message.blocks).any(is_result) {
            session.taint = Taint::TOOL;
        }
    }
    taint::seen(world, entity);
    world.mark(entity);
    let session: SessionId = id_of(world, entity);
    world.audit(audit_kinds::SESSION_IMPORTED, agent, json!({ "session": session, "messages": counted.0 }));
    Ok(true)
}

fn check(messages: &[ImportedMessage]) -> Result<(), Refusal> {
    if messages.is_empty() {
        let most = limit::IMPORTED_MESSAGES_MAX;
        return Err(Refusal::bad_field("messages", format!("messages must be 1 to {most}")));
    }
    check_size(messages)
}

/// Refuses more messages than a session is made of at once, or longer ones.
pub(super) fn check_size(messages: &[ImportedMessage]) -> Result<(), Refusal> {
    let most = limit::IMPORTED_MESSAGES_MAX;
    if messages.len() > most {
        return Err(Refusal::bad_field("messages", format!("messages must be at most {most}")));
    }
    let bytes: usize = messages.iter().flat_map(|message| &message.blocks).map(bytes).sum();
    let most = limit::IMPORTED_BYTES_MAX;
    if bytes > most {
        return Err(Refusal::bad_field("messages", format!("messages are longer than {most} bytes")));
    }
    Ok(())
}

/// Bytes of a block's texts.
#[must_use]
pub fn bytes(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::ToolCall(call) => call.id.len() + call.name.len() + call.input.len(),
        Block::ToolResult { call_id, content, .. } => call_id.len() + content.len(),
        Block::Reasoning(thought) => thought.text.len() + thought.raw.len(),
        Block::Image { .. } => 0,
    }
}

/// Writes the rows: each message of a person begins a turn. Gives the count of messages and the next ordinal.
pub(super) fn write(world: &mut World, session: bevy_ecs::prelude::Entity, messages: &[ImportedMessage]) -> (u32, u32) {
    let found = world.get::<Session>(session).map(|session| (session.agent, session.log));
    let Some((owner, log)) = found else { return (0, 0) };
    let (mut count, mut ordinal, mut index) = (0, 0, 0);
    let mut turn = None;
    for message in messages {
        let begins = message.role == Role::User || turn.is_none();
        if begins {
            ordinal = if turn.is_none() { 0 } else { ordinal + 1 };
            index = 0;
            // Ids are of the moment in which they are made, whatever a file says.
            turn = Some(mint_for(world, owner));
        }
        let record = MessageRecord {
            turn: turn.unwrap_or(TurnId(uuid::Uuid::nil())),
            role: message.role,
            blocks: message.blocks.clone(),
            created_at: message.at,
            usage: None,
            model: message.model.clone(),
            stopped: false,
            repeats: None,
        };
        put_row(world, session, record::put_content(record::message_key(MessageKey { log, ordinal, index }), &record));
        count += u32::from(message.role != Role::Tool);
        index += 1;
    }
    (count, if turn.is_some() { ordinal + 1 } else { 0 })
}

#[cfg(test)]
mod tests {
    use agentsvc_components::RefusalKind;

    use super::*;
    use crate::session::GetSession;
    use crate::testing::{TestWorld, tool_call};
    use crate::turn::{NewMessage, SendMessage};

    fn said(role: Role, text: &str, at: i64) -> ImportedMessage {
        let blocks = vec![Block::Text { text: text.to_owned() }];
        ImportedMessage { role, blocks, at: Timestamp(at), model: None }
    }

    fn result(id: &str) -> ImportedMessage {
        let (call_id, name, content) = (id.to_owned(), "system_time".to_owned(), "noon".to_owned());
        let blocks = vec![Block::ToolResult { call_id, name, content, is_error: false }];
        ImportedMessage { role: Role::Tool, blocks, at: Timestamp(3), model: None }
    }

    fn conversation() -> Vec<ImportedMessage> {
        vec![
            said(Role::User, "what time is it?", 1),
            ImportedMessage { blocks: vec![tool_call("a")], ..said(Role::Assistant, "", 2) },
            result("a"),
            said(Role::Assistant, "noon", 4),
            said(Role::User, "thanks", 5),
            said(Role::Assistant, "welcome", 6),
        ]
    }

    fn import(agent: AgentId, label: &str, messages: Vec<ImportedMessage>) -> ImportSession {
        let session = SessionId(uuid::Uuid::from_u128(7));
        ImportSession { agent, session, label: Some(label.to_owned()), messages }
    }

    #[test]
    fn a_conversation_becomes_a_session_once() {
        let mut world = TestWorld::new();
        let agent = world.spawn("a");
        assert!(world.ask(import(agent, "old", conversation())).unwrap());
        assert!(!world.ask(import(agent, "other", vec![said(Role::User, "x", 9)])).unwrap());
        let session = SessionId(uuid::Uuid::from_u128(7));
        let view = world.ask(GetSession::ById(session)).unwrap();
        assert_eq!((view.message_count, view.label.as_deref()), (5, Some("old")));
        assert_eq!((view.created_at, view.updated_at), (Timestamp(1), Timestamp(6)));
        assert_eq!(world.texts(view.log), ["what time is it?", "", "", "noon", "thanks", "welcome"]);
    }

    #[test]
    fn the_conversation_goes_on_after_a_restart() {
        let mut world = TestWorld::new();
        let agent = world.spawn("a");
        world.ask(import(agent, "old", conversation())).unwrap();
        world.restart();
        let session = SessionId(uuid::Uuid::from_u128(7));
        let _asked = world.begin(SendMessage { agent, session: Some(session), message: NewMessage::text("and now?") });
        world.step();
        let turn = world.next_call().turn();
        let inside = world.engine.world();
        let known = index::turn(inside, turn).map(|turn| taint::of(inside, turn));
        assert_eq!(known, Some(Taint::TOOL), "nobody here knows what its tools were");
        let log = world.ask(GetSession::ById(session)).unwrap().log;
        assert_eq!(world.texts(log).last().map(String::as_str), Some("and now?"));
    }

    #[test]
    fn what_is_taken_empty_or_too_long_changes_nothing() {
        let mut world = TestWorld::new();
        let (agent, other) = (world.spawn("a"), world.spawn("b"));
        let many = vec![said(Role::User, "x", 1); limit::IMPORTED_MESSAGES_MAX + 1];
        let long = vec![said(Role::User, &"x".repeat(limit::IMPORTED_BYTES_MAX + 1), 1)];
        for messages in [Vec::new(), many, long] {
            let refusal = world.ask(import(agent, "", messages)).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("messages"));
        }
        world.ask(import(agent, "old", conversation())).unwrap();
        let refusal = world.ask(import(other, "", conversation())).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Forbidden);
    }
}
