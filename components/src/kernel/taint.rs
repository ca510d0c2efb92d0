//! Where what a turn has read comes from, as far as nobody vouches for it. What is judged by it stands in
//! `systems/src/taint/mod.rs`.

use std::borrow::Cow;

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

/// Sources of untrusted content, as a set. Two bytes: every turn, session and agent has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Taint(u16);

impl Taint {
    /// Nothing untrusted.
    pub const NONE: Self = Self(0);
    /// Pages and search results.
    pub const WEB: Self = Self(1);
    /// Files that were sent with a message.
    pub const UPLOAD: Self = Self(1 << 1);
    /// What another agent wrote.
    pub const AGENT: Self = Self(1 << 2);
    /// Custom events.
    pub const EVENT: Self = Self(1 << 3);
    /// What a command wrote that could reach the network.
    pub const COMMAND: Self = Self(1 << 4);
    /// Results of tools that nobody vouches for, such as those of a client.
    pub const TOOL: Self = Self(1 << 5);
    /// Something in it looked like a prompt injection.
    pub const INJECTION: Self = Self(1 << 6);
    /// A client that needs no key, such as one of the A2A protocol, began it; once it is [read](Self::as_read) by another turn,
    /// what such a client wrote.
    pub const GUEST: Self = Self(1 << 7);
    /// An agent of another node began it; once it is [read](Self::as_read), what such an agent wrote.
    pub const PEER: Self = Self(1 << 8);
    /// Text of clients that need no key, in a conversation that none of them began.
    const GUEST_READ: Self = Self(1 << 9);
    /// Text of other nodes, in a conversation that none of them began.
    const PEER_READ: Self = Self(1 << 10);
    /// Someone who is no administrator began it in a chat of a channel; once it is [read](Self::as_read), what such people wrote.
    pub const CHAT: Self = Self(1 << 11);
    /// Text of such people, in a conversation that none of them began.
    const CHAT_READ: Self = Self(1 << 13);

    /// Every label with its word.
    pub const LABELS: [(Self, &'static str); 10] = [
        (Self::WEB, "web"),
        (Self::UPLOAD, "upload"),
        (Self::AGENT, "agent"),
        (Self::EVENT, "event"),
        (Self::COMMAND, "command"),
        (Self::TOOL, "tool"),
        (Self::INJECTION, "injection"),
        (Self::GUEST, "guest"),
        (Self::PEER, "peer"),
        (Self::CHAT, "chat"),
    ];

    /// Those of strangers: of clients that need no key and of other nodes.
    const STRANGERS: Self = Self(Self::GUEST.0 | Self::PEER.0);

    /// Those of everyone who is not the owner: of strangers, and of people in chats.
    const OUTSIDERS: Self = Self(Self::STRANGERS.0 | Self::CHAT.0);

    /// How far behind a label of outsiders that of their text is.
    const READ_SHIFT: u32 = 2;

    /// The same as content that a turn reads: text of outsiders in a conversation does not make it a conversation that
    /// outsiders began.
    #[must_use]
    pub const fn as_read(self) -> Self {
        Self((self.0 & !Self::OUTSIDERS.0) | (self.of_outsiders().0 << Self::READ_SHIFT))
    }

    /// With the labels of outsiders for their text: both have one word.
    const fn shown(self) -> Self {
        Self(self.0 | ((self.0 & (Self::GUEST_READ.0 | Self::PEER_READ.0 | Self::CHAT_READ.0)) >> Self::READ_SHIFT))
    }

    /// Only the labels of what strangers began.
    #[must_use]
    pub const fn of_strangers(self) -> Self {
        Self(self.0 & Self::STRANGERS.0)
    }

    /// Only the labels of what others than the owner began: strangers, and people in chats who are no administrators.
    #[must_use]
    pub const fn of_outsiders(self) -> Self {
        Self(self.0 & Self::OUTSIDERS.0)
    }

    /// Nothing untrusted at all?
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Has it all of the other?
    #[must_use]
    pub const fn holds(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The words of its labels. A label of a later release has none.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        let shown = self.shown();
        Self::LABELS.iter().filter(|(label, _)| shown.holds(*label)).map(|(_, word)| *word).collect()
    }
}

/// What an agent has of untrusted content, beside its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentTaint {
    /// What its instructions came from: those of an agent that a tainted turn spawned, or goals that one set.
    pub own: Taint,
    /// What turns had read that wrote files of its workspace.
    pub files: Taint,
    /// What any of its turns has read.
    pub seen: Taint,
}

/// Addresses that tainted turns of a session may fetch, as hashes, the newest last; at most
/// [`ADDRESSES_MAX`](crate::kernel::limit::ADDRESSES_MAX). A session without any has no such component.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownAddresses(pub Vec<u64>);

/// What the result of a tool call brought into its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntrustedContent {
    /// The sources.
    pub taint: Taint,
    /// The call in a few words, such as `web_fetch https://example.org/`; for people.
    pub source: Box<str>,
    /// What the scanner found in it.
    pub found: Option<Box<InjectionFound>>,
    /// Hashes of the addresses in what the tool read outside, which the session may fetch. Neither sentences of the tool itself nor
    /// what it was given teach any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<u64>,
}

/// What the prompt-injection scanner found in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InjectionFound {
    /// `suspicious` or `hostile`.
    pub level: Cow<'static, str>,
    /// The scanner's score.
    pub score: u32,
    /// Its reasons, the heaviest first.
    pub reasons: Vec<Cow<'static, str>>,
    /// Where the first finding begins, in bytes.
    pub at: usize,
    /// The text was withheld.
    pub withheld: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_apart_and_have_words() {
        let all = Taint::LABELS.iter().fold(Taint::NONE, |all, (label, _)| {
            assert!(!label.is_none() && !all.holds(*label));
            all.with(*label)
        });
        assert_eq!(all.words().len(), Taint::LABELS.len());
        assert!(Taint::NONE.words().is_empty() && Taint::NONE.is_none());
        assert_eq!(Taint::WEB.with(Taint::EVENT).words(), ["web", "event"]);
    }
}
