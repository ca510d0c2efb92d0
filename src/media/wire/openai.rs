//! OpenAI: images, speech and transcription.

use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::form::Form;
use super::{Made, Offer, Order, Wire};
use crate::media::failed::Failed;
use crate::media::http::{Ask, TEXT_BYTES_MAX, protocol};

/// The wire.
pub(super) struct OpenAi;

const OFFERS: &[Offer] = &[
    Offer {
        kind: MediaKind::Image,
        model: "gpt-image-1",
        formats: &[],
        prices: &[("gpt-image-1", 250_000), ("dall-e-3", 120_000), ("dall-e-2", 20_000)],
    },
    Offer {
        kind: MediaKind::Speech,
        model: "tts-1",
        formats: &["mp3", "opus", "aac", "flac", "wav"],
        prices: &[("tts-1-hd", 30), ("tts-1", 15)],
    },
    Offer {
        kind: MediaKind::Transcription,
        model: "whisper-1",
        formats: &[],
        prices: &[("whisper-1", 6_000), ("gpt-4o-mini-transcribe", 6_000), ("gpt-4o-transcribe", 12_000)],
    },
];

impl Wire for OpenAi {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn offers(&self) -> &'static [Offer] {
        OFFERS
    }

    fn make<'a>(&'a self, order: Order<'a>) -> BoxFuture<'a, Result<Made, Failed>> {
        async move {
            match order.request {
                MediaRequest::Image { prompt, count, size } => image(&order, prompt, *count, *size).await,
                MediaRequest::Speech { .. } => speech(&order).await,
                MediaRequest::Transcription { language, .. } => {
                    let language = language.clone();
                    transcribe(order, language.as_deref()).await
                }
                MediaRequest::Video { .. } | MediaRequest::Music { .. } => Err(not_offered()),
            }
        }
        .boxed()
    }
}

fn not_offered() -> Failed {
    Failed::new(MediaFault::Refused, "provider openai has no tasks, videos or music")
}

async fn image(order: &Order<'_>, prompt: &str, count: u32, size: Option<(u32, u32)>) -> Result<Made, Failed> {
    let target = order.target;
    let mut body = json!({ "model": target.model, "prompt": prompt, "n": count });
    if let Some((width, height)) = size {
        body["size"] = format!("{width}x{height}").into();
    }
    // Those models always send the image itself, and refuse the key.
    if !target.model.starts_with("gpt-image") {
        body["response_format"] = "b64_json".into();
    }
    // Base64 takes a third more.
    let bytes_max = TEXT_BYTES_MAX + u64::from(count) * (order.bytes_max / 3 + 1) * 4;
    let answer = order.http.json(Ask::post(target, &["images", "generations"], &body, bytes_max)).await?;
    let items = answer.get("data").and_then(Value::as_array).ok_or_else(|| protocol(target, "it has no data"))?;
    let mut made = Made::default();
    for item in items.iter().take(count as usize) {
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        if let Some(data) = text("b64_json") {
            let file = STANDARD.decode(data).map_err(|_| protocol(target, "an image is not Base64"))?;
            made.files.push(file);
        } else if let Some(link) = text("url") {
            made.links.push(link.to_owned());
        }
        made.text = made.text.or_else(|| text("revised_prompt").map(str::to_owned));
    }
    Ok(made)
}

async fn speech(order: &Order<'_>) -> Result<Made, Failed> {
    let target = order.target;
    let MediaRequest::Speech { text, voice, format, speed_percent } = order.request else { return Err(not_offered()) };
    let mut body = json!({
        "model": target.model,
        "input": text,
        "voice": voice.as_deref().unwrap_or("alloy"),
        "response_format": format.as_deref().unwrap_or("mp3"),
    });
    if let Some(percent) = speed_percent {
        body["speed"] = (f64::from(*percent) / 100.0).into();
    }
    let file = order.http.file(Ask::post(target, &["audio", "speech"], &body, order.bytes_max)).await?;
    Ok(Made { files: vec![file], ..Made::default() })
}

/// Asks for a transcript.
pub(super) async fn transcribe(order: Order<'_>, language: Option<&str>) -> Result<Made, Failed> {
    let target = order.target;
    let Some((recording, header)) = &order.recording else {
        return Err(Failed::new(MediaFault::Storage, "the recording is gone"));
    };
    let mut form = Form::default();
    form.field("model", &target.model);
    form.field("response_format", "json");
    if let Some(language) = language {
        form.field("language", language);
    }
    form.file("file", &format!("audio.{}", header.ending), header.content_type, recording);
    let answer = order.http.json(Ask::form(target, &["audio", "transcriptions"], form)?).await?;
    let text = answer.get("text").and_then(Value::as_str).ok_or_else(|| protocol(target, "it has no text"))?;
    let said = answer.get("language").and_then(Value::as_str).or(language);
    Ok(Made { text: Some(text.to_owned()), language: said.map(str::to_owned), ..Made::default() })
}
