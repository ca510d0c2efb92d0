//! What others ask to be sent, such as the answer to a hook: known by a key, so that asking again sends nothing again.

use agentsvc_components::channel::SendId;
use agentsvc_components::channel::send::{SendCause, SendContent};
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::index::Sends;
use super::list::SendView;
use super::post::Outgoing;
use super::receive::no_instance;
use super::send::{SendTo, check_content, into_chat, place};
use super::{error_codes, rules};
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::View;

/// Sends a text to a chat: stored with the reply, and sent by a job. Asked for again under the same key it changes nothing,
/// and the reply is the message as it is by then; for as long as that is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeliverToChat {
    /// What asks for it knows it by this.
    pub key: Uuid,
    /// Where.
    pub to: SendTo,
    /// What.
    pub text: String,
    /// Whose words they are.
    pub agent: Option<AgentId>,
    /// A caller from outside named the chat: it must be one to which agents may send.
    #[serde(default)]
    pub is_callers: bool,
}

command! {
    write "deliver_to_chat" DeliverToChat => SendView, Root, |it, world| Answer::stored(run(world, it))
}

fn run(world: &mut World, it: DeliverToChat) -> Result<SendView, Refusal> {
    let sent = deliver(world, it)?;
    SendView::seen(world, sent)
}

/// Sends a text, once for each key.
///
/// # Errors
/// The text is empty or goes to no chat of an instance; or there is no room for it (429). Nothing is stored then.
pub(crate) fn deliver(world: &mut World, it: DeliverToChat) -> Result<SendId, Refusal> {
    if let Some(known) = world.resource::<Sends>().by_key(it.key) {
        return Ok(known);
    }
    let what = SendContent { text: it.text, content: None };
    check_content(&what)?;
    let (instance, chat, thread) = place(world, &it.to)?;
    let of = rules::of(world, &instance).ok_or_else(|| no_instance(&instance))?;
    if it.is_callers && !rules::may_send_to(&of, &chat) {
        let text =
            "a caller may have answers sent to the default_conversation of the channel, and to chats in allow_send_to";
        let refusal = Refusal::of(error_codes::CHANNEL_SEND_DENIED, text);
        return Err(Refusal { field: Some("recipient".to_owned()), ..refusal });
    }
    let (cause, agent, key) = (SendCause::Target, it.agent, Some(it.key));
    into_chat(world, &of, (&it.to, &chat), Outgoing { cause, agent, key, what, thread, ..Outgoing::default() })
}
