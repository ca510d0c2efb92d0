//! MiniMax: images, speech, videos and music. Its errors come with status 200, in `base_resp`.

use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest, MediaState};
use agentsvc_systems::kernel::record::unhex;
use agentsvc_systems::media::MediaSource;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{Made, Offer, Order, Polled, Wire};
use crate::media::failed::Failed;
use crate::media::http::{Ask, Http, TEXT_BYTES_MAX, protocol};
use crate::model::error::provider_words;
use crate::model::provider::Target;

/// The wire.
pub(super) struct MiniMax;

const FORMATS: &[&str] = &["mp3", "wav", "flac"];
const OFFERS: &[Offer] = &[
    Offer { kind: MediaKind::Image, model: "image-01", formats: &[], prices: &[("image-01", 3_500)] },
    Offer { kind: MediaKind::Speech, model: "speech-02-hd", formats: FORMATS, prices: &[("speech-", 100)] },
    Offer {
        kind: MediaKind::Video,
        model: "MiniMax-Hailuo-02",
        formats: &[],
        prices: &[("MiniMax-Hailuo-02", 82_000)],
    },
    Offer { kind: MediaKind::Music, model: "music-2.5", formats: FORMATS, prices: &[("music-2.5", 150_000)] },
];

impl Wire for MiniMax {
    fn provider(&self) -> &'static str {
        "minimax"
    }

    fn offers(&self) -> &'static [Offer] {
        OFFERS
    }

    fn make<'a>(&'a self, order: Order<'a>) -> BoxFuture<'a, Result<Made, Failed>> {
        async move {
            match order.request {
                MediaRequest::Image { prompt, count, size } => image(&order, prompt, *count, *size).await,
                MediaRequest::Speech { .. } => speech(&order).await,
                MediaRequest::Video { prompt, duration_secs } => video(&order, prompt, *duration_secs).await,
                MediaRequest::Music { .. } => music(&order).await,
                MediaRequest::Transcription { .. } => Err(not_offered()),
            }
        }
        .boxed()
    }

    fn poll<'a>(
        &'a self,
        http: &'a Http,
        target: &'a Target,
        remote: &'a str,
    ) -> BoxFuture<'a, Result<Polled, Failed>> {
        async move {
            let query = [("task_id", remote)];
            let ask = Ask::get(target, &["query", "video_generation"], &query);
            let answer = checked(target, http.json(ask).await?)?;
            match answer.get("status").and_then(Value::as_str) {
                Some("Preparing" | "Queueing") => Ok(Polled::Open(MediaState::Queued)),
                Some("Processing") => Ok(Polled::Open(MediaState::Processing)),
                Some("Success") => {
                    let file =
                        answer.get("file_id").and_then(id).ok_or_else(|| protocol(target, "it names no file"))?;
                    Ok(Polled::Ready(MediaSource::File(file)))
                }
                Some("Fail") => Err(Failed::new(MediaFault::Provider, "provider minimax could not make the video")),
                _ => Err(protocol(target, "it has no known status")),
            }
        }
        .boxed()
    }

    fn link<'a>(&'a self, http: &'a Http, target: &'a Target, file: &'a str) -> BoxFuture<'a, Result<String, Failed>> {
        async move {
            let query = [("file_id", file)];
            let ask = Ask::get(target, &["files", "retrieve"], &query);
            let answer = checked(target, http.json(ask).await?)?;
            let link = answer.pointer("/file/download_url").and_then(Value::as_str);
            link.map(str::to_owned).ok_or_else(|| protocol(target, "it has no download_url"))
        }
        .boxed()
    }
}

fn not_offered() -> Failed {
    Failed::new(MediaFault::Refused, "provider minimax does not transcribe")
}

/// An id, which is a text or a number.
fn id(value: &Value) -> Option<String> {
    let text = value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()));
    text.filter(|text| !text.is_empty())
}

/// The answer, unless it says that it is an error.
fn checked(target: &Target, answer: Value) -> Result<Value, Failed> {
    let code = answer.pointer("/base_resp/status_code").and_then(Value::as_i64).unwrap_or_default();
    if code == 0 {
        return Ok(answer);
    }
    let words = answer.pointer("/base_resp/status_msg").and_then(Value::as_str).unwrap_or_default();
    let words = provider_words(words, target.key.as_ref().map(|key| key.expose()));
    let message = format!("Provider {} answered with the error {code}: {words}.", target.provider);
    Err(match code {
        1004 | 2049 => Failed::new(MediaFault::Auth, message),
        1002 | 1039 => Failed::new(MediaFault::RateLimited, message).passing(),
        1008 => Failed::new(MediaFault::RateLimited, message),
        1026 | 1027 => Failed::new(MediaFault::Filtered, message),
        2013 | 1042 => Failed::new(MediaFault::Refused, message),
        1001 => Failed::new(MediaFault::Timeout, message).charged(),
        _ => Failed::new(MediaFault::Provider, message),
    })
}

/// Sends a request of which the answer is JSON with a file in it, which takes so many times its bytes.
async fn ask(order: &Order<'_>, path: &str, body: &Value, times: u64) -> Result<Value, Failed> {
    let bytes_max = TEXT_BYTES_MAX + order.bytes_max * times;
    checked(order.target, order.http.json(Ask::post(order.target, &[path], body, bytes_max)).await?)
}

async fn image(order: &Order<'_>, prompt: &str, count: u32, size: Option<(u32, u32)>) -> Result<Made, Failed> {
    let target = order.target;
    let mut body = json!({ "model": target.model, "prompt": prompt, "n": count, "response_format": "base64" });
    if let Some((width, height)) = size {
        (body["width"], body["height"]) = (width.into(), height.into());
    }
    let answer = ask(order, "image_generation", &body, u64::from(count) * 2).await?;
    let list =
        |name: &str| answer.pointer(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut made = Made::default();
    for data in list("/data/image_base64").take(count as usize) {
        made.files.push(STANDARD.decode(data).map_err(|_| protocol(target, "an image is not Base64"))?);
    }
    if made.files.is_empty() {
        made.links = list("/data/image_urls").take(count as usize).map(str::to_owned).collect();
    }
    Ok(made)
}

async fn speech(order: &Order<'_>) -> Result<Made, Failed> {
    let MediaRequest::Speech { text, voice, format, speed_percent } = order.request else { return Err(not_offered()) };
    let speed = f64::from(speed_percent.unwrap_or(100)) / 100.0;
    let body = json!({
        "model": order.target.model,
        "text": text,
        "voice_setting": { "voice_id": voice.as_deref().unwrap_or("English_expressive_narrator"), "speed": speed },
        "audio_setting": { "format": format.as_deref().unwrap_or("mp3") },
        "output_format": "hex",
        "stream": false,
    });
    let answer = ask(order, "t2a_v2", &body, 2).await?;
    audio(order.target, &answer)
}

async fn video(order: &Order<'_>, prompt: &str, duration_secs: Option<u32>) -> Result<Made, Failed> {
    let mut body = json!({ "model": order.target.model, "prompt": prompt });
    if let Some(secs) = duration_secs {
        body["duration"] = secs.into();
    }
    let answer = ask(order, "video_generation", &body, 0).await?;
    let remote = answer.get("task_id").and_then(id).ok_or_else(|| protocol(order.target, "it names no task"))?;
    Ok(Made { remote: Some(remote), ..Made::default() })
}

async fn music(order: &Order<'_>) -> Result<Made, Failed> {
    let MediaRequest::Music { prompt, lyrics, instrumental, format } = order.request else { return Err(not_offered()) };
    let mut body = json!({
        "model": order.target.model,
        "is_instrumental": instrumental,
        "audio_setting": { "format": format.as_deref().unwrap_or("mp3") },
        "output_format": "hex",
    });
    for (name, text) in [("prompt", prompt), ("lyrics", lyrics)] {
        if let Some(text) = text {
            body[name] = text.as_ref().into();
        }
    }
    let answer = ask(order, "music_generation", &body, 2).await?;
    audio(order.target, &answer)
}

/// The audio of an answer, which is written in hexadecimal.
fn audio(target: &Target, answer: &Value) -> Result<Made, Failed> {
    let text = answer.pointer("/data/audio").and_then(Value::as_str);
    let text = text.ok_or_else(|| protocol(target, "it has no audio"))?;
    let file = unhex(text.as_bytes()).ok_or_else(|| protocol(target, "the audio is not hexadecimal"))?;
    Ok(Made { files: vec![file], ..Made::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_with_status_200_is_an_error() {
        let target = Target { provider: "minimax".into(), ..Target::default() };
        let of = |code: i64| {
            checked(&target, json!({ "base_resp": { "status_code": code, "status_msg": "x sk-123456789" } }))
        };
        assert!(of(0).is_ok() && checked(&target, json!({})).is_ok());
        for (code, fault, may_pass) in [
            (1004, MediaFault::Auth, false),
            (1002, MediaFault::RateLimited, true),
            (1008, MediaFault::RateLimited, false),
            (1026, MediaFault::Filtered, false),
            (2013, MediaFault::Refused, false),
            (1000, MediaFault::Provider, false),
        ] {
            let failed = of(code).unwrap_err();
            assert_eq!((failed.fault, failed.may_pass, failed.is_charged), (fault, may_pass, false), "{code}");
            assert!(!failed.message.contains("sk-1"), "{}", failed.message);
        }
    }
}
