//! A message of an adapter in the form that the world knows.

use agentsvc_components::channel::message::{ChatCommand, ChatEvent, Sender};
use agentsvc_components::kernel::limit::{MESSAGE_BYTES_MAX, SCAN_INLINE_BYTES_MAX};
use agentsvc_systems::channel::limits::CHAT_BLOCKS_MAX;
use agentsvc_systems::injection::{InjectionPolicy, Shielded, shield};
use serde_json::Value;

use super::chat_command;
use super::shown::{one_line, scan};
use super::wire::Content;
use super::wire::content::Media;
use super::wire::event::Message;

/// Names that a message may mention.
const MENTIONS_MAX: usize = 32;
/// Bytes of ids and names.
const WORD_BYTES_MAX: usize = 512;
/// Bytes of a reply token, which is passed on as it is or not at all.
const TOKEN_BYTES_MAX: usize = 64 << 10;
/// Where adapters name the person behind a message of a group.
const PERSON: &str = "sender_user_id";

/// The message without its files, and the files that it names.
///
/// # Errors
/// Why it cannot be taken.
pub(super) fn event(
    message: &Message,
    instance: &str,
    account: Option<&str>,
    injection: InjectionPolicy,
    masked: impl Fn(String) -> String,
) -> Result<(ChatEvent, Vec<Media>), String> {
    let chat = message.conversation();
    if chat.is_empty() || chat.len() > WORD_BYTES_MAX {
        return Err("it names no conversation, or one whose name is too long".to_owned());
    }
    if message.librefang_user.as_ref().is_some_and(|token| token.len() > TOKEN_BYTES_MAX) {
        return Err("its reply token is too long".to_owned());
    }
    let content = message.content();
    let media = content.media();
    let mut text = content.as_text();
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(format!("its text has more than {MESSAGE_BYTES_MAX} bytes"));
    }
    let caption = media.iter().filter_map(|media| media.caption.as_deref()).find(|caption| !caption.is_empty());
    if text.is_empty() {
        text = caption.unwrap_or_default().to_owned();
    }
    let is_inline = matches!(message.content, Some(Content::FileData { .. }));
    let files = (is_inline || !media.is_empty()).then(|| stand_in(&media, &text, injection, masked));
    let found = files.as_ref().and_then(|files| files.found.clone());
    let word = |text: &str| -> Box<str> { text[..text.floor_char_boundary(WORD_BYTES_MAX)].into() };
    let maybe = |key: &str| message.meta(key).map(word);
    let mut event = ChatEvent {
        chat: chat.into(),
        thread: message.thread_id.as_deref().filter(|thread| !thread.is_empty()).map(word),
        is_group: message.is_group,
        title: message.meta("chat_title").map(|title| one_line(title).into()),
        sender: sender(message, word),
        command: pressed(message, &content).or_else(|| command(&text)),
        shielded: None,
        found: found.into_iter().map(|found| *found).collect(),
        text: text.into(),
        blocks: Vec::new(),
        files: files.map(|files| files.text.into()),
        message_id: message_id(message, &content).map(word),
        reply_token: message.librefang_user.as_deref().map(Box::from),
        mentions: words(message, "mention_names").into_iter().map(|name| word(&name)).collect(),
        was_mentioned: message.flag("was_mentioned"),
        account_id: Some(message.meta("account_id").or(account).map_or_else(|| instance.into(), word)),
        guild_id: maybe("guild_id"),
        asked_agent: maybe("thread_route_agent").or_else(|| maybe("target_agent")),
        deliver_to: message.flag("__deliver_only__").then(|| maybe("__deliver_target__").unwrap_or_default()),
    };
    scan(&mut event, injection);
    Ok((event, media))
}

/// What an agent reads in place of files, scanned like all that a chat says, and cut at [`SCAN_INLINE_BYTES_MAX`].
/// Some platforms have a secret of the adapter in the URLs of their files: `masked` takes it out.
pub(super) fn stand_in(
    files: &[Media],
    text: &str,
    injection: InjectionPolicy,
    masked: impl Fn(String) -> String,
) -> Shielded {
    let line = |media: &Media| {
        let is_said = media.caption.as_deref() == Some(text);
        let caption = media.caption.clone().filter(|_| !is_said);
        masked(Media { caption, ..media.clone() }.as_text())
    };
    let lines: Vec<String> = files.iter().take(CHAT_BLOCKS_MAX).map(line).collect();
    let mut text = lines.join("\n");
    text.truncate(text.floor_char_boundary(SCAN_INLINE_BYTES_MAX));
    shield(injection, "a message of a chat", text).here()
}

/// What tells it from others of its conversation. A button that is pressed names the message that it is on: that one may be
/// pressed again, and the press counts, not the message.
fn message_id<'a>(message: &'a Message, content: &Content) -> Option<&'a str> {
    match content {
        Content::ButtonCallback { .. } => message.meta("callback_query_id"),
        _ => message.message_id.as_deref().or_else(|| message.meta("message_id")),
    }
}

/// Who wrote it. In groups most adapters name the room as the user: then only the metadata names a person.
fn sender(message: &Message, word: impl Fn(&str) -> Box<str>) -> Sender {
    let named = message.meta(PERSON);
    let has_room = message.channel_id.as_ref().is_some_and(|room| !room.is_empty() && *room != message.user_id);
    let name = message.meta("sender_username").filter(|_| message.user_name.is_empty()).unwrap_or(&message.user_name);
    Sender {
        id: word(named.unwrap_or(&message.user_id)),
        name: one_line(name).into(),
        is_person: named.is_some() || has_room || !message.is_group,
        is_bot: message.flag("is_bot"),
        roles: words(message, "roles").into_iter().map(|role| word(&role)).collect(),
    }
}

fn words(message: &Message, key: &str) -> Vec<String> {
    let list = message.metadata.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).take(MENTIONS_MAX).map(str::to_owned).collect()
}

/// The command that a pressed button is. What answers it replaces the message that the button is on, where the platform has
/// a press apart from that message.
fn pressed(message: &Message, content: &Content) -> Option<ChatCommand> {
    let Content::ButtonCallback { action, .. } = content else { return None };
    let own = chat_command::of_button(action).map(|(name, args)| ChatCommand { name, args, edits: None });
    let id = message.message_id.as_deref().filter(|id| !id.is_empty() && id.len() <= WORD_BYTES_MAX);
    let edits = id.filter(|_| message.meta("callback_query_id").is_some()).map(Into::into);
    own.or_else(|| command(action)).map(|command| ChatCommand { edits, ..command })
}

/// The command that a text is, where there is one of this name. In groups it may name the bot: `/new@bot`.
fn command(text: &str) -> Option<ChatCommand> {
    let typed = text.trim().strip_prefix('/')?;
    let (name, args) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let name = name.split_once('@').map_or(name, |(name, _)| name).to_ascii_lowercase();
    chat_command::is_known(&name).then(|| ChatCommand { name: name.into(), args: args.trim().into(), edits: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn converted(params: Value) -> ChatEvent {
        let message: Message = serde_json::from_str(&params.to_string()).unwrap();
        event(&message, "bot", None, InjectionPolicy::default(), |text| text).unwrap().0
    }

    #[test]
    fn rooms_are_no_persons() {
        let room = converted(json!({ "user_id": "room", "user_name": "R", "is_group": true, "text": "x" }));
        assert!(!room.sender.is_person && *room.chat == *"room");
        let person = converted(json!({ "user_id": "room", "user_name": "R", "is_group": true, "text": "x",
            "metadata": { "sender_user_id": "42" } }));
        assert!(person.sender.is_person && *person.sender.id == *"42" && *person.chat == *"room");
        let channel = converted(json!({ "user_id": "u", "user_name": "U", "channel_id": "c", "is_group": true }));
        assert!(channel.sender.is_person && *channel.chat == *"c");
        let direct = converted(json!({ "user_id": "u", "user_name": "U", "text": "x" }));
        assert!(direct.sender.is_person && direct.account_id.as_deref() == Some("bot"));
    }

    #[test]
    fn tokens_are_passed_on_byte_for_byte_and_commands_known() {
        let token = "{\"uri\": \"at://x\"}\n ü";
        let it =
            converted(json!({ "user_id": "u", "user_name": "", "text": "/NEW@bot  a b ", "librefang_user": token }));
        assert_eq!(it.reply_token.as_deref(), Some(token));
        let command = it.command.unwrap();
        assert_eq!((&*command.name, &*command.args), ("new", "a b"));
        assert_eq!(converted(json!({ "user_id": "u", "user_name": "", "text": "/unheard x" })).command, None);
        let pressed =
            json!({ "user_id": "u", "user_name": "", "content": { "ButtonCallback": { "action": "/help" } } });
        assert_eq!(&*converted(pressed).command.unwrap().name, "help");
        let press = |meta: Value| {
            converted(json!({ "user_id": "u", "user_name": "", "message_id": "7", "metadata": meta,
                "content": { "ButtonCallback": { "action": "yes" } } }))
            .message_id
        };
        assert_eq!(press(json!({ "callback_query_id": "c1" })).as_deref(), Some("c1"));
        assert_eq!(press(json!({ "message_id": "7" })), None, "two presses of a message are two");
        let relay = json!({ "user_id": "u", "user_name": "", "text": "x",
            "metadata": { "__deliver_only__": true, "__deliver_target__": "ops" } });
        assert_eq!(converted(relay).deliver_to.as_deref(), Some("ops"));
        let nowhere = serde_json::from_str(r#"{ "user_id": "", "user_name": "" }"#).unwrap();
        assert!(event(&nowhere, "bot", None, InjectionPolicy::default(), |text| text).is_err());
    }

    #[test]
    fn what_stands_for_a_file_has_no_secret() {
        let media = |caption: Option<&str>| Media {
            what: "photo",
            url: "https://api.example.org/file/bot12:token/a.png".to_owned(),
            filename: None,
            caption: caption.map(str::to_owned),
        };
        let masked = |text: String| text.replace("12:token", "***");
        let line = "[User sent a photo: https://api.example.org/file/bot***/a.png]";
        let text = |media: Media| stand_in(&[media], "see", InjectionPolicy::default(), masked).text;
        assert_eq!(text(media(None)), line);
        assert_eq!(text(media(Some("see"))), line, "the caption comes once");
    }
}
