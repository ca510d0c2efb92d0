//! A message is answered again. The new turn takes the place of the one before it; what that one wrote stays in the log, and the
//! model no longer reads it.

use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::session::Session;
use agentsvc_components::{LogId, Refusal, TurnId};

/// The turns that a message answers again, as the rows of their session tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    /// The first of the turns that answer the same message.
    pub first: TurnId,
    /// The ordinal of the last of them.
    pub last: u32,
    /// The log from which they were read. One that is not the session's any more was cleared meanwhile.
    pub log: LogId,
}

/// Refuses to repeat what is not the end of the session: what was said after it was said in answer to it. `session` is absent when the
/// message would create it.
pub(super) fn check(world: &World, session: Option<Entity>, repeated: Repeated) -> Result<(), Refusal> {
    let home = session.and_then(|session| world.get::<Session>(session));
    let Some(home) = home.filter(|home| home.log == repeated.log && home.next_ordinal == repeated.last + 1) else {
        return Err(conflict("the turn is not the last of the session any more; read the session again"));
    };
    if home.head.is_some() {
        return Err(conflict("the turn is still open; wait for its end, or stop it"));
    }
    if home.compacted > repeated.last {
        return Err(conflict("the turn is part of the session's summary; send the message as a new one"));
    }
    Ok(())
}

fn conflict(text: &str) -> Refusal {
    Refusal { field: Some("repeats".to_owned()), ..Refusal::conflict(text) }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::RefusalKind;

    use super::*;
    use crate::session::{ClearHistory, GetSession};
    use crate::testing::TestWorld;
    use crate::turn::{NewMessage, SendMessage, TurnReply};
    use agentsvc_components::{AgentId, SessionId};

    fn message(agent: AgentId, session: Option<SessionId>, repeats: Option<Repeated>) -> SendMessage {
        SendMessage { agent, session, message: NewMessage { repeats, ..NewMessage::text("why?") } }
    }

    fn answered(world: &mut TestWorld, command: SendMessage, text: &str) -> TurnReply {
        let asked = world.begin(command);
        world.step();
        let call = world.next_call();
        world.answer(call.attempt, text);
        asked.take().unwrap().unwrap()
    }

    #[test]
    fn a_turn_that_repeats_another_says_so_in_its_first_row() {
        let mut world = TestWorld::new();
        let agent = world.spawn("scout");
        let first = answered(&mut world, message(agent, None, None), "because").turn;
        let log = world.ask(GetSession::Current(agent)).unwrap().log;
        let repeats = Some(Repeated { first, last: 0, log });
        answered(&mut world, message(agent, None, repeats), "it depends");
        let repeats = Some(Repeated { first, last: 1, log });
        answered(&mut world, message(agent, None, repeats), "nobody knows");
        world.restart();
        let rows = world.rows(log);
        let repeated: Vec<_> = rows.iter().map(|row| row.repeats).collect();
        assert_eq!(repeated, [None, None, Some(first), None, Some(first), None]);
        assert_eq!(world.texts(log), ["why?", "because", "why?", "it depends", "why?", "nobody knows"]);
        assert!(rows[4].turn != rows[2].turn && rows[2].turn != first);
    }

    #[test]
    fn what_is_not_the_end_of_the_session_is_not_repeated() {
        let mut world = TestWorld::new();
        let agent = world.spawn("scout");
        let first = answered(&mut world, message(agent, None, None), "because").turn;
        let log = world.ask(GetSession::Current(agent)).unwrap().log;
        let last = Repeated { first, last: 0, log };
        let refused = |world: &mut TestWorld, session, repeated| {
            let refusal = world.ask(message(agent, session, Some(repeated))).unwrap_err();
            assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::Conflict, Some("repeats")));
        };
        refused(&mut world, None, Repeated { last: 1, ..last });
        refused(&mut world, None, Repeated { log: LogId(log.0 + 1), ..last });
        // A session that the message would create has nothing to repeat, and is not created.
        let absent = SessionId(uuid::Uuid::from_u128(7));
        refused(&mut world, Some(absent), last);
        assert!(world.ask(GetSession::ById(absent)).is_err());
        let open = world.begin(message(agent, None, None));
        world.step();
        refused(&mut world, None, Repeated { last: 1, ..last });
        let call = world.next_call();
        world.answer(call.attempt, "still because");
        open.take().unwrap().unwrap();
        // Another message came after it.
        refused(&mut world, None, last);
        assert_eq!(world.texts(log).len(), 4);
        world.ask(ClearHistory { agent }).unwrap();
        refused(&mut world, None, Repeated { last: 1, ..last });
    }
}
