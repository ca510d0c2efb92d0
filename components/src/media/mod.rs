//! Media that providers make or read: images, speech, videos, music and transcripts (spec 2, Media generation).

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::attempt::Attempt;
use crate::kernel::domain::Domain;
use crate::kernel::effect::Effect;
use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, FileId, SessionId, uuid_id};
use crate::kernel::money::Micros;
use crate::kernel::record::{is_default, stored};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "media", uses: &[] };

uuid_id! {
    /// Names one media task.
    MediaTaskId
}

enum_words! {
    /// What a provider is asked for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MediaKind [ALL, as_str, parse] {
        /// Images of a prompt.
        #[default]
        Image = "image",
        /// A text that is read aloud.
        Speech = "speech",
        /// A video of a prompt.
        Video = "video",
        /// A piece of music of a prompt or lyrics.
        Music = "music",
        /// The text of a recording.
        Transcription = "transcription",
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaRequest {
    /// Make images.
    Image {
        /// What they show.
        prompt: Box<str>,
        /// How many.
        count: u32,
        /// Width and height in pixels; `None` leaves them to the provider.
        size: Option<(u32, u32)>,
    },
    /// Read a text aloud.
    Speech {
        /// The text.
        text: Box<str>,
        /// The provider's name of a voice.
        voice: Option<Box<str>>,
        /// The format of the file, such as `mp3`.
        format: Option<Box<str>>,
        /// How fast, in percent.
        speed_percent: Option<u32>,
    },
    /// Make a video.
    Video {
        /// What it shows.
        prompt: Box<str>,
        /// Its length.
        duration_secs: Option<u32>,
    },
    /// Make music.
    Music {
        /// How it sounds.
        prompt: Option<Box<str>>,
        /// What is sung.
        lyrics: Option<Box<str>>,
        /// Without a voice.
        instrumental: bool,
        /// The format of the file, such as `mp3`.
        format: Option<Box<str>>,
    },
    /// Write down what a recording says.
    Transcription {
        /// The recording.
        file: FileId,
        /// The recording was uploaded for this request alone, and goes with its end.
        is_temporary: bool,
        /// Its language, such as `en`.
        language: Option<Box<str>>,
    },
}

impl MediaRequest {
    /// What is asked for.
    #[must_use]
    pub const fn kind(&self) -> MediaKind {
        match self {
            Self::Image { .. } => MediaKind::Image,
            Self::Speech { .. } => MediaKind::Speech,
            Self::Video { .. } => MediaKind::Video,
            Self::Music { .. } => MediaKind::Music,
            Self::Transcription { .. } => MediaKind::Transcription,
        }
    }

    /// The words of it: a prompt, the text that is read aloud, or lyrics; empty for a transcription.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::Image { prompt, .. } | Self::Video { prompt, .. } => prompt,
            Self::Speech { text, .. } => text,
            Self::Music { prompt, lyrics, .. } => prompt.as_deref().or(lyrics.as_deref()).unwrap_or_default(),
            Self::Transcription { .. } => "",
        }
    }
}

/// Remove an upload that was for one request alone, whose try did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropUpload(pub FileId);

impl Effect for DropUpload {}

enum_words! {
    /// Where a task is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MediaState [ALL, as_str, parse] {
        /// The provider has not taken it.
        #[default]
        Pending = "pending",
        /// The provider has taken it, and has not begun.
        Queued = "queued",
        /// The provider works on it, or the result is on its way here.
        Processing = "processing",
        /// The result is here.
        Completed = "completed",
        /// There is no result.
        Failed = "failed",
    }
}

impl MediaState {
    /// Is it still to end?
    #[must_use]
    pub const fn is_open(self) -> bool {
        !matches!(self, Self::Completed | Self::Failed)
    }
}

enum_words! {
    /// Why there is no result.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MediaFault [ALL, as_str] {
        /// The provider has no key, or refused it.
        Auth = "auth",
        /// The provider refused the request.
        Refused = "refused",
        /// A content filter of the provider stopped it.
        Filtered = "filtered",
        /// The provider is asked too often, or its credit is used up.
        RateLimited = "rate_limited",
        /// The provider cannot be reached.
        Unreachable = "unreachable",
        /// The provider did not answer or end in time.
        Timeout = "timeout",
        /// The provider failed, or broke off.
        #[default]
        Provider = "provider",
        /// The provider's answer cannot be read, or is not what was asked for.
        Protocol = "protocol",
        /// A budget has no room, or the price is not known.
        Budget = "budget",
        /// The uploads have no room for the result, or the recording is gone.
        Storage = "storage",
        /// The daemon ended while the provider was asked; it is not asked again.
        Unknown = "unknown",
    }
}

/// One file of a result. All but its id is read from the file itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaFile {
    /// The upload.
    pub file: FileId,
    /// Its content type.
    pub content_type: Box<str>,
    /// Its bytes.
    pub bytes: u64,
    /// How long it plays, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Samples in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// Width and height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<(u32, u32)>,
}

/// One task. The whole request stands in its job alone.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaTask {
    /// What is asked for.
    pub kind: MediaKind,
    /// Whose it is; `None` is a client of the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The session in which the agent asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// What a repetition is known by; empty for what is never one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub key: Box<str>,
    /// The provider.
    pub provider: Box<str>,
    /// The model.
    pub model: Box<str>,
    /// The beginning of the words of the request, by which people know it again.
    #[serde(default, skip_serializing_if = "is_default")]
    pub prompt: Box<str>,
    /// Where it is.
    pub state: MediaState,
    /// The most that it can cost.
    pub most: Micros,
    /// Is its price known?
    pub is_priced: bool,
    /// The labels of strangers, where any of them began the turn that asked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub strangers: Taint,
    /// The session in which they began it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_in: Option<SessionId>,
    /// The reservation, while the provider is asked for the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Attempt>,
    /// How often the daemon ended before the provider was asked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarts: u8,
    /// What it cost.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cost: Micros,
    /// The task, as the provider knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Box<str>>,
    /// The result.
    #[serde(default, skip_serializing_if = "is_default")]
    pub files: Vec<MediaFile>,
    /// The transcript, or the prompt as the provider changed it. Untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Box<str>>,
    /// The language of the transcript, where the provider says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Box<str>>,
    /// How long the recording of a transcript plays, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<MediaFault>,
    /// The same for people. May hold words of the provider: untrusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<str>>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it ended; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Whose share of the tasks it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

stored!(MediaTask: b'3', MediaTaskId);

impl MediaTask {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        let files = self.files.iter().map(|file| size_of::<MediaFile>() + file.content_type.len()).sum::<usize>();
        let texts = self.key.len() + self.provider.len() + self.model.len() + self.prompt.len();
        texts + files + [&self.remote, &self.text, &self.language, &self.error].into_iter().map(long).sum::<usize>()
    }
}
