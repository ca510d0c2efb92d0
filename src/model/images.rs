//! The images of a prompt, made ready for the wire: read from the uploads and encoded.
//!
//! The newest win: at most [`PROMPT_IMAGES_MAX`] and [`PROMPT_IMAGE_BYTES_MAX`] are sent. What is left out, or not there
//! any more, becomes a line of text in its place.

use std::collections::HashMap;

use agentsvc_components::FileId;
use agentsvc_components::kernel::limit::{PROMPT_IMAGE_BYTES_MAX, PROMPT_IMAGES_MAX};
use agentsvc_components::session::message::Block;
use agentsvc_systems::prompt::Prompt;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What stands for an image that is older than those that are sent.
pub(crate) const LEFT_OUT: &str = "[image omitted: only newer images are sent]";
/// What stands for an image that is not there any more.
pub(crate) const GONE: &str = "[image omitted: the file no longer exists]";
/// The most tokens of an image: `gpt-4o-mini` counts up to 48,169.
const IMAGE_TOKENS_MAX: u64 = 50_000;

/// What stands for an image that the model would not take.
pub(crate) const NOT_TAKEN: &str = "[image omitted: the model does not support images]";

/// The images of one prompt, by upload.
#[derive(Debug)]
pub struct Images {
    /// `data:` URLs; `None` for what could not be read.
    urls: HashMap<FileId, Option<String>>,
    /// What to say in place of an image that is not among them.
    left_out: &'static str,
}

impl Default for Images {
    fn default() -> Self {
        Self { urls: HashMap::new(), left_out: LEFT_OUT }
    }
}

impl Images {
    /// None, for a model that takes no pictures.
    pub fn refused() -> Self {
        Self { left_out: NOT_TAKEN, ..Self::default() }
    }

    /// Reads the images of `prompt`. `read` gives the bytes of an upload of so many bytes at most; it may block.
    pub fn of(prompt: &Prompt, read: &dyn Fn(FileId, u64) -> Option<Vec<u8>>) -> Self {
        let mut images = Self::default();
        let mut left = PROMPT_IMAGE_BYTES_MAX;
        let blocks = prompt.messages.iter().rev().flat_map(|message| message.blocks.iter().rev());
        for block in blocks {
            let Block::Image { media_type, file, bytes } = block else { continue };
            if images.urls.contains_key(file) {
                continue;
            }
            if images.urls.len() >= PROMPT_IMAGES_MAX || *bytes > left {
                break;
            }
            left -= bytes;
            let url = read(*file, *bytes).map(|content| url(media_type, &content));
            images.urls.insert(*file, url);
        }
        images
    }

    /// The `data:` URL of an image.
    pub(crate) fn url(&self, file: FileId) -> Result<&str, &'static str> {
        match self.urls.get(&file) {
            Some(Some(url)) => Ok(url),
            Some(None) => Err(GONE),
            None => Err(self.left_out),
        }
    }

    /// The media type of an image and its bytes in base64.
    pub(crate) fn base64(&self, file: FileId) -> Result<(&str, &str), &'static str> {
        let url = self.url(file)?;
        url.strip_prefix("data:").and_then(|url| url.split_once(";base64,")).ok_or(GONE)
    }

    /// More tokens than any model counts for them.
    pub(crate) fn tokens_max(&self) -> u64 {
        self.urls.len() as u64 * IMAGE_TOKENS_MAX
    }

    /// Bytes of all URLs.
    pub(crate) fn bytes(&self) -> usize {
        self.urls.values().flatten().map(String::len).sum()
    }
}

fn url(media_type: &str, content: &[u8]) -> String {
    let mut url = format!("data:{media_type};base64,");
    STANDARD.encode_string(content, &mut url);
    url
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::{ChatMessage, Role};
    use uuid::Uuid;

    use super::*;

    fn id(n: usize) -> FileId {
        FileId(Uuid::from_u128(n as u128))
    }

    fn prompt(images: &[(usize, u64)]) -> Prompt {
        let message = |(n, bytes): &(usize, u64)| ChatMessage {
            role: Role::User,
            blocks: vec![Block::Image { media_type: "image/png".to_owned(), file: id(*n), bytes: *bytes }],
        };
        Prompt { messages: images.iter().map(message).collect(), ..Prompt::default() }
    }

    #[test]
    fn the_newest_are_sent() {
        let many: Vec<_> = (0..PROMPT_IMAGES_MAX + 3).map(|n| (n, 3)).collect();
        let images = Images::of(&prompt(&many), &|_, _| Some(b"abc".to_vec()));
        assert_eq!(images.url(id(2)), Err(LEFT_OUT));
        assert_eq!(images.url(id(3)), Ok("data:image/png;base64,YWJj"));
        assert_eq!(images.base64(id(3)), Ok(("image/png", "YWJj")));
        assert_eq!(images.url(id(PROMPT_IMAGES_MAX + 2)), Ok("data:image/png;base64,YWJj"));
    }

    #[test]
    fn bytes_are_bounded_and_one_image_counts_once() {
        let half = PROMPT_IMAGE_BYTES_MAX / 2;
        let images = Images::of(&prompt(&[(1, 1), (2, half), (3, half), (2, half)]), &|_, _| Some(Vec::new()));
        assert!(images.url(id(2)).is_ok() && images.url(id(3)).is_ok());
        assert_eq!(images.url(id(1)), Err(LEFT_OUT));
        assert_eq!(Images::of(&prompt(&[(1, 1)]), &|_, _| None).url(id(1)), Err(GONE));
        assert_eq!(Images::refused().url(id(1)), Err(NOT_TAKEN));
    }
}
