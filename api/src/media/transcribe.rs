//! A recording is transcribed: the body is the file, or a form with it.

use std::io::Read;
use std::sync::Arc;

use agentsvc_components::media::{MediaRequest, MediaTaskId};
use agentsvc_components::{AgentId, FileId};
use agentsvc_systems::media::limits::{MEDIA_AUDIO_BYTES_MAX, MEDIA_NAME_BYTES_MAX};
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use uuid::Uuid;

use super::error_codes::MEDIA_NOT_AUDIO;
use super::host::MediaHost;
use super::routes::{By, COST, begin, ended, replies};
use super::shape::{TranscribeQuery, Transcript};
use crate::http::blocking;
use crate::http::body::BodyStream;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::files::FilesError;
use crate::http::multipart::Multipart;
use crate::http::receive::{Receiver, blocking as on_disk};
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::upload::files::{Files, TEMPORARY, Upload};

/// The part of the form that holds the recording.
const PART: &str = "file";
/// Bytes that a form may have beside its file.
const FORM_BYTES_MAX: u64 = 64 << 10;

/// The route.
pub(super) const ROUTE: Route =
    Route::post("/api/media/transcribe", "Transcribe a recording", |call| Box::pin(transcribe(call)))
        .reaching(Reach::Filtered)
        .cost(COST)
        .streamed("*/*")
        .query::<TranscribeQuery>()
        .replies(replies!(
            Reply::json::<Transcript>(200, "the text of the recording"),
            Reply::error(413, "the recording is too large"),
            Reply::error(415, "the body is neither a recording nor a form")
        ));

async fn transcribe(mut call: Call) -> Result<Response, Error> {
    let mut wanted: TranscribeQuery = call.query()?;
    let files = call.api.service::<dyn Files>()?;
    let content_type = call.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content_type = content_type.to_ascii_lowercase();
    let is_form = content_type.starts_with("multipart/");
    if !is_form && !["audio/", "video/", "application/octet-stream"].iter().any(|kind| content_type.starts_with(kind)) {
        let text = "content-type must be audio/* or multipart/form-data";
        return Err(Error::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let receiver = if is_form {
        form(&mut call, &files, &mut wanted).await?
    } else {
        call.stream.bound(MEDIA_AUDIO_BYTES_MAX)?;
        let mut receiver = receiver(&files, &content_type).await?;
        while let Some(piece) = call.stream.next().await? {
            receiver.push(piece).await?;
        }
        receiver
    };
    // To the begin of its job, also when the client goes away: what has come whole is removed by the job, or here.
    let work = async move {
        let upload = receiver.finish().await?;
        let begun = begun(&call, &files, &upload, wanted).await;
        if begun.is_err() {
            drop(on_disk(move || files.remove_upload(upload.id)).await);
        }
        begun.map(|task| (call, task))
    };
    let (call, task) = blocking::spawn(work).await.unwrap_or_else(|_| Err(Error::internal("internal error")))?;
    reply::ok(&Transcript::from(ended(&call, task).await?))
}

/// Begins the task of a recording.
async fn begun(
    call: &Call,
    files: &Arc<dyn Files>,
    upload: &Upload,
    wanted: TranscribeQuery,
) -> Result<MediaTaskId, Error> {
    if upload.size == 0 {
        return Err(Error::bad_field(PART, "file: the recording is empty"));
    }
    if upload.size > MEDIA_AUDIO_BYTES_MAX {
        let text = format!("the file is larger than {MEDIA_AUDIO_BYTES_MAX} bytes");
        return Err(Error::new(StatusCode::PAYLOAD_TOO_LARGE, text).with("limit_bytes", MEDIA_AUDIO_BYTES_MAX));
    }
    let (host, files, id) = (call.api.service::<dyn MediaHost>()?, Arc::clone(files), upload.id);
    let content = on_disk(move || {
        let mut content = Vec::new();
        let (_, reader) = files.open_upload(id)?;
        let read = reader.take(MEDIA_AUDIO_BYTES_MAX).read_to_end(&mut content);
        read.map(|_| content).map_err(FilesError::of_read)
    });
    let content = content.await?;
    let recording_ms = host
        .recording_ms(&content)
        .ok_or_else(|| Error::of(MEDIA_NOT_AUDIO, "file: it is no recording in a known format").with("field", PART))?;
    drop(content);
    let TranscribeQuery { language, provider, model, agent_id: agent } = wanted;
    let request = request(upload.id, language);
    let by = By { agent, provider, model, recording_ms: Some(recording_ms) };
    Ok(begin(call, by, request).await?.id)
}

fn request(file: FileId, language: Option<String>) -> MediaRequest {
    MediaRequest::Transcription { file, is_temporary: true, language: language.map(Into::into) }
}

/// The file of a client, which belongs to no agent.
async fn receiver(files: &Arc<dyn Files>, content_type: &str) -> Result<Receiver<Upload>, Error> {
    let (files, content_type) = (Arc::clone(files), content_type.to_owned());
    let writer = on_disk(move || files.begin_upload(AgentId(Uuid::nil()), TEMPORARY, &content_type)).await?;
    Ok(Receiver::new(writer))
}

/// Reads a form: the file, and what is said of it.
async fn form(
    call: &mut Call,
    files: &Arc<dyn Files>,
    wanted: &mut TranscribeQuery,
) -> Result<Receiver<Upload>, Error> {
    let mut stream = std::mem::replace(&mut call.stream, BodyStream::ended());
    stream.bound(MEDIA_AUDIO_BYTES_MAX + FORM_BYTES_MAX)?;
    let mut form = Multipart::new(&call.parts, stream)?;
    let mut received: Option<Receiver<Upload>> = None;
    while let Some(mut part) = form.next_part().await? {
        let name = part.name().unwrap_or_default().to_owned();
        if name == PART {
            if received.is_some() {
                return Err(Error::bad_field(PART, "file: the form has two parts named 'file'"));
            }
            let content_type = part.content_type().to_owned();
            let mut receiver = receiver(files, &content_type).await?;
            while let Some(piece) = part.next().await? {
                receiver.push(piece).await?;
            }
            received = Some(receiver);
            continue;
        }
        let mut text = Vec::new();
        while let Some(piece) = part.next().await? {
            // One byte more shows that it is too long.
            let left = (MEDIA_NAME_BYTES_MAX + 1).saturating_sub(text.len());
            text.extend_from_slice(&piece[..piece.len().min(left)]);
        }
        let text = String::from_utf8(text).map_err(|_| Error::bad_field(&name, format!("{name} is not UTF-8")))?;
        match name.as_str() {
            "language" => wanted.language = Some(text),
            "provider" => wanted.provider = Some(text),
            "model" => wanted.model = Some(text),
            "agent_id" => {
                let wrong = |_| Error::bad_field("agent_id", "agent_id is not a valid UUID");
                wanted.agent_id = Some(text.parse().map_err(wrong)?);
            }
            _ => {}
        }
    }
    received.ok_or_else(|| Error::bad_field(PART, "file: the form has no part named 'file'"))
}
