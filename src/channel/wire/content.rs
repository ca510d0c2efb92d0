//! The content of a message: one externally tagged value, the same in both directions.

use serde::{Deserialize, Serialize};

use super::bytes::FileBytes;
use crate::channel::shown::one_line;

/// What a message is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// Text, as Markdown.
    Text(String),
    /// A picture.
    Image {
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caption: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A file that is fetched.
    File {
        url: String,
        #[serde(default)]
        filename: String,
    },
    /// A file whose bytes are here.
    FileData {
        data: FileBytes,
        #[serde(default)]
        filename: String,
        #[serde(default)]
        mime_type: String,
    },
    /// Speech.
    Voice(Recording),
    /// A short film without sound.
    Animation(Recording),
    /// A film.
    Video(Recording),
    /// Music.
    Audio(Recording),
    /// A place.
    Location { lat: f64, lon: f64 },
    /// A chat command.
    Command {
        name: String,
        #[serde(default)]
        args: Vec<String>,
    },
    /// Text with buttons below it.
    Interactive {
        text: String,
        #[serde(default)]
        buttons: Vec<Vec<Button>>,
    },
    /// A button was pressed.
    ButtonCallback {
        action: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_text: Option<String>,
    },
    /// A message is to be deleted.
    DeleteMessage { message_id: String },
    /// A message with buttons is to be changed.
    EditInteractive {
        message_id: String,
        text: String,
        #[serde(default)]
        buttons: Vec<Vec<Button>>,
    },
    /// A sticker.
    Sticker { file_id: String },
    /// Several pictures and films.
    MediaGroup { items: Vec<MediaItem> },
    /// A poll.
    Poll {
        question: String,
        options: Vec<String>,
        #[serde(default)]
        is_quiz: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        correct_option_id: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        explanation: Option<String>,
    },
    /// An answer to a poll.
    PollAnswer {
        poll_id: String,
        #[serde(default)]
        option_ids: Vec<u32>,
    },
}

/// Sound or moving pictures that are fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recording {
    pub(crate) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caption: Option<String>,
    /// Its length in seconds; 0 where that is not known.
    #[serde(default)]
    pub(crate) duration_seconds: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) filename: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) performer: Option<String>,
}

/// One of several pictures and films.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum MediaItem {
    Photo {
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caption: Option<String>,
    },
    Video {
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caption: Option<String>,
        #[serde(default)]
        duration_seconds: u32,
    },
}

/// A button.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Button {
    pub(crate) label: String,
    /// What comes back when it is pressed, at most 64 bytes.
    pub(crate) action: String,
    /// `primary` or `danger`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) style: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
}

/// Bytes of the action of a button that platforms carry.
pub(crate) const ACTION_BYTES_MAX: usize = 64;

/// A file that a message brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Media {
    /// What it is, for people: `photo`, `file`, `voice message`.
    pub(crate) what: &'static str,
    /// Where it is.
    pub(crate) url: String,
    /// Its name, where it has one.
    pub(crate) filename: Option<String>,
    /// What was written below it.
    pub(crate) caption: Option<String>,
}

impl Media {
    fn new(what: &'static str, url: &str, filename: Option<&str>, caption: Option<&str>) -> Self {
        let filename = filename.map(one_line).filter(|name| !name.is_empty());
        Self { what, url: url.to_owned(), filename, caption: caption.map(str::to_owned) }
    }

    /// What stands in the place of a file that was not fetched.
    pub(crate) fn as_text(&self) -> String {
        let name = self.filename.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let line = format!("[User sent {}{name}: {}]", with_article(self.what), self.url);
        match self.caption.as_deref().filter(|caption| !caption.is_empty()) {
            Some(caption) => format!("{line}\nCaption: {caption}"),
            None => line,
        }
    }
}

/// A noun with its article.
pub(crate) fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

impl Content {
    /// The tag of its kind.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "Text",
            Self::Image { .. } => "Image",
            Self::File { .. } => "File",
            Self::FileData { .. } => "FileData",
            Self::Voice(_) => "Voice",
            Self::Animation(_) => "Animation",
            Self::Video(_) => "Video",
            Self::Audio(_) => "Audio",
            Self::Location { .. } => "Location",
            Self::Command { .. } => "Command",
            Self::Interactive { .. } => "Interactive",
            Self::ButtonCallback { .. } => "ButtonCallback",
            Self::DeleteMessage { .. } => "DeleteMessage",
            Self::EditInteractive { .. } => "EditInteractive",
            Self::Sticker { .. } => "Sticker",
            Self::MediaGroup { .. } => "MediaGroup",
            Self::Poll { .. } => "Poll",
            Self::PollAnswer { .. } => "PollAnswer",
        }
    }

    /// The text that goes beside the content in a `send`: its own, or the content as JSON.
    pub(crate) fn flattened(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => serde_json::to_string(other).unwrap_or_default(),
        }
    }

    /// Are the bytes of a file in it?
    pub(crate) const fn is_file_data(&self) -> bool {
        matches!(self, Self::FileData { .. })
    }

    /// The files that are to be fetched.
    pub(crate) fn media(&self) -> Vec<Media> {
        let recording =
            |what, it: &Recording| vec![Media::new(what, &it.url, it.filename.as_deref(), it.caption.as_deref())];
        match self {
            Self::Image { url, caption, .. } => vec![Media::new("photo", url, None, caption.as_deref())],
            Self::File { url, filename } => vec![Media::new("file", url, Some(filename), None)],
            Self::Voice(it) => recording("voice message", it),
            Self::Animation(it) => recording("animation", it),
            Self::Video(it) => recording("video", it),
            Self::Audio(it) => recording("audio file", it),
            Self::MediaGroup { items } => items
                .iter()
                .map(|item| match item {
                    MediaItem::Photo { url, caption } => Media::new("photo", url, None, caption.as_deref()),
                    MediaItem::Video { url, caption, .. } => Media::new("video", url, None, caption.as_deref()),
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// What an agent reads of it, apart from its [media](Self::media).
    pub(crate) fn as_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::FileData { filename, .. } => format!("[User sent a file ({})]", one_line(filename)),
            Self::Location { lat, lon } => format!("[User sent a location: {lat}, {lon}]"),
            Self::Command { name, args } => format!("/{name} {}", args.join(" ")).trim_end().to_owned(),
            Self::Interactive { text, buttons } | Self::EditInteractive { text, buttons, .. } => {
                with_labels(text, buttons)
            }
            // A button whose action is a command is that command.
            Self::ButtonCallback { action, .. } if action.starts_with('/') => action.clone(),
            Self::ButtonCallback { action, message_text: Some(text) } => {
                format!("[Button clicked: {action}] (on message: {text})")
            }
            Self::ButtonCallback { action, message_text: None } => format!("[Button clicked: {action}]"),
            Self::DeleteMessage { message_id } => format!("[User deleted message {message_id}]"),
            Self::Sticker { file_id } => format!("[User sent a sticker: {file_id}]"),
            Self::Poll { question, options, .. } => format!("[User sent a poll: {question}]\n{}", options.join("\n")),
            Self::PollAnswer { poll_id, option_ids } => {
                let options: Vec<String> = option_ids.iter().map(u32::to_string).collect();
                format!("[User answered poll {poll_id}: {}]", options.join(", "))
            }
            Self::Image { .. }
            | Self::File { .. }
            | Self::Voice(_)
            | Self::Animation(_)
            | Self::Video(_)
            | Self::Audio(_)
            | Self::MediaGroup { .. } => String::new(),
        }
    }
}

/// Text with buttons, for a platform that has none.
pub(crate) fn with_labels(text: &str, buttons: &[Vec<Button>]) -> String {
    let mut all = text.to_owned();
    for row in buttons.iter().filter(|row| !row.is_empty()) {
        let labels: Vec<String> = row.iter().map(|button| format!("[{}]", button.label)).collect();
        all.push_str("\n  ");
        all.push_str(&labels.join(" "));
    }
    all
}
