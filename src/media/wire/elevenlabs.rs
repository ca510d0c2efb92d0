//! ElevenLabs: speech and transcription. Its endpoint is in the configuration, `[providers.elevenlabs]`.

use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::form::Form;
use super::{Made, Offer, Order, Wire};
use crate::media::failed::Failed;
use crate::media::http::{Ask, protocol};

/// The wire.
pub(super) struct ElevenLabs;

const OFFERS: &[Offer] = &[
    Offer {
        kind: MediaKind::Speech,
        model: "eleven_multilingual_v2",
        formats: &["mp3", "opus"],
        prices: &[("eleven_flash_", 150), ("eleven_turbo_", 150), ("eleven_", 300)],
    },
    Offer { kind: MediaKind::Transcription, model: "scribe_v1", formats: &[], prices: &[("scribe_", 7_000)] },
];
/// A voice that each account has.
const VOICE: &str = "JBFqnCBsd6RMkjVDRZzb";
/// Percent of the usual speed that it speaks at.
const SPEEDS: std::ops::RangeInclusive<u32> = 70..=120;

impl Wire for ElevenLabs {
    fn provider(&self) -> &'static str {
        "elevenlabs"
    }

    fn offers(&self) -> &'static [Offer] {
        OFFERS
    }

    fn make<'a>(&'a self, order: Order<'a>) -> BoxFuture<'a, Result<Made, Failed>> {
        async move {
            match order.request {
                MediaRequest::Speech { .. } => speech(&order).await,
                MediaRequest::Transcription { language, .. } => transcribe(&order, language.as_deref()).await,
                MediaRequest::Image { .. } | MediaRequest::Video { .. } | MediaRequest::Music { .. } => {
                    Err(not_offered())
                }
            }
        }
        .boxed()
    }
}

fn not_offered() -> Failed {
    Failed::new(MediaFault::Refused, "provider elevenlabs has no tasks, images, videos or music here")
}

async fn speech(order: &Order<'_>) -> Result<Made, Failed> {
    let target = order.target;
    let MediaRequest::Speech { text, voice, format, speed_percent } = order.request else { return Err(not_offered()) };
    if speed_percent.is_some_and(|percent| !SPEEDS.contains(&percent)) {
        return Err(Failed::new(MediaFault::Refused, "provider elevenlabs speaks at a speed of 0.7 to 1.2"));
    }
    let mut body = json!({ "text": text, "model_id": target.model });
    if let Some(percent) = speed_percent {
        body["voice_settings"] = json!({ "speed": f64::from(*percent) / 100.0 });
    }
    let format = if format.as_deref() == Some("opus") { "opus_48000_64" } else { "mp3_44100_128" };
    let path = ["text-to-speech", voice.as_deref().unwrap_or(VOICE)];
    let query = [("output_format", format)];
    let ask = Ask { query: &query, ..Ask::post(target, &path, &body, order.bytes_max) };
    Ok(Made { files: vec![order.http.file(ask).await?], ..Made::default() })
}

async fn transcribe(order: &Order<'_>, language: Option<&str>) -> Result<Made, Failed> {
    let target = order.target;
    let Some((recording, header)) = &order.recording else {
        return Err(Failed::new(MediaFault::Storage, "the recording is gone"));
    };
    let mut form = Form::default();
    form.field("model_id", &target.model);
    if let Some(language) = language {
        form.field("language_code", language);
    }
    form.file("file", &format!("audio.{}", header.ending), header.content_type, recording);
    let answer = order.http.json(Ask::form(target, &["speech-to-text"], form)?).await?;
    let text = answer.get("text").and_then(Value::as_str).ok_or_else(|| protocol(target, "it has no text"))?;
    let said = answer.get("language_code").and_then(Value::as_str).or(language);
    Ok(Made { text: Some(text.to_owned()), language: said.map(str::to_owned), ..Made::default() })
}
