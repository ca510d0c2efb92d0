//! Stability AI: images. Its endpoint is in the configuration, `[providers.stability]`. A request is a form; the answer is JSON that
//! says whether the content filter blurred the image.

use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::form::Form;
use super::{Made, Offer, Order, Wire};
use crate::media::failed::Failed;
use crate::media::http::{Ask, TEXT_BYTES_MAX, json_of, protocol};
use crate::model::provider::Target;

/// The wire.
pub(super) struct Stability;

const OFFERS: &[Offer] = &[Offer {
    kind: MediaKind::Image,
    model: "stable-image-core",
    formats: &[],
    prices: &[
        ("stable-image-core", 30_000),
        ("stable-image-ultra", 80_000),
        ("sd3.5-large-turbo", 40_000),
        ("sd3.5-large", 65_000),
        ("sd3.5-medium", 35_000),
        ("sd3.5-flash", 25_000),
    ],
}];
/// The last part of the paths of models, by the beginning of their names.
const ENDPOINTS: &[(&str, &str)] = &[("stable-image-core", "core"), ("stable-image-ultra", "ultra"), ("sd3", "sd3")];
/// The aspect ratios that it takes.
const RATIOS: &[(u32, u32)] = &[(1, 1), (16, 9), (21, 9), (2, 3), (3, 2), (4, 5), (5, 4), (9, 16), (9, 21)];

impl Wire for Stability {
    fn provider(&self) -> &'static str {
        "stability"
    }

    fn offers(&self) -> &'static [Offer] {
        OFFERS
    }

    fn make<'a>(&'a self, order: Order<'a>) -> BoxFuture<'a, Result<Made, Failed>> {
        async move {
            match order.request {
                MediaRequest::Image { prompt, count: 1, size } => image(&order, prompt, *size).await,
                MediaRequest::Image { .. } => Err(refused("provider stability makes one image for a request")),
                MediaRequest::Speech { .. }
                | MediaRequest::Video { .. }
                | MediaRequest::Music { .. }
                | MediaRequest::Transcription { .. } => Err(refused("provider stability only makes images here")),
            }
        }
        .boxed()
    }
}

fn refused(text: impl Into<String>) -> Failed {
    Failed::new(MediaFault::Refused, text)
}

async fn image(order: &Order<'_>, prompt: &str, size: Option<(u32, u32)>) -> Result<Made, Failed> {
    let target = order.target;
    let endpoint = ENDPOINTS.iter().find(|(name, _)| target.model.starts_with(name)).map(|(_, endpoint)| *endpoint);
    let endpoint = endpoint.ok_or_else(|| {
        refused("provider stability has the models stable-image-core, stable-image-ultra and those that begin with sd3")
    })?;
    let mut form = Form::default();
    form.field("prompt", prompt);
    form.field("output_format", "png");
    if endpoint == "sd3" {
        form.field("model", &target.model);
    }
    if let Some(size) = size {
        form.field("aspect_ratio", &ratio(size)?);
    }
    // Base64 takes a third more.
    let bytes_max = TEXT_BYTES_MAX + (order.bytes_max / 3 + 1) * 4;
    let path = ["stable-image", "generate", endpoint];
    let ask = Ask { accept: "application/json", bytes_max, ..Ask::form(target, &path, form)? };
    let answer = order.http.ask(ask).await?;
    if answer.content_type.starts_with("image/") {
        is_fine(target, Some(&answer.finish_reason).filter(|reason| !reason.is_empty()).map(String::as_str))?;
        return Ok(Made { files: vec![answer.body], ..Made::default() });
    }
    let value = json_of(target, &answer.body)?;
    is_fine(target, value.get("finish_reason").and_then(Value::as_str))?;
    let data = value.get("image").and_then(Value::as_str).ok_or_else(|| protocol(target, "it has no image"))?;
    let file = STANDARD.decode(data).map_err(|_| protocol(target, "the image is not Base64"))?;
    Ok(Made { files: vec![file], ..Made::default() })
}

/// Is the image what was asked for? One that the filter blurred was made, and is charged.
fn is_fine(target: &Target, finish_reason: Option<&str>) -> Result<(), Failed> {
    match finish_reason {
        None | Some("SUCCESS") => Ok(()),
        Some("CONTENT_FILTERED") => {
            let text = "a content filter of provider stability blurred the image";
            Err(Failed::new(MediaFault::Filtered, text).charged())
        }
        Some(_) => Err(protocol(target, "it has no known finish_reason")),
    }
}

/// The aspect ratio of a size; the model chooses the pixels.
fn ratio((width, height): (u32, u32)) -> Result<String, Failed> {
    let is_it = |(w, h): &&(u32, u32)| u64::from(width) * u64::from(*h) == u64::from(height) * u64::from(*w);
    let found = RATIOS.iter().find(is_it).map(|(w, h)| format!("{w}:{h}"));
    found.ok_or_else(|| {
        let known: Vec<_> = RATIOS.iter().map(|(w, h)| format!("{w}:{h}")).collect();
        let known = known.join(", ");
        refused(format!("provider stability takes a width and height with one of the aspect ratios {known}"))
    })
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn a_size_is_an_aspect_ratio_that_the_provider_takes() {
        for (size, expected) in [((1024, 1024), "1:1"), ((1920, 1080), "16:9"), ((9, 21), "9:21"), ((800, 1000), "4:5")]
        {
            assert_eq!(ratio(size).as_deref(), Ok(expected));
        }
        for size in [(640, 480), (4_096, 1), (0, 1)] {
            assert!(ratio(size).unwrap_err().message.contains("16:9"), "{size:?}");
        }
    }
}
