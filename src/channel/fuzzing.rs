//! What a fuzz target does with the lines of an adapter.

use agentsvc_systems::injection::InjectionPolicy;

use super::chat_command;
use super::convert;
use super::ledger::send_failure;
use super::shown::NAME_CHARS_MAX;
use super::stderr::Line;
use super::wire::event::Message;
use super::wire::{Content, Event};

/// Bytes of ids that are passed on.
const WORD_BYTES_MAX: usize = 512;

/// Reads lines as an adapter writes them to its output, and to its error output; gives how many messages there were.
pub(crate) fn lines(bytes: &[u8]) -> usize {
    let mut messages = 0;
    for line in bytes.split(|byte| *byte == b'\n') {
        let read = Event::parse(line);
        // A long line is read otherwise, and never as something else.
        if let (Ok(Some(Event::Message(large))), Ok(Some(Event::Message(plain)))) = (Event::parse_large(line), &read) {
            assert_eq!(large, *plain, "a message with a file is read in two ways");
        }
        if let Ok(Some(Event::Message(message))) = read {
            came(&message);
            messages += 1;
        }
        let said = Line::parse(&String::from_utf8_lossy(line));
        drop(send_failure(&said));
    }
    messages
}

fn came(message: &Message) {
    for policy in [InjectionPolicy::Mark, InjectionPolicy::Block] {
        let Ok((event, media)) = convert::event(message, "bot", Some("account"), policy, |text| text) else { return };
        let is_word = |text: &str| text.len() <= WORD_BYTES_MAX;
        assert!(!event.chat.is_empty() && is_word(&event.chat), "a message without a chat was taken");
        assert!(
            is_word(&event.sender.id) && event.mentions.iter().chain(&event.sender.roles).all(|name| is_word(name))
        );
        let name = &event.sender.name;
        assert!(name.chars().count() <= NAME_CHARS_MAX && !name.chars().any(char::is_control), "{name:?} is no name");
        assert_eq!(event.reply_token.as_deref(), message.librefang_user.as_deref(), "a reply token was changed");
        assert!(media.is_empty() || event.files.is_some(), "files came without what stands for them");
        if let Some(command) = &event.command {
            assert!(chat_command::is_known(&command.name), "{command:?} is no command");
        }
        if let Some(asked) = &event.asked_agent {
            assert!(is_word(asked));
        }
    }
    // What was read can be written, and read again.
    let content = message.content();
    let written = serde_json::to_string(&content).unwrap_or_default();
    assert!(serde_json::from_str::<Content>(&written).is_ok(), "content cannot be read again: {written}");
}
