//! Images in a request: base64 data URIs, decoded here and stored like uploads.
//!
//! An address of another host is refused. The daemon does not fetch what a client names, so that nobody reaches
//! private addresses through it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::error::Error;

/// The types of images that models take.
const TYPES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];

/// One image, decoded, and the block it belongs to.
pub(super) struct Image {
    /// Which message of the dialogue.
    pub(super) message: usize,
    /// Which block of it.
    pub(super) block: usize,
    /// One of [`TYPES`].
    pub(super) media_type: &'static str,
    /// The picture.
    pub(super) bytes: Bytes,
}

impl Image {
    /// Reads the `url` of an image part; `field` names it in errors.
    ///
    /// # Errors
    /// 400 naming `field`.
    pub(super) fn read(field: &str, url: &str, message: usize, block: usize) -> Result<Self, Error> {
        let bad = |why: &str| Error::bad_field(field, format!("{field}: {why}"));
        let (kind, encoded) = url
            .get(..5)
            .filter(|scheme| scheme.eq_ignore_ascii_case("data:"))
            .and_then(|_| url[5..].split_once(','))
            .ok_or_else(|| bad("only data URIs (data:image/png;base64,...) are taken; addresses are not fetched"))?;
        let mut words = kind.split(';').map(str::trim);
        let named = words.next().unwrap_or_default();
        let media_type = TYPES.iter().find(|known| named.eq_ignore_ascii_case(known));
        let media_type = media_type.ok_or_else(|| bad("an image of type png, jpeg, webp or gif is required"))?;
        if !words.any(|word| word.eq_ignore_ascii_case("base64")) {
            return Err(bad("the data URI must be base64"));
        }
        let bytes = STANDARD.decode(encoded.trim()).map_err(|_| bad("the base64 text is malformed"))?;
        if bytes.is_empty() {
            return Err(bad("the image is empty"));
        }
        Ok(Self { message, block, media_type, bytes: bytes.into() })
    }
}
