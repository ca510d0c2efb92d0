//! Images in a request: base64 data URIs, decoded here and stored like uploads.
//!
//! An address of another host is refused. The daemon does not fetch what a client names, so that nobody reaches
//! private addresses through it.

use std::sync::Arc;

use agentsvc_components::session::message::Block;
use agentsvc_components::{AgentId, FileId};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::message::Dialogue;
use crate::http::error::Error;
use crate::http::files::FilesError;
use crate::http::receive::blocking;
use crate::upload::files::Files;

/// The types of images that models take.
const TYPES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];

/// One image, decoded, and the block it belongs to.
pub(crate) struct Image {
    /// Which message of the dialogue.
    pub(crate) message: usize,
    /// Which block of it.
    pub(crate) block: usize,
    /// One of [`TYPES`].
    pub(crate) media_type: &'static str,
    /// The picture.
    pub(crate) bytes: Bytes,
    /// The key of the request that holds it, for errors.
    field: String,
}

impl Image {
    /// Reads the `url` of an image part; `field` names it in errors.
    ///
    /// # Errors
    /// 400 naming `field`.
    pub(crate) fn read(field: &str, url: &str, message: usize, block: usize) -> Result<Self, Error> {
        let bad = |why: &str| Error::bad_field(field, format!("{field}: {why}"));
        let (kind, encoded) = url
            .get(..5)
            .filter(|scheme| scheme.eq_ignore_ascii_case("data:"))
            .and_then(|_| url[5..].split_once(','))
            .ok_or_else(|| bad("only data URIs (data:image/png;base64,...) are supported; URLs are not fetched"))?;
        let mut words = kind.split(';').map(str::trim);
        let named = words.next().unwrap_or_default();
        let media_type = TYPES.iter().find(|known| named.eq_ignore_ascii_case(known));
        let media_type = media_type.ok_or_else(|| bad("the image must be png, jpeg, webp or gif"))?;
        if !words.any(|word| word.eq_ignore_ascii_case("base64")) {
            return Err(bad("the data URI must be base64"));
        }
        let bytes = STANDARD.decode(encoded.trim()).map_err(|_| bad("the base64 text is malformed"))?;
        if bytes.is_empty() {
            return Err(bad("the image is empty"));
        }
        Ok(Self { message, block, media_type, bytes: bytes.into(), field: field.to_owned() })
    }
}

/// The uploads that hold the images of a request. Those of a hidden session go with it: dropping this removes them.
pub(crate) struct Stored {
    files: Arc<dyn Files>,
    ids: Vec<FileId>,
}

impl Stored {
    /// Keeps the images of `dialogue` as uploads to `agent` and puts them into their messages.
    ///
    /// # Errors
    /// 400 naming the part that is no image, 413 for one that is too large, 507 when there is no room.
    pub(crate) async fn of(files: &Arc<dyn Files>, agent: AgentId, dialogue: &mut Dialogue) -> Result<Self, Error> {
        let mut stored = Self { files: Arc::clone(files), ids: Vec::new() };
        for image in std::mem::take(&mut dialogue.images) {
            let (files, content) = (Arc::clone(files), image.bytes);
            let store = move || files.store(agent, "image", image.media_type, &content);
            let upload = blocking(store).await.map_err(|error| {
                let is_its_fault =
                    matches!(error, FilesError::TooLarge(_) | FilesError::Wrong(_) | FilesError::Quota { .. });
                let answer = Error::from(error);
                if is_its_fault { answer.with("field", image.field.as_str()) } else { answer }
            })?;
            stored.ids.push(upload.id);
            if !TYPES.contains(&upload.content_type.as_str()) {
                let message = format!("{}: the content is not a {}", image.field, image.media_type);
                return Err(Error::bad_field(&image.field, message));
            }
            let block = Block::Image { media_type: upload.content_type, file: upload.id, bytes: upload.size };
            if let Some(place) = dialogue.messages.get_mut(image.message).and_then(|m| m.blocks.get_mut(image.block)) {
                *place = block;
            }
        }
        Ok(stored)
    }

    /// They belong to a session that stays.
    pub(crate) fn keep(&mut self) {
        self.ids.clear();
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        if self.ids.is_empty() {
            return;
        }
        let (files, ids) = (Arc::clone(&self.files), std::mem::take(&mut self.ids));
        let remove = move || {
            for id in ids {
                if let Err(error) = files.remove_upload(id) {
                    tracing::warn!(%error, file = %id, "the image of a request could not be removed");
                }
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}
