//! A session goes on from an earlier place in another one: the turns up to there are copied, the original stays.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::session::Session;
use agentsvc_components::{LogId, Refusal, SessionId};

use super::import::{self, ImportedMessage};
use super::{admit, clean_label, existing, has_room, label_free, spawn};
use crate::kernel::command::{Answer, command};
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::taint;

/// Creates a session of the same agent that begins with `messages`; it does not become the current one. It is as untrusted
/// as the original.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BranchSession {
    /// The original.
    pub session: SessionId,
    /// The log from which the messages were read. One that is not the session's any more was cleared meanwhile.
    pub log: LogId,
    /// Label, unique within the agent.
    pub label: Option<String>,
    /// What was said in the original up to there: whole turns, in order. None for a session that begins anew. At most
    /// [`IMPORTED_MESSAGES_MAX`](agentsvc_components::kernel::limit::IMPORTED_MESSAGES_MAX) and
    /// [`IMPORTED_BYTES_MAX`](agentsvc_components::kernel::limit::IMPORTED_BYTES_MAX).
    pub messages: Vec<ImportedMessage>,
}

command! {
    /// The new session.
    write "branch_session" BranchSession => SessionId, Id(|it| it.session.0), |it, world|
        Answer::stored(branch(world, it))
}

fn branch(world: &mut World, command: BranchSession) -> Result<SessionId, Refusal> {
    let BranchSession { session, log, label, messages } = command;
    let original = existing(world, session)?;
    let known = world.get::<Session>(original).map(|session| (session.agent, session.taint, session.log));
    let (owner, tainted, present) = known.ok_or_else(|| Refusal::not_found("session", session))?;
    if log != present {
        return Err(Refusal::conflict("the history of the session was cleared in the meantime"));
    }
    import::check_size(&messages)?;
    let label = clean_label(label.as_deref().unwrap_or_default())?;
    if let Some(label) = &label {
        label_free(world, owner, label, None)?;
    }
    admit(world, Some(owner))?;
    has_room(world, owner)?;
    let entity = spawn(world, owner, None, label);
    let counted = import::write(world, entity, &messages);
    if let Some(mut branch) = world.get_mut::<Session>(entity) {
        (branch.message_count, branch.next_ordinal) = counted;
        branch.taint = tainted;
    }
    taint::seen(world, entity);
    world.mark(entity);
    Ok(id_of(world, entity))
}

#[cfg(test)]
mod tests {
    use agentsvc_components::kernel::limit;
    use agentsvc_components::kernel::taint::Taint;
    use agentsvc_components::session::message::{Block, Role};
    use agentsvc_components::{AgentId, RefusalKind, Timestamp};

    use super::*;
    use crate::session::{ClearHistory, GetSession, ImportSession};
    use crate::testing::{TestWorld, tool_call};
    use crate::turn::{NewMessage, SendMessage};

    fn said(role: Role, text: &str) -> ImportedMessage {
        let blocks = vec![Block::Text { text: text.to_owned() }];
        ImportedMessage { role, blocks, at: Timestamp(1), model: None }
    }

    fn with_a_tool() -> Vec<ImportedMessage> {
        let (call_id, name, content) = ("a".to_owned(), "system_time".to_owned(), "noon".to_owned());
        let result = vec![Block::ToolResult { call_id, name, content, is_error: false }];
        vec![
            said(Role::User, "what time is it?"),
            ImportedMessage { blocks: vec![tool_call("a")], ..said(Role::Assistant, "") },
            ImportedMessage { blocks: result, ..said(Role::Tool, "") },
            said(Role::Assistant, "noon"),
        ]
    }

    fn branched(world: &mut TestWorld, session: SessionId, messages: Vec<ImportedMessage>) -> BranchSession {
        let log = world.ask(GetSession::ById(session)).unwrap().log;
        BranchSession { session, log, label: None, messages }
    }

    fn original(world: &mut TestWorld, agent: AgentId) -> SessionId {
        let session = SessionId(uuid::Uuid::from_u128(7));
        let messages = [with_a_tool(), vec![said(Role::User, "thanks"), said(Role::Assistant, "welcome")]].concat();
        world.ask(ImportSession { agent, session, label: None, messages }).unwrap();
        session
    }

    #[test]
    fn a_branch_goes_on_from_an_earlier_place_and_the_original_stays() {
        let mut world = TestWorld::new();
        let agent = world.spawn("a");
        let session = original(&mut world, agent);
        let label = Some("other way".to_owned());
        let command = branched(&mut world, session, with_a_tool());
        let branch = world.ask(BranchSession { label, ..command }).unwrap();
        world.restart();
        let view = world.ask(GetSession::ById(branch)).unwrap();
        assert_eq!((view.message_count, view.label.as_deref(), view.current), (3, Some("other way"), false));
        assert_eq!(world.texts(view.log), ["what time is it?", "", "", "noon"]);
        let _asked = world.begin(SendMessage { agent, session: Some(branch), message: NewMessage::text("and now?") });
        world.step();
        let turn = world.next_call().turn();
        let inside = world.engine.world();
        let known = crate::kernel::index::turn(inside, turn).map(|turn| taint::of(inside, turn));
        assert_eq!(known, Some(Taint::TOOL), "it is as untrusted as the original");
        assert_eq!(world.texts(view.log), ["what time is it?", "", "", "noon", "and now?"]);
        let log = world.ask(GetSession::ById(session)).unwrap().log;
        assert_eq!(world.texts(log).len(), 6);
    }

    #[test]
    fn a_branch_before_the_first_turn_is_empty_and_still_untrusted() {
        let mut world = TestWorld::new();
        let agent = world.spawn("a");
        let session = original(&mut world, agent);
        let command = branched(&mut world, session, Vec::new());
        let branch = world.ask(command).unwrap();
        let view = world.ask(GetSession::ById(branch)).unwrap();
        assert_eq!((view.message_count, view.ended_turns), (0, 0));
        let inside = world.engine.world();
        let entity = crate::kernel::index::session(inside, branch).unwrap();
        assert_eq!(inside.get::<Session>(entity).unwrap().taint, Taint::TOOL);
    }

    #[test]
    fn what_is_unknown_taken_or_too_long_changes_nothing() {
        let mut world = TestWorld::new();
        let agent = world.spawn("a");
        let session = original(&mut world, agent);
        let empty = branched(&mut world, session, Vec::new());
        let missing = BranchSession { session: SessionId(uuid::Uuid::nil()), ..empty.clone() };
        assert_eq!(world.ask(missing).unwrap_err().kind, RefusalKind::NotFound);
        let many = vec![said(Role::User, "x"); limit::IMPORTED_MESSAGES_MAX + 1];
        let refusal = world.ask(BranchSession { messages: many, ..empty.clone() }).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("messages"));
        let labelled = BranchSession { label: Some("once".to_owned()), ..empty.clone() };
        world.ask(labelled.clone()).unwrap();
        let refusal = world.ask(labelled).unwrap_err();
        assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::Conflict, Some("label")));
        // What was read before the history was cleared would come back as if nothing had ever tainted it.
        world.ask(ClearHistory { agent }).unwrap();
        let before = BranchSession { messages: with_a_tool(), ..empty };
        assert_eq!(world.ask(before).unwrap_err().kind, RefusalKind::Conflict);
    }
}
