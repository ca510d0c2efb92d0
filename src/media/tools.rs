//! The tools of agents. A call is a task under a key of its own, so that one that is repeated after a restart finds it and pays
//! nothing again. Results are uploads of the agent.

use std::fmt::Write as _;
use std::time::Duration;

use agentsvc_api::http::files::FilesError;
use agentsvc_api::media::host::{MediaHost, Wanted};
use agentsvc_api::upload::files::Upload;
use agentsvc_components::FileId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::media::{MediaRequest, MediaState, MediaTaskId};
use agentsvc_systems::kernel::entities::Get;
use agentsvc_systems::media::limits::MEDIA_AUDIO_BYTES_MAX;
use agentsvc_systems::media::{AwaitMedia, CreateMedia, MediaTaskView};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::Opened;
use super::choose::Chooser;
use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// How long a call waits for its result; less than a tool may run.
const WAIT_MAX: Duration = Duration::from_secs(110);

/// The table rows.
pub(super) const ALL: [Tool; 6] = [
    Tool::new::<Image>(
        "image_generate",
        "Generates images of a prompt and keeps them as uploads. It costs money.",
        |context, text| on_input(context, text, image),
    )
    .safe()
    .order(50),
    Tool::new::<Speech>(
        "text_to_speech",
        "Reads a text aloud and keeps the recording as an upload. It costs money.",
        |context, text| on_input(context, text, speech),
    )
    .safe()
    .order(50),
    Tool::new::<Video>(
        "video_generate",
        "Begins to generate a video of a prompt, which takes minutes; ask for it with video_status. It costs money.",
        |context, text| on_input(context, text, video),
    )
    .safe()
    .order(50),
    Tool::new::<Status>(
        "video_status",
        "Returns how far a media task is, such as a video, and its files.",
        |context, text| on_input(context, text, status),
    )
    .safe()
    .order(50),
    Tool::new::<Music>(
        "music_generate",
        "Generates music of a prompt or lyrics and keeps it as an upload. It costs money.",
        |context, text| on_input(context, text, music),
    )
    .safe()
    .order(50),
    Tool::new::<Recording>(
        "transcribe",
        "Returns the text of a recording that is an upload of yours. The text is untrusted. It costs money.",
        |context, text| on_input(context, text, transcribe),
    )
    .safe()
    .order(50),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Image {
    /// What the images show.
    prompt: String,
    /// Number of images, 1 to 4. Default: 1.
    count: Option<u32>,
    /// Pixels, with `height`.
    width: Option<u32>,
    /// Pixels, with `width`.
    height: Option<u32>,
    /// Provider; by default the one that is configured.
    provider: Option<String>,
    /// Model of the provider.
    model: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Speech {
    /// The text.
    text: String,
    /// The provider's name of a voice.
    voice: Option<String>,
    /// Format of the file, such as mp3.
    format: Option<String>,
    /// Speed, 0.25 to 4. Default: 1.
    speed: Option<f64>,
    /// Provider; by default the one that is configured.
    provider: Option<String>,
    /// Model of the provider.
    model: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Video {
    /// What the video shows.
    prompt: String,
    /// Length in seconds, 1 to 60.
    duration_secs: Option<u32>,
    /// Provider; by default the one that is configured.
    provider: Option<String>,
    /// Model of the provider.
    model: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Status {
    /// The id that the call that began it returned.
    task_id: Uuid,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Music {
    /// How the music sounds.
    prompt: Option<String>,
    /// What is sung.
    lyrics: Option<String>,
    /// Without a voice. Default: false.
    instrumental: Option<bool>,
    /// Format of the file, such as mp3.
    format: Option<String>,
    /// Provider; by default the one that is configured.
    provider: Option<String>,
    /// Model of the provider.
    model: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Recording {
    /// Id of the upload.
    file_id: Uuid,
    /// Language of the recording, such as en.
    language: Option<String>,
    /// Provider; by default the one that is configured.
    provider: Option<String>,
    /// Model of the provider.
    model: Option<String>,
}

/// Who is asked, as the call names it.
#[derive(Default)]
struct By {
    provider: Option<String>,
    model: Option<String>,
    recording_ms: Option<u64>,
}

async fn image(
    context: Context,
    Image { prompt, count, width, height, provider, model }: Image,
) -> Result<Ended, String> {
    let size = match (width, height) {
        (None, None) => None,
        (Some(width), Some(height)) => Some((width, height)),
        _ => return Err("`width` and `height` go together.".to_owned()),
    };
    let request = MediaRequest::Image { prompt: prompt.into(), count: count.unwrap_or(1), size };
    made(&context, By { provider, model, ..By::default() }, request).await
}

async fn speech(
    context: Context,
    Speech { text, voice, format, speed, provider, model }: Speech,
) -> Result<Ended, String> {
    // A number beyond the range stays beyond it.
    let speed_percent = speed.map(|speed| (speed * 100.0).round() as u32);
    let (voice, format) = (voice.map(Into::into), format.map(Into::into));
    let request = MediaRequest::Speech { text: text.into(), voice, format, speed_percent };
    made(&context, By { provider, model, ..By::default() }, request).await
}

async fn video(context: Context, Video { prompt, duration_secs, provider, model }: Video) -> Result<Ended, String> {
    let request = MediaRequest::Video { prompt: prompt.into(), duration_secs };
    let view = begun(&context, By { provider, model, ..By::default() }, request).await?;
    Ok(shown(&view))
}

async fn status(context: Context, Status { task_id }: Status) -> Result<Ended, String> {
    let view = context.ask(Get::<MediaTaskView>(MediaTaskId(task_id))).await?;
    if view.task.agent != context.agent() {
        return Err("Refused: media task not found.".to_owned());
    }
    Ok(match shown(&view) {
        Ended::Text(text) => Ended::Read { text, taint: Taint::NONE },
        other => other,
    })
}

async fn music(
    context: Context,
    Music { prompt, lyrics, instrumental, format, provider, model }: Music,
) -> Result<Ended, String> {
    let request = MediaRequest::Music {
        prompt: prompt.map(Into::into),
        lyrics: lyrics.map(Into::into),
        instrumental: instrumental.unwrap_or_default(),
        format: format.map(Into::into),
    };
    made(&context, By { provider, model, ..By::default() }, request).await
}

async fn transcribe(
    context: Context,
    Recording { file_id, language, provider, model }: Recording,
) -> Result<Ended, String> {
    let recording_ms = recording_ms(&context, FileId(file_id)).await?;
    let request =
        MediaRequest::Transcription { file: FileId(file_id), is_temporary: false, language: language.map(Into::into) };
    made(&context, By { provider, model, recording_ms: Some(recording_ms) }, request).await
}

/// How long a recording of the agent plays at most.
async fn recording_ms(context: &Context, file: FileId) -> Result<u64, String> {
    let missing = || "There is no such upload of yours.".to_owned();
    let files = context.parts.settings.get::<Opened>().0.clone().ok_or_else(missing)?;
    let agent = context.agent();
    let chooser = Chooser(context.parts.settings.clone());
    let read = tokio::task::spawn_blocking(move || {
        let Upload { agent: of, size, .. } = files.upload(file).map_err(|_| missing())?;
        if Some(of) != agent {
            return Err(missing());
        }
        if size > MEDIA_AUDIO_BYTES_MAX {
            return Err(format!("The recording is larger than {MEDIA_AUDIO_BYTES_MAX} bytes."));
        }
        let (_, mut reader) = files.open_upload(file).map_err(|error| error.to_string())?;
        let mut content = Vec::new();
        let read = std::io::Read::read_to_end(&mut reader, &mut content);
        read.map_err(|error| FilesError::of_read(error).to_string())?;
        chooser.recording_ms(&content).ok_or_else(|| "The upload is no recording in a known format.".to_owned())
    });
    read.await.unwrap_or_else(|_| Err("The upload cannot be read.".to_owned()))
}

/// Begins a task.
async fn begun(context: &Context, by: By, request: MediaRequest) -> Result<MediaTaskView, String> {
    let By { provider, model, recording_ms } = by;
    let wanted = Wanted { request: &request, provider: provider.as_deref(), model: model.as_deref(), recording_ms };
    let chosen = Chooser(context.parts.settings.clone()).choose(&wanted);
    let chosen = chosen.map_err(|why| format!("Refused: {}.", why.into_text()))?;
    let (agent, turn) = (context.agent(), context.turn());
    // A repeated call is the same row of the same turn.
    let key = turn.map_or_else(String::new, |turn| format!("{turn}:{}", context.run.index));
    let (provider, model) = (chosen.provider.to_owned(), chosen.model);
    let (most, is_priced) = (chosen.most, chosen.is_priced);
    context.ask(CreateMedia { agent, turn, key, provider, model, request, most, is_priced }).await
}

/// Begins a task, and waits for its result.
async fn made(context: &Context, by: By, request: MediaRequest) -> Result<Ended, String> {
    let id = begun(context, by, request).await?.id;
    let view = match tokio::time::timeout(WAIT_MAX, context.ask(AwaitMedia(id))).await {
        Ok(view) => view?,
        Err(_) => context.ask(Get::<MediaTaskView>(id)).await?,
    };
    Ok(shown(&view))
}

/// A task as the model reads it. Only what providers wrote is untrusted.
fn shown(view: &MediaTaskView) -> Ended {
    let MediaTaskView { id, task, .. } = view;
    let mut text = format!("Task {id} ({} of {}): {}.", task.kind.as_str(), task.provider, task.state.as_str());
    if task.state.is_open() {
        text += " Ask again later with video_status.";
    }
    for file in &task.files {
        let _ = write!(
            text,
            "\nFile {}: /api/uploads/{}, {}, {} bytes",
            file.file, file.file, file.content_type, file.bytes
        );
        if let Some((width, height)) = file.size {
            let _ = write!(text, ", {width} x {height} pixels");
        }
        if let Some(ms) = file.duration_ms {
            let _ = write!(text, ", {}.{:03} seconds", ms / 1_000, ms % 1_000);
        }
    }
    if task.state == MediaState::Failed {
        let why = task.error.as_deref().unwrap_or("the provider failed");
        return Ended::Failure { text: format!("{text} {why}"), taint: Taint::WEB };
    }
    match &task.text {
        None => Ended::Text(text),
        Some(said) if task.files.is_empty() => Ended::Read { text: format!("{text}\n\n{said}"), taint: Taint::WEB },
        // The prompt as the provider changed it says nothing that the agent needs.
        Some(_) => Ended::Text(text),
    }
}
