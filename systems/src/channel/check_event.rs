//! What an adapter says is looked at before anything else: it is bounded, and has no control characters where ids stand.

use agentsvc_components::Refusal;
use agentsvc_components::channel::message::ChatEvent;

use super::limits;
use crate::kernel::text::check_length;

/// Refuses a message that is wrong, and cuts one whose text is too long.
pub(super) fn check(event: &mut ChatEvent) -> Result<(), Refusal> {
    if event.chat.is_empty() {
        return Err(Refusal::bad_field("chat", "a message names no chat"));
    }
    let some = |text: &Option<Box<str>>| text.clone().unwrap_or_default();
    let command = event.command.as_ref().map(|command| command.name.clone()).unwrap_or_default();
    let ids = [
        ("chat", event.chat.clone()),
        ("thread", some(&event.thread)),
        ("title", some(&event.title)),
        ("sender.id", event.sender.id.clone()),
        ("sender.name", event.sender.name.clone()),
        ("message_id", some(&event.message_id)),
        ("account_id", some(&event.account_id)),
        ("guild_id", some(&event.guild_id)),
        ("asked_agent", some(&event.asked_agent)),
        ("deliver_to", some(&event.deliver_to)),
        ("command", command),
    ];
    for (field, text) in ids {
        check_length(field, &text, limits::CHAT_ID_BYTES_MAX)?;
    }
    if event.chat.chars().any(char::is_control) || event.sender.id.chars().any(char::is_control) {
        return Err(Refusal::bad_field("chat", "the id of a chat or a sender has a control character"));
    }
    check_length("reply_token", event.reply_token.as_deref().unwrap_or_default(), limits::REPLY_TOKEN_BYTES_MAX)?;
    let lists = [("mentions", &event.mentions), ("sender.roles", &event.sender.roles)];
    for (field, list) in lists {
        if list.len() > limits::CHAT_MENTIONS_MAX {
            return Err(Refusal::bad_field(
                field,
                format!("{field} has more than {} items", limits::CHAT_MENTIONS_MAX),
            ));
        }
        list.iter().try_for_each(|text| check_length(field, text, limits::CHAT_ID_BYTES_MAX))?;
    }
    if event.blocks.len() > limits::CHAT_BLOCKS_MAX {
        return Err(Refusal::bad_field("blocks", format!("more than {} attachments", limits::CHAT_BLOCKS_MAX)));
    }
    let cut = |text: &str| Box::from(&text[..text.floor_char_boundary(limits::CHAT_TEXT_BYTES_MAX)]);
    event.text = cut(&event.text);
    event.shielded = event.shielded.as_deref().map(cut);
    event.files = event.files.as_deref().map(cut);
    if let Some(command) = &mut event.command {
        command.args = cut(&command.args);
    }
    Ok(())
}
