//! Google Gemini: images and speech. Speech comes as bare samples, which get the head of a WAV file.

use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{Made, Offer, Order, Wire};
use crate::media::failed::Failed;
use crate::media::http::{Ask, TEXT_BYTES_MAX, protocol};

/// The wire.
pub(super) struct Gemini;

const OFFERS: &[Offer] = &[
    Offer {
        kind: MediaKind::Image,
        model: "gemini-2.5-flash-image",
        formats: &[],
        prices: &[("gemini-2.5-flash-image", 39_000)],
    },
    Offer {
        kind: MediaKind::Speech,
        model: "gemini-2.5-flash-preview-tts",
        formats: &["wav"],
        prices: &[("gemini-2.5-flash-preview-tts", 40), ("gemini-2.5-pro-preview-tts", 80)],
    },
];
/// Samples in a second where the answer says nothing.
const RATE_DEFAULT: u32 = 24_000;

impl Wire for Gemini {
    fn provider(&self) -> &'static str {
        "gemini"
    }

    fn offers(&self) -> &'static [Offer] {
        OFFERS
    }

    fn make<'a>(&'a self, order: Order<'a>) -> BoxFuture<'a, Result<Made, Failed>> {
        async move {
            match order.request {
                MediaRequest::Image { prompt, count: 1, size: None } => image(&order, prompt).await,
                MediaRequest::Image { .. } => {
                    let text = "provider gemini makes one image for a request, and chooses its size";
                    Err(Failed::new(MediaFault::Refused, text))
                }
                MediaRequest::Speech { text, voice, speed_percent: None, .. } => {
                    speech(&order, text, voice.as_deref()).await
                }
                MediaRequest::Speech { .. } => {
                    Err(Failed::new(MediaFault::Refused, "provider gemini does not take a speed"))
                }
                MediaRequest::Video { .. } | MediaRequest::Music { .. } | MediaRequest::Transcription { .. } => {
                    Err(not_offered())
                }
            }
        }
        .boxed()
    }
}

fn not_offered() -> Failed {
    Failed::new(MediaFault::Refused, "provider gemini has no tasks, videos, music or transcripts here")
}

/// Asks for content of one kind; gives its type and its bytes.
async fn content(order: &Order<'_>, text: &str, config: Value) -> Result<(String, Vec<u8>), Failed> {
    let target = order.target;
    let body = json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }], "generationConfig": config });
    let method = format!("{}:generateContent", target.model);
    // Base64 takes a third more.
    let bytes_max = TEXT_BYTES_MAX + (order.bytes_max / 3 + 1) * 4;
    let answer = order.http.json(Ask::post(target, &["models", &method], &body, bytes_max)).await?;
    let reason = answer.pointer("/promptFeedback/blockReason").or_else(|| answer.pointer("/candidates/0/finishReason"));
    let parts = answer.pointer("/candidates/0/content/parts").and_then(Value::as_array);
    let data = parts.into_iter().flatten().find_map(|part| part.get("inlineData"));
    let Some(data) = data else {
        return Err(match reason.and_then(Value::as_str) {
            Some("STOP" | "MAX_TOKENS" | "OTHER") | None => protocol(target, "it has no file"),
            Some(_) => Failed::new(MediaFault::Filtered, "a content filter of provider gemini stopped the request"),
        });
    };
    let of = |name: &str| data.get(name).and_then(Value::as_str);
    let bytes = of("data").and_then(|data| STANDARD.decode(data).ok());
    let bytes = bytes.ok_or_else(|| protocol(target, "the file is not Base64"))?;
    Ok((of("mimeType").unwrap_or_default().to_ascii_lowercase(), bytes))
}

async fn image(order: &Order<'_>, prompt: &str) -> Result<Made, Failed> {
    let (_, file) = content(order, prompt, json!({ "responseModalities": ["IMAGE"] })).await?;
    Ok(Made { files: vec![file], ..Made::default() })
}

async fn speech(order: &Order<'_>, text: &str, voice: Option<&str>) -> Result<Made, Failed> {
    let voice = json!({ "prebuiltVoiceConfig": { "voiceName": voice.unwrap_or("Kore") } });
    let config = json!({ "responseModalities": ["AUDIO"], "speechConfig": { "voiceConfig": voice } });
    let (mime, samples) = content(order, text, config).await?;
    let file =
        if mime.starts_with("audio/l16") || mime.starts_with("audio/pcm") { wav(&mime, &samples) } else { samples };
    Ok(Made { files: vec![file], ..Made::default() })
}

/// Samples of 16 bits with the head of a WAV file before them.
fn wav(mime: &str, samples: &[u8]) -> Vec<u8> {
    let rate = mime.split(';').find_map(|part| part.trim().strip_prefix("rate=")?.parse::<u32>().ok());
    let rate = rate.filter(|rate| (1..=192_000).contains(rate)).unwrap_or(RATE_DEFAULT);
    let size = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    let mut file = Vec::with_capacity(samples.len() + 44);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&size.saturating_add(36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend_from_slice(&rate.to_le_bytes());
    file.extend_from_slice(&(rate * 2).to_le_bytes());
    file.extend_from_slice(b"\x02\0\x10\0data");
    file.extend_from_slice(&size.to_le_bytes());
    file.extend_from_slice(samples);
    file
}

#[cfg(test)]
mod tests {
    use super::wav;
    use crate::media::header;

    #[test]
    fn samples_become_a_file_that_says_how_long_it_plays() {
        for (mime, rate) in
            [("audio/l16;codec=pcm;rate=16000", 16_000), ("audio/pcm", 24_000), ("audio/l16;rate=0", 24_000)]
        {
            let file = wav(mime, &vec![0; rate as usize]);
            let header = header::read(&file).unwrap();
            assert_eq!((header.duration_ms, header.sample_rate), (Some(500), Some(rate)), "{mime}");
        }
    }
}
