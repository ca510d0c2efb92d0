//! The bodies of media.

use std::collections::BTreeMap;

use agentsvc_components::AgentId;
use agentsvc_components::media::{MediaFile, MediaKind, MediaState, MediaTask};
use agentsvc_systems::media::{MediaFilter, MediaTaskView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::crud::shown;
use crate::http::error::Error;
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

/// A request for images.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ImageBody {
    /// What they show, at most 4000 characters.
    pub(super) prompt: String,
    /// Provider, such as `openai`. Default: the first that has a key.
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    /// Pixels, with `height`.
    pub(super) width: Option<u32>,
    /// Pixels, with `width`.
    pub(super) height: Option<u32>,
    /// Number of images, 1 to 4. Default: 1.
    pub(super) count: Option<u32>,
    /// Agent whose budget pays.
    pub(super) agent_id: Option<Uuid>,
}

/// A text to be read aloud.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SpeechBody {
    /// The text, at most 10000 characters.
    pub(super) text: String,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    /// The provider's name of a voice.
    pub(super) voice: Option<String>,
    /// Format of the file, such as `mp3`.
    pub(super) format: Option<String>,
    /// Speed, 0.25 to 4. Default: 1.
    pub(super) speed: Option<f64>,
    /// Agent whose budget pays.
    pub(super) agent_id: Option<Uuid>,
}

/// A request for a video.
#[derive(Deserialize, JsonSchema)]
pub(super) struct VideoBody {
    /// What it shows, at most 2000 characters.
    pub(super) prompt: String,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    /// Length in seconds, 1 to 60. Default: the provider's.
    pub(super) duration_secs: Option<u32>,
    /// Agent whose budget pays.
    pub(super) agent_id: Option<Uuid>,
}

/// A request for music: a prompt, lyrics or both.
#[derive(Deserialize, JsonSchema)]
pub(super) struct MusicBody {
    /// How it sounds, at most 2000 characters.
    pub(super) prompt: Option<String>,
    /// What is sung, at most 3500 characters.
    pub(super) lyrics: Option<String>,
    /// Without a voice. Default: false.
    pub(super) instrumental: Option<bool>,
    /// Format of the file, such as `mp3`.
    pub(super) format: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    /// Agent whose budget pays.
    pub(super) agent_id: Option<Uuid>,
}

/// What is said of a recording, in the query or in parts of the form.
#[derive(Default, Deserialize, JsonSchema)]
pub(super) struct TranscribeQuery {
    /// Language of the recording, such as `en`.
    pub(super) language: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    /// Agent whose budget pays.
    pub(super) agent_id: Option<Uuid>,
}

/// The provider that a task is at.
#[derive(Deserialize, JsonSchema)]
pub(super) struct VideoQuery {
    /// The provider that `POST /api/media/video` named.
    pub(super) provider: Option<String>,
}

/// Which media tasks to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct TasksQuery {
    /// Maximum number of items. The response header `x-next-cursor` leads to the next page. Default: the whole list.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
    /// Only those of this kind: `image`, `speech`, `video`, `music` or `transcription`.
    kind: Option<String>,
    /// Only those in this state: `pending`, `queued`, `processing`, `completed` or `failed`.
    status: Option<String>,
    /// Only those of this agent.
    agent_id: Option<Uuid>,
    /// `newest`: newest first. Default: in order of creation.
    order: Option<String>,
}

/// The value of a parameter, which is one of some words.
fn word<T>(name: &str, value: Option<&str>, parse: fn(&str) -> Option<T>, words: &str) -> Result<Option<T>, Error> {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(None) };
    let wrong = || Error::bad_field(name, format!("query parameter '{name}': expected {words}"));
    parse(value).map(Some).ok_or_else(wrong)
}

/// The address of an upload.
fn url(file: &MediaFile) -> String {
    format!("/api/uploads/{}", file.file)
}

/// An image.
#[derive(Serialize, JsonSchema)]
pub(super) struct ImageItem {
    url: String,
    width: Option<u32>,
    height: Option<u32>,
}

shape! {
    /// Images.
    pub(super) struct Images from task: MediaTask {
        images: Vec<ImageItem> = task.files.iter().map(|file| ImageItem {
            url: url(file),
            width: file.size.map(|size| size.0),
            height: file.size.map(|size| size.1),
        }).collect(),
        model: Box<str> = task.model,
        provider: Box<str> = task.provider,
        /// The prompt as the provider changed it; null if it did not. Text of the provider.
        revised_prompt: Option<Box<str>> = task.text,
        /// What it cost at most, in dollars.
        cost_usd: f64 = task.cost.usd(),
    }
}

shape! {
    /// A recording: speech or music.
    pub(super) struct Recording from task: MediaTask { let file = task.files.into_iter().next(); } {
        /// Null only if the provider made no file.
        url: Option<String> = file.as_ref().map(url),
        /// Content type of the file, without `audio/`.
        format: Option<String> =
            file.as_ref().map(|file| file.content_type.strip_prefix("audio/").unwrap_or(&file.content_type).to_owned()),
        provider: Box<str> = task.provider,
        model: Box<str> = task.model,
        /// Read from the file; null if it does not say it.
        duration_ms: Option<u64> = file.as_ref().and_then(|file| file.duration_ms),
        /// Read from the file; null if it does not say it.
        sample_rate: Option<u32> = file.as_ref().and_then(|file| file.sample_rate),
        /// What it cost at most, in dollars.
        cost_usd: f64 = task.cost.usd(),
    }
}

/// A video that was begun.
#[derive(Serialize, JsonSchema)]
pub(super) struct VideoBegun {
    pub(super) task_id: Uuid,
    pub(super) provider: Box<str>,
}

/// A video.
#[derive(Serialize, JsonSchema)]
pub(super) struct VideoResult {
    file_url: Option<String>,
    width: Option<u32>,
    height: Option<u32>,
    duration_secs: Option<f64>,
    provider: Box<str>,
    model: Box<str>,
}

shape! {
    /// How far a video is.
    pub(super) struct VideoStatus from view: MediaTaskView {
        let task = view.task;
        let is_complete = task.ended_at.is_some() && task.fault.is_none();
        let file = task.files.first();
        let result = VideoResult {
            file_url: file.map(url),
            width: file.and_then(|file| file.size).map(|size| size.0),
            height: file.and_then(|file| file.size).map(|size| size.1),
            duration_secs: file.and_then(|file| file.duration_ms).map(|ms| ms as f64 / 1_000.0),
            provider: task.provider.clone(),
            model: task.model.clone(),
        };
    } {
        /// `pending`, `queued`, `processing`, `completed` or `failed`
        status: &'static str = task.state.as_str(),
        task_id: Uuid = view.id.0,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<VideoResult> = is_complete.then_some(result),
        /// Why it failed. May have words of the provider.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Box<str>> = task.error,
    }
}

shape! {
    /// What a recording says. Untrusted text.
    pub(super) struct Transcript from task: MediaTask {
        text: Box<str> = task.text.unwrap_or_default(),
        provider: Box<str> = task.provider,
        model: Box<str> = task.model,
        /// Null if neither the request nor the provider says it.
        language: Option<Box<str>> = task.language,
        /// How long the recording plays; null if it does not say it.
        duration_ms: Option<u64> = task.duration_ms,
        /// What it cost at most, in dollars.
        cost_usd: f64 = task.cost.usd(),
    }
}

/// A provider of media.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProviderItem {
    pub(super) name: &'static str,
    /// Whether it has a key.
    pub(super) configured: bool,
    /// `ImageGeneration`, `TextToSpeech`, `VideoGeneration`, `MusicGeneration`, `SpeechToText`
    pub(super) capabilities: Vec<&'static str>,
}

/// The providers of media.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProviderList {
    pub(super) providers: Vec<ProviderItem>,
    /// Provider of each capability if a request names none; null if none can be asked.
    pub(super) defaults: BTreeMap<&'static str, Option<&'static str>>,
}

/// What the specification calls a kind.
pub(super) const fn capability(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "ImageGeneration",
        MediaKind::Speech => "TextToSpeech",
        MediaKind::Video => "VideoGeneration",
        MediaKind::Music => "MusicGeneration",
        MediaKind::Transcription => "SpeechToText",
    }
}

/// A file of a task.
#[derive(Serialize, JsonSchema)]
pub(super) struct FileItem {
    url: String,
    content_type: Box<str>,
    bytes: u64,
    duration_ms: Option<u64>,
    width: Option<u32>,
    height: Option<u32>,
}

shape! {
    /// A media task.
    pub(super) struct MediaTaskItem from view: MediaTaskView {
        let task = view.task;
        let files = task.files.iter().map(|file| FileItem {
            url: url(file),
            content_type: file.content_type.clone(),
            bytes: file.bytes,
            duration_ms: file.duration_ms,
            width: file.size.map(|size| size.0),
            height: file.size.map(|size| size.1),
        }).collect();
    } {
        id: Uuid = view.id.0,
        /// `image`, `speech`, `video`, `music` or `transcription`
        kind: &'static str = task.kind.as_str(),
        /// `pending`, `queued`, `processing`, `completed` or `failed`
        status: &'static str = task.state.as_str(),
        /// Agent that asked; null for a client of the API.
        agent_id: Option<Uuid> = task.agent.map(|agent| agent.0),
        provider: Box<str> = task.provider,
        model: Box<str> = task.model,
        /// Beginning of the prompt, the text or the lyrics; empty for a transcription.
        prompt: Box<str> = task.prompt,
        files: Vec<FileItem> = files,
        /// Transcript, or the prompt as the provider changed it. Untrusted text.
        text: Option<Box<str>> = task.text,
        /// Reason of a failure, as one word.
        reason: Option<&'static str> = task.fault.map(agentsvc_components::media::MediaFault::as_str),
        /// Why it failed. May have words of the provider.
        error: Option<Box<str>> = task.error,
        /// What it cost at most, in dollars.
        cost_usd: f64 = task.cost.usd(),
        created_at: Moment = Moment(task.created_at),
        ended_at: Option<Moment> = task.ended_at.map(Moment),
    }
}

shown! { MediaTaskItem: MediaTaskView, "the media task"; "tasks", |call| {
    let TasksQuery { kind, status, agent_id, order, .. } = call.query()?;
    let newest = |order: &str| ["oldest", "newest"].contains(&order).then_some(order == "newest");
    Ok(MediaFilter {
        owner: call.principal.limited_to(),
        agent: agent_id.map(AgentId),
        kind: word("kind", kind.as_deref(), MediaKind::parse, &MediaKind::ALL.map(MediaKind::as_str).join(", "))?,
        state: word(
            "status",
            status.as_deref(),
            MediaState::parse,
            &MediaState::ALL.map(MediaState::as_str).join(", "),
        )?,
        newest_first: word("order", order.as_deref(), newest, "oldest or newest")?.unwrap_or_default(),
    })
} }
