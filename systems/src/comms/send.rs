//! A client sends a message to an agent in the name of another one.

use agentsvc_components::session::message::text_of;
use agentsvc_components::{AgentId, Refusal, SessionId};
use serde::{Deserialize, Serialize};

use super::note;
use crate::kernel::command::{Answer, command};
use crate::kernel::index;
use crate::turn::{NewMessage, SendMessage, TurnReply};

/// Sends a message in the name of an agent, by the rules of every message of a client, and waits for the turn's end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SendBetween {
    /// In whose name; it lives.
    pub from: AgentId,
    /// To whom.
    pub to: AgentId,
    /// In which session; as in [`SendMessage`].
    pub session: Option<SessionId>,
    /// What is said.
    pub message: NewMessage,
}

command! {
    write "send_between" SendBetween => TurnReply, Id(|it| it.to.0), |it, world| {
        let Self { from, to, session, message } = it;
        if let Err(refusal) = named("from", index::agent(world, from)) {
            return Answer::Now(Err(refusal));
        }
        if let Err(refusal) = named("to", index::agent(world, to)) {
            return Answer::Now(Err(refusal));
        }
        let text = text_of(&message.blocks);
        let answer = SendMessage { agent: to, session, message }.run(world);
        if matches!(answer, Answer::Later(_)) {
            note::sent(world, from, to, &text);
        }
        answer
    }
}

/// The refusal names the field.
fn named<T>(field: &str, found: Result<T, Refusal>) -> Result<T, Refusal> {
    found.map_err(|refusal| Refusal { field: Some(field.to_owned()), ..refusal })
}
