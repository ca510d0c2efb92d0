//! What the daemon tells adapters: commands.

use serde::Serialize;

use super::content::{Button, Content};

/// A line that no adapter understands. It says so, after everything before it was handled.
pub(crate) const BARRIER: &[u8] = b"?\n";
/// How the SDKs and the examples begin what they say of such a line.
const NOT_JSON: [&str; 2] = ["invalid json", "protocol parse error"];

/// Does an error say that the adapter has come to the [barrier](BARRIER)?
pub(crate) fn is_barrier_answer(error: &str) -> bool {
    NOT_JSON.iter().any(|start| error.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)))
}

/// A command to an adapter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "method", content = "params", rename_all = "snake_case")]
pub(crate) enum Command {
    ReadyAck,
    Shutdown,
    Send(Box<Send>),
    Typing {
        channel_id: String,
    },
    Reaction {
        channel_id: String,
        message_id: String,
        reaction: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<Phase>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_name: Option<String>,
    },
    Interactive {
        channel_id: String,
        message: Buttons,
    },
    StreamStart {
        channel_id: String,
        stream_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        thread_id: Option<String>,
    },
    StreamDelta {
        stream_id: String,
        text: String,
    },
    StreamEnd {
        stream_id: String,
    },
}

/// A message to a chat.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Send {
    pub(crate) channel_id: String,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thread_id: Option<String>,
    pub(crate) user: User,
    /// Only for adapters that declare the capability `ack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
}

/// Who a message is for. The token is written even where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct User {
    pub(crate) platform_id: String,
    pub(crate) display_name: String,
    pub(crate) librefang_user: Option<String>,
}

/// Text with buttons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Buttons {
    pub(crate) text: String,
    pub(crate) buttons: Vec<Vec<Button>>,
}

/// Where the work on a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    Queued,
    ToolUse,
    Streaming,
    Done,
    Error,
}

impl Phase {
    /// Its sign.
    pub(crate) const fn emoji(self) -> &'static str {
        match self {
            Self::Queued => "👀",
            Self::ToolUse => "⚙️",
            Self::Streaming => "✍️",
            Self::Done => "✅",
            Self::Error => "❌",
        }
    }
}

/// Characters of the name of a tool beside a sign.
const TOOL_NAME_CHARS: usize = 64;

impl Command {
    /// The sign that belongs to a phase.
    pub(crate) fn reaction(channel_id: &str, message_id: &str, phase: Phase, tool: Option<&str>) -> Self {
        let tool = tool.filter(|_| phase == Phase::ToolUse);
        Self::Reaction {
            channel_id: channel_id.to_owned(),
            message_id: message_id.to_owned(),
            reaction: phase.emoji(),
            phase: Some(phase),
            tool_name: tool.map(|name| name.chars().take(TOOL_NAME_CHARS).collect()),
        }
    }

    /// Has it the bytes of a file, so that its line is long?
    pub(crate) fn is_large(&self) -> bool {
        matches!(self, Self::Send(send) if send.content.as_ref().is_some_and(Content::is_file_data))
    }

    /// The line that goes to the adapter.
    pub(crate) fn line(&self) -> Vec<u8> {
        // It has only texts and numbers, which always have a form.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}
