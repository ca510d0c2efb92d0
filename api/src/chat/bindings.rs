//! Bindings of the web chat: what a key or an event does (spec 2, UI bindings and commands). Kept where the disk is known.

use agentsvc_components::{ErrorCode, Refusal};
use serde::{Deserialize, Serialize};

use crate::chat::command;
use crate::http::error::Error;

/// Bytes of a command with its argument.
const COMMAND_BYTES_MAX: usize = 256;
/// Bytes of a description.
const DESCRIPTION_BYTES_MAX: usize = 256;

/// What the page itself can do: name and description. `api/src/web/bindings.js` carries them out.
pub(crate) const ACTIONS: &[(&str, &str)] = &[
    ("search", "search agents"),
    ("focus_prompt", "focus the message box"),
    ("new_session", "start a new session"),
    ("new_agent", "create an agent"),
    ("stop", "stop the response and close the list"),
    ("open_list", "show agents and sessions"),
    ("close_list", "hide agents and sessions"),
    ("scroll_end", "scroll to the end of the conversation"),
    ("reload", "reload the session"),
];

/// The keys that need no modifier: nobody types with them.
const BARE_KEYS: &[&str] = &["Escape", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12"];
/// The other keys that have names.
const NAMED_KEYS: &[&str] = &[
    "Enter",
    "Tab",
    "Space",
    "Plus",
    "Backspace",
    "Delete",
    "Home",
    "End",
    "PageUp",
    "PageDown",
    "ArrowUp",
    "ArrowDown",
    "ArrowLeft",
    "ArrowRight",
];
/// The modifiers, in the order in which they are written; `Mod` is Ctrl, or Cmd on a Mac.
const MODIFIERS: &[&str] = &["Mod", "Ctrl", "Meta", "Alt", "Shift"];

/// Event that runs a binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// A key is pressed.
    #[default]
    Key,
    /// A response is complete.
    Done,
    /// A turn failed.
    Error,
    /// An agent left a note to its owner.
    OwnerNotice,
}

/// What a key or an event does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// When.
    pub event: When,
    /// Which key, such as `Mod+K`; only for [`When::Key`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What the page does then: an action of its own, or a command of the chat such as `/new notes`.
    pub command: String,
    /// For people.
    #[serde(default)]
    pub description: String,
}

impl Binding {
    fn on_key(key: &str, command: &str) -> Self {
        let description = ACTIONS.iter().find(|(name, _)| *name == command).map_or("", |(_, about)| about);
        Self {
            event: When::Key,
            key: Some(key.to_owned()),
            command: command.to_owned(),
            description: description.to_owned(),
        }
    }

    /// Checks a binding that came in, and writes its key in the one form that it has.
    ///
    /// # Errors
    /// 400 naming `key`, `command` or `description`.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        let Self { event, key, command, description } = self;
        let key = match (event, key) {
            (When::Key, Some(key)) => Some(checked_key(&key).map_err(|why| Error::bad_field("key", why))?),
            (When::Key, None) => return Err(Error::bad_field("key", "key is required for the event `key`")),
            (_, Some(_)) => return Err(Error::bad_field("key", "key is only allowed with the event `key`")),
            (_, None) => None,
        };
        check_command(&command).map_err(|why| Error::bad_field("command", why))?;
        if description.len() > DESCRIPTION_BYTES_MAX {
            let text = format!("description is longer than {DESCRIPTION_BYTES_MAX} bytes");
            return Err(Error::bad_field("description", text));
        }
        Ok(Self { event, key, command: command.trim().to_owned(), description })
    }

    /// Would both be carried out for the same key, or do the same at the same event?
    #[must_use]
    pub fn clashes(&self, other: &Self) -> bool {
        self.event == other.event
            && match self.event {
                When::Key => self.key == other.key,
                _ => self.command == other.command,
            }
    }
}

/// The bindings of a home in which nobody has changed any.
#[must_use]
pub fn defaults() -> Vec<Binding> {
    let keys = [
        ("Mod+K", "search"),
        ("Escape", "stop"),
        ("Mod+Alt+N", "new_session"),
        ("Mod+Alt+A", "new_agent"),
        ("Mod+/", "focus_prompt"),
        ("Mod+End", "scroll_end"),
    ];
    keys.iter().map(|(key, command)| Binding::on_key(key, command)).collect()
}

fn check_command(command: &str) -> Result<(), String> {
    let command = command.trim();
    if command.len() > COMMAND_BYTES_MAX {
        return Err(format!("command is longer than {COMMAND_BYTES_MAX} bytes"));
    }
    if let Some(typed) = command.strip_prefix('/') {
        let (name, argument) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        let line = command::lines().find(|line| line.name.eq_ignore_ascii_case(name));
        return match line {
            None => Err("command: unknown chat command; GET /api/commands lists all commands".to_owned()),
            Some(line) if line.argument.is_empty() && !argument.trim().is_empty() => {
                Err(format!("command: /{} takes no arguments", line.name))
            }
            Some(_) => Ok(()),
        };
    }
    if ACTIONS.iter().any(|(name, _)| *name == command) {
        return Ok(());
    }
    let names: Vec<&str> = ACTIONS.iter().map(|(name, _)| *name).collect();
    Err(format!("command must be one of {}, or a chat command such as \"/new\"", names.join(", ")))
}

/// `key` in the one form that it has: modifiers in their order, then the key.
fn checked_key(written: &str) -> Result<String, String> {
    let wrong = || format!("key must look like \"Mod+K\", \"Ctrl+Shift+Enter\" or \"F2\", not {written:?}");
    if written.len() > 64 {
        return Err("key is longer than 64 bytes".to_owned());
    }
    let mut parts: Vec<&str> = written.split('+').map(str::trim).collect();
    let last = parts.pop().filter(|last| !last.is_empty()).ok_or_else(wrong)?;
    let named = |names: &[&'static str]| names.iter().copied().find(|name| name.eq_ignore_ascii_case(last));
    let mut letters = last.chars();
    let key = match (letters.next(), letters.next()) {
        (Some(letter), None) if !letter.is_whitespace() && !letter.is_control() => letter.to_uppercase().to_string(),
        _ => named(BARE_KEYS).or_else(|| named(NAMED_KEYS)).ok_or_else(wrong)?.to_owned(),
    };
    let mut held = Vec::new();
    for part in parts {
        let modifier = MODIFIERS.iter().position(|name| name.eq_ignore_ascii_case(part)).ok_or_else(wrong)?;
        if held.contains(&modifier) {
            return Err(wrong());
        }
        held.push(modifier);
    }
    held.sort_unstable();
    // Shift alone types capitals.
    let types = held.iter().all(|modifier| MODIFIERS[*modifier] == "Shift");
    if types && !BARE_KEYS.contains(&&*key) {
        return Err(format!("key: {key} is a typing key; add Mod, Ctrl, Meta or Alt"));
    }
    Ok(held.iter().map(|modifier| format!("{}+", MODIFIERS[*modifier])).chain([key]).collect())
}

/// Why the bindings could not be read or changed. The texts are for clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindingsError {
    /// What is there forbids it (409): a code and a sentence.
    #[error("{1}")]
    Conflict(ErrorCode, String),
    /// There is no such binding (404).
    #[error("binding {0} does not exist")]
    NotFound(usize),
    /// The disk failed, or what it holds are no bindings; the reason is in the log (500).
    #[error("the bindings could not be read or written")]
    Failed,
    /// The world did not put the change on record; nothing was changed.
    #[error("{0}")]
    World(Refusal),
}

impl From<BindingsError> for Error {
    fn from(error: BindingsError) -> Self {
        match error {
            BindingsError::Conflict(code, text) => Self::conflict(text).code(code),
            BindingsError::NotFound(_) => Self::not_found(error.to_string()),
            BindingsError::Failed => Self::internal(error.to_string()),
            BindingsError::World(refusal) => Self::from(refusal),
        }
    }
}

/// Puts a change of a binding on record. Called when nothing but the disk stands in the change's way any more, and before it
/// is made; when it is refused nothing changes. Waits for the disk.
pub type OnRecord<'a> = &'a dyn Fn(&Binding) -> Result<(), Refusal>;

/// Keeps the bindings. Every call touches the disk: on a tokio worker use `spawn_blocking`. A change is durable when it is
/// answered.
pub trait Bindings: Send + Sync + 'static {
    /// All of them, in order.
    ///
    /// # Errors
    /// [`BindingsError::Failed`].
    fn list(&self) -> Result<Vec<Binding>, BindingsError>;

    /// Adds one, which was checked, at the end. Gives its index.
    ///
    /// # Errors
    /// [`BindingsError::Conflict`] when it clashes with another one, or there are too many.
    fn add(&self, binding: Binding, on_record: OnRecord<'_>) -> Result<usize, BindingsError>;

    /// Removes the one at `index`; those behind it move up.
    ///
    /// # Errors
    /// [`BindingsError::NotFound`].
    fn remove(&self, index: usize, on_record: OnRecord<'_>) -> Result<Binding, BindingsError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_one_form() {
        for (written, expected) in [
            ("mod+k", "Mod+K"),
            ("Shift + Ctrl+enter", "Ctrl+Shift+Enter"),
            ("f2", "F2"),
            ("ESCAPE", "Escape"),
            ("alt+ä", "Alt+Ä"),
            ("Mod+Plus", "Mod+Plus"),
            ("shift+f3", "Shift+F3"),
        ] {
            assert_eq!(checked_key(written).as_deref(), Ok(expected));
        }
        for wrong in ["", "k", "Shift+K", "Enter", "Mod+", "Mod+Mod+K", "Hyper+K", "Mod+KK", "Mod++", "F13", "Ctrl"] {
            assert!(checked_key(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn commands_are_actions_or_of_the_chat() {
        for good in ["search", "/new", "/new my notes", "/STOP", " /usage "] {
            assert_eq!(check_command(good), Ok(()), "{good}");
        }
        for wrong in ["", "/", "/nothing", "/stop now", "serach", "new"] {
            assert!(check_command(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_defaults_pass_their_own_check_and_do_not_clash() {
        let all = defaults();
        for (at, binding) in all.iter().enumerate() {
            assert_eq!(&binding.clone().checked().unwrap(), binding);
            assert!(!all[..at].iter().any(|other| other.clashes(binding)), "{binding:?}");
        }
    }

    #[test]
    fn the_page_carries_out_every_action_and_knows_every_key() {
        let script = include_str!("../../ui/lib/keys.js");
        let page = include_str!("../../ui/pages/chat/actions.js");
        for (action, _) in ACTIONS {
            assert!(page.contains(&format!("  {action}: ")), "{action}");
        }
        for word in MODIFIERS.iter().chain(&["Space", "Plus"]) {
            assert!(script.contains(&format!("\"{word}\"")), "{word}");
        }
    }
}
