//! Files of agents' workspaces on their way to chats. They are kept as uploads until they were sent: a send outlives a restart
//! and a change of the file. Uploads of agents go out as they are.

use std::io::Read;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use agentsvc_api::http::files::FilesError;
use agentsvc_api::upload::files::{Files, Upload};
use agentsvc_components::FileId;
use agentsvc_components::channel::send::{SendContent, SendOrder};
use agentsvc_systems::injection::InjectionPolicy;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::config::ChannelsConfig;
use super::embed;
use super::instance::Instance;
use super::ledger::Handled;
use super::registry::Registry;
use super::shown::file_name;
use super::takes::Takes;
use super::wire::Content;
use super::wire::bytes::{FILE_BYTES_MAX, FileBytes};
use super::wire::content::Recording;
use crate::tool::files::{in_workspace, sentence};
use crate::tool::toolset::Context;
use agentsvc_api::http::places::Places;

/// Files that go out at once: each takes five times its size while it is written.
static UNDER_WAY: Semaphore = Semaphore::const_new(2);
/// Files that agents hand over at once, and those of one user with a limited role or one family: each is in memory.
static KEPT: LazyLock<Places> = LazyLock::new(|| Places::new(4, 2));
/// How long one waits for a place, and for its adapter. Longer: it is tried again.
const PLACE_WAIT: Duration = Duration::from_secs(3);
const READY_WAIT: Duration = Duration::from_secs(5);

/// What an outgoing message says of the file that is kept for it. No adapter says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kept {
    /// The file is this upload.
    Upload {
        file_id: FileId,
        filename: String,
        mime_type: String,
        /// It is an upload of the agent, which stays after the send.
        #[serde(default)]
        is_lent: bool,
    },
}

/// Keeps a file of the agent's workspace for a send.
///
/// # Errors
/// A sentence for the model: no such file, or one that is too large or cannot be kept.
pub(super) async fn keep(
    context: &Context,
    registry: &Arc<Registry>,
    path: &str,
    filename: Option<&str>,
) -> Result<SendContent, String> {
    if context.run.manifest.manifest.capabilities.file_system == Some(false) {
        return Err("You have no access to files.".to_owned());
    }
    let most = registry.settings.get::<ChannelsConfig>().file_upload_max_bytes.min(FILE_BYTES_MAX as u64);
    let wanted = path.to_owned();
    let _place = KEPT.place(context.run.holder).await;
    let bytes = in_workspace(context, move |workspace| workspace.read_whole(&wanted, most).map_err(sentence)).await?;
    let last = path.rsplit('/').next().unwrap_or_default();
    let injection = *registry.api.services.state::<InjectionPolicy>();
    let name = file_name(filename.filter(|name| !name.trim().is_empty()).unwrap_or(last), injection);
    let files = files(registry)?;
    let agent = context.run.agent;
    let stored = tokio::task::spawn_blocking(move || files.store(agent, &name, "", &bytes)).await;
    let stored = stored.map_err(|_| "The file could not be kept.".to_owned())?;
    let upload = stored.map_err(|error| format!("The file could not be kept: {error}."))?;
    content_of(&upload, upload.filename.clone(), false)
}

/// The content of a send whose file is an upload of the agent.
///
/// # Errors
/// A sentence for the model: no such upload of the agent, or one that is too large.
pub(super) async fn lend(
    context: &Context,
    registry: &Arc<Registry>,
    file: FileId,
    filename: Option<&str>,
) -> Result<SendContent, String> {
    let missing = || "There is no such upload of yours.".to_owned();
    let files = files(registry)?;
    let found = tokio::task::spawn_blocking(move || files.upload(file)).await;
    let upload = found.map_err(|_| missing())?.map_err(|_| missing())?;
    if Some(upload.agent) != context.agent() {
        return Err(missing());
    }
    let most = registry.settings.get::<ChannelsConfig>().file_upload_max_bytes.min(FILE_BYTES_MAX as u64);
    if upload.size > most {
        return Err(format!("The file is larger than {most} bytes."));
    }
    let injection = *registry.api.services.state::<InjectionPolicy>();
    let name = filename.filter(|name| !name.trim().is_empty()).map(|name| file_name(name, injection));
    content_of(&upload, name.unwrap_or_else(|| upload.filename.clone()), true)
}

fn content_of(upload: &Upload, filename: String, is_lent: bool) -> Result<SendContent, String> {
    let text = format!("[File: {filename}]");
    let kept = Kept::Upload { file_id: upload.id, filename, mime_type: upload.content_type.clone(), is_lent };
    let content = serde_json::to_string(&kept).map_err(|error| error.to_string())?;
    Ok(SendContent { text, content: Some(content.into()) })
}

fn files(registry: &Registry) -> Result<Arc<dyn Files>, String> {
    registry.api.services.get::<dyn Files>().ok_or_else(|| "Files cannot be kept.".to_owned())
}

fn kept(content: Option<&str>) -> Option<Kept> {
    content.and_then(|content| serde_json::from_str(content).ok())
}

/// The file of a send, and its place among those that go out; `None` where it has none.
///
/// # Errors
/// What becomes of the send instead.
pub(super) async fn load(
    registry: &Registry,
    instance: &Instance,
    order: &SendOrder,
) -> Result<Option<(Content, SemaphorePermit<'static>)>, Handled> {
    let Some(Kept::Upload { file_id, filename, mime_type, .. }) = kept(order.what.content.as_deref()) else {
        return Ok(None);
    };
    Takes::of(&instance.definition).check_file(&filename).map_err(Handled::Refused)?;
    if !instance.is_ready_within(READY_WAIT).await {
        return Err(Handled::Unwritten("the adapter is not running".to_owned()));
    }
    let Ok(Ok(place)) = timeout(PLACE_WAIT, UNDER_WAY.acquire()).await else {
        return Err(Handled::Unwritten("other files are being sent".to_owned()));
    };
    let files = files(registry).map_err(Handled::Unwritten)?;
    let is_fetching = embed::is_fetching(instance);
    let read = tokio::task::spawn_blocking(move || {
        let (_, reader) = files.open_upload(file_id)?;
        let mut bytes = Vec::new();
        reader.take(FILE_BYTES_MAX as u64).read_to_end(&mut bytes).map_err(FilesError::of_read)?;
        Ok::<_, FilesError>(content(bytes, filename, mime_type, is_fetching))
    });
    match read.await {
        Ok(Ok(content)) => Ok(Some((content, place))),
        Ok(Err(error @ (FilesError::NotFound(_) | FilesError::Damaged(_)))) => {
            Err(Handled::Refused(format!("the file is no longer kept: {error}")))
        }
        Ok(Err(error)) => Err(Handled::Unwritten(format!("the file cannot be read: {error}"))),
        Err(_) => Err(Handled::Unwritten("the file cannot be read".to_owned())),
    }
}

/// The content that shows a file as what it is, where the adapter takes its bytes so.
fn content(bytes: Vec<u8>, filename: String, mime_type: String, is_fetching: bool) -> Content {
    let recording = |url| Recording { url, filename: Some(filename.clone()), ..Recording::default() };
    match mime_type.split('/').next() {
        Some("image") if is_fetching => {
            Content::Image { url: embed::data_url(&mime_type, &bytes), caption: None, mime_type: Some(mime_type) }
        }
        Some("audio") if is_fetching => Content::Audio(recording(embed::data_url(&mime_type, &bytes))),
        Some("video") if is_fetching => Content::Video(recording(embed::data_url(&mime_type, &bytes))),
        _ => Content::FileData { data: FileBytes(bytes), filename, mime_type },
    }
}

/// Removes the file of a message that was sent, or never will be, unless it is the agent's own upload.
pub(super) async fn forget(registry: &Registry, content: Option<&str>) {
    let (Some(Kept::Upload { file_id, is_lent: false, .. }), Ok(files)) = (kept(content), files(registry)) else {
        return;
    };
    let removed = tokio::task::spawn_blocking(move || files.remove_upload(file_id)).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "the file of a message was not removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_adapters_say_names_no_upload() {
        let (file_id, filename, mime_type) = (FileId(uuid::Uuid::nil()), "a".into(), "b".into());
        let kept_one = Kept::Upload { file_id, filename, mime_type, is_lent: false };
        let text = serde_json::to_string(&kept_one).unwrap();
        assert_eq!(kept(Some(&text)), Some(kept_one));
        assert!(serde_json::from_str::<Content>(&text).is_err());
        assert_eq!(kept(Some("{\"Text\":\"x\"}")), None);
        assert_eq!(kept(None), None);
    }

    #[test]
    fn an_adapter_that_takes_urls_gets_pictures_and_recordings_as_such() {
        let made = |mime: &str, is_fetching| content(b"hi".to_vec(), "f".into(), mime.into(), is_fetching);
        assert!(matches!(made("image/png", true), Content::Image { url, .. } if url == "data:image/png;base64,aGk="));
        assert!(matches!(made("audio/mpeg", true), Content::Audio(it) if it.filename.as_deref() == Some("f")));
        assert!(matches!(made("video/mp4", true), Content::Video(_)));
        for (mime, is_fetching) in [("image/png", false), ("audio/mpeg", false), ("text/plain", true), ("", true)] {
            assert!(made(mime, is_fetching).is_file_data(), "{mime}");
        }
    }
}
