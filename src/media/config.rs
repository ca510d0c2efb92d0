//! `[media]`: which providers make media, and what they cost.

use agentsvc_components::Micros;
use agentsvc_components::media::MediaKind;
use serde::{Serialize, Serializer};

use crate::kernel::config::table;
use crate::usage::config::{DOLLARS, micros};

/// Bytes of the name of a provider or model.
const NAME_BYTES_MAX: usize = 128;

table! {
    /// `[media]`.
    pub struct Media {
        /// Provider of images. Default: the first that has a key.
        image_provider: Option<Box<str>> => text(name).example("openai").writable(),
        /// Provider of speech. Default: the first that has a key.
        speech_provider: Option<Box<str>> => text(name).example("openai").writable(),
        /// Provider of videos. Default: the first that has a key.
        video_provider: Option<Box<str>> => text(name).example("minimax").writable(),
        /// Provider of music. Default: the first that has a key.
        music_provider: Option<Box<str>> => text(name).example("minimax").writable(),
        /// Provider of transcripts. Default: the first that has a key.
        transcription_provider: Option<Box<str>> => text(name).example("openai").writable(),
        /// Prices in dollars, in place of the built-in ones: a model and what it costs for an image, 1000 characters of speech, a
        /// second of video, a piece of music or a minute of a recording.
        prices: Vec<MediaPrice> => list(price).example("[\"openai/tts-1 0.015\", \"minimax/image-01 0.0035\"]").writable(),
        /// Delete media tasks and their files after this many days; 0 keeps the files as long as uploads are kept.
        retention_days: u32 => integer(0..=30).writable(),
    }
}

impl Media {
    /// The provider that the operator chose for a kind.
    pub(super) fn provider(&self, kind: MediaKind) -> Option<&str> {
        match kind {
            MediaKind::Image => self.image_provider.as_deref(),
            MediaKind::Speech => self.speech_provider.as_deref(),
            MediaKind::Video => self.video_provider.as_deref(),
            MediaKind::Music => self.music_provider.as_deref(),
            MediaKind::Transcription => self.transcription_provider.as_deref(),
        }
    }

    /// What the operator says that a unit of a model costs.
    pub(super) fn price(&self, provider: &str, model: &str) -> Option<Micros> {
        let is_it = |price: &&MediaPrice| price.model.split_once('/') == Some((provider, model));
        self.prices.iter().find(is_it).map(|price| micros(price.usd))
    }
}

/// What a model costs.
#[derive(Clone, Debug, PartialEq)]
pub struct MediaPrice {
    /// Provider and model, with a slash between.
    pub model: Box<str>,
    /// Dollars of a unit.
    pub usd: f64,
}

impl Serialize for MediaPrice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} {}", self.model, self.usd))
    }
}

fn name(text: &str) -> Result<Box<str>, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.is_empty() || text.len() > NAME_BYTES_MAX || !is_plain {
        return Err("must be the name of a provider".to_owned());
    }
    Ok(text.into())
}

fn price(text: &str) -> Result<MediaPrice, String> {
    let wrong = || "must be a model and its price in dollars, such as \"openai/tts-1 0.015\"".to_owned();
    let (model, usd) = text.trim().split_once(' ').ok_or_else(wrong)?;
    let (provider, rest) = model.split_once('/').ok_or_else(wrong)?;
    name(provider)?;
    name(rest).map_err(|_| wrong())?;
    let usd = usd.trim().parse::<f64>().ok().filter(|usd| DOLLARS.contains(usd)).ok_or_else(wrong)?;
    Ok(MediaPrice { model: model.into(), usd })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::config::read_table;

    #[test]
    fn prices_and_providers_are_read_and_wrong_ones_named() {
        let parse = |text: &str| read_table::<Media>("media", text);
        let text = "[media]\nimage_provider = \"minimax\"\nprices = [\"openai/tts-1 0.5\", \"x/a/b 0\"]\n";
        let media = parse(text).unwrap().config;
        assert_eq!((media.provider(MediaKind::Image), media.provider(MediaKind::Video)), (Some("minimax"), None));
        assert_eq!(media.price("openai", "tts-1"), Some(Micros(500_000)));
        assert_eq!((media.price("x", "a/b"), media.price("x", "a")), (Some(Micros(0)), None));
        for (line, key) in [
            ("prices = [\"openai 1\"]", "media.prices"),
            ("prices = [\"openai/x -1\"]", "media.prices"),
            ("prices = [\"openai/x\"]", "media.prices"),
            ("video_provider = \"\"", "media.video_provider"),
        ] {
            assert!(parse(&format!("[media]\n{line}\n")).unwrap_err().to_string().contains(key), "{line}");
        }
    }
}
