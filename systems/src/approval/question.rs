//! Something outside the world asks a person, such as an MCP server during a call: yes or no, or a form to fill in.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use agentsvc_components::approval::{ApprovalState, GatedCall};
use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::ToolCall;
use agentsvc_components::{AgentId, ApprovalId, Refusal, TurnId};

use super::ask::{Texts, began_by_strangers, begin, check_room, hash, on_record};
use super::invoke::running;
use super::parked::{self, Ended, Waiting};
use super::{answer, audit_kinds};
use crate::audit::Audit;
use crate::kernel::command::{Answer, ReplySlot, command};
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Outbox;
use crate::kernel::text::check_length;

/// Asks a person on behalf of an agent, and is answered when the approval has ended: approved, rejected or expired. Who asks
/// and goes away withdraws the question by its id ([`WithdrawInvocation`](super::WithdrawInvocation)).
///
/// Refused when the agent does not live (404) or does not run (409), when a text is too long or the form is not flat (400),
/// and when too many approvals are pending (429).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AskPerson {
    /// The question's own id.
    pub id: Uuid,
    /// On whose behalf.
    pub agent: AgentId,
    /// Who asks for what, in a word.
    pub action: Box<str>,
    /// What the person reads first.
    pub description: Box<str>,
    /// The particulars, as compact JSON.
    pub payload: Box<str>,
    /// The form to fill in, as a flat JSON schema.
    pub answer_schema: Option<Box<str>>,
    /// The turn during which it is asked, if there is one: a question in one that strangers began is theirs.
    #[serde(default)]
    pub turn: Option<TurnId>,
}

/// How a question ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonAnswer {
    /// Approved, rejected or expired.
    pub state: ApprovalState,
    /// The filled in form, a JSON object that its schema takes, when it was approved and has one.
    pub answer: Option<Box<str>>,
}

command! {
    write "ask_person" AskPerson => PersonAnswer, Id(|it| it.agent.0), |it, world| {
        match judge(world, &it) {
            Ok(()) => Answer::Later(Box::new(move |world, slot| park(world, it, slot))),
            Err(refusal) => Answer::Now(Err(refusal)),
        }
    }
}

fn judge(world: &World, question: &AskPerson) -> Result<(), Refusal> {
    running(world, question.agent)?;
    check_length("action", &question.action, limit::APPROVAL_ACTION_BYTES_MAX)?;
    check_length("description", &question.description, limit::APPROVAL_TEXT_BYTES_MAX)?;
    check_length("payload", &question.payload, limit::APPROVAL_PAYLOAD_BYTES_MAX)?;
    if let Some(schema) = &question.answer_schema {
        answer::check_schema(schema).map_err(|why| Refusal::bad_field("answer_schema", why))?;
    }
    check_room(world, question.agent, is_strangers(world, question.turn))
}

fn is_strangers(world: &World, turn: Option<TurnId>) -> bool {
    turn.and_then(|turn| index::turn(world, turn)).is_some_and(|turn| began_by_strangers(world, turn))
}

fn park(world: &mut World, question: AskPerson, slot: ReplySlot<PersonAnswer>) {
    let AskPerson { id: wait, agent, action, description, payload, answer_schema, turn } = question;
    let call = ToolCall { id: String::new(), name: action.to_string(), input: payload.to_string() };
    let gated = GatedCall { turn: TurnId(wait), index: GatedCall::CLIENT_CALL, hash: hash(&call) };
    let texts = Texts { action, description, payload, answer_schema };
    let entity = begin(world, agent, texts, (Some(gated), is_strangers(world, turn)));
    let id = id_of::<ApprovalId>(world, entity);
    world.audit(audit_kinds::APPROVAL_REQUESTED, agent, on_record(id, &call.name));
    parked::wait(world, id, wait, Waiting::Question(slot));
}

/// The approval of a question has ended.
pub(super) fn ended(world: &mut World, slot: ReplySlot<PersonAnswer>, ended: Ended<'_>) {
    let Ended { state, answer, .. } = ended;
    world.resource_mut::<Outbox>().reply(slot, Ok(PersonAnswer { state, answer }));
}
