//! Which provider and model make something, and what that costs at most.

use std::sync::Arc;

use agentsvc_api::media::host::{Chosen, MediaHost, MediaProvider, NotChosen, Wanted};
use agentsvc_components::Micros;
use agentsvc_components::media::{MediaKind, MediaRequest};
use arc_swap::ArcSwap;

use super::config::Media;
use super::header;
use super::wire::{self, Offer, WIRES, Wire};
use crate::kernel::settings::Settings;
use crate::model::provider::Providers;

/// Seconds of a video where the request says nothing.
const VIDEO_SECS: u64 = 6;
/// Bytes in a second of a recording that does not say how long it is: less than any has.
const RECORDING_BYTES_PER_SEC: u64 = 500;
/// Characters that the operator's price of speech is for.
const SPEECH_CHARS: u64 = 1_000;

/// The providers of the present world; `None` while there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(pub(super) Option<Arc<ArcSwap<Providers>>>);

/// Chooses.
pub(super) struct Chooser(pub(super) Settings);

impl MediaHost for Chooser {
    fn providers(&self) -> Vec<MediaProvider> {
        let shown = WIRES.iter().map(|wire| MediaProvider {
            name: wire.provider(),
            configured: self.is_configured(wire.provider()),
            kinds: wire.offers().iter().map(|offer| offer.kind).collect(),
        });
        shown.collect()
    }

    fn default_provider(&self, kind: MediaKind) -> Option<&'static str> {
        self.wire(kind, None).ok().map(|(wire, _)| wire.provider())
    }

    fn choose(&self, wanted: &Wanted<'_>) -> Result<Chosen, NotChosen> {
        let kind = wanted.request.kind();
        let (wire, offer) = self.wire(kind, wanted.provider)?;
        check_format(wire, offer, wanted.request)?;
        let model = wanted.model.unwrap_or(offer.model);
        let settings = self.0.get::<Media>();
        let own = settings.price(wire.provider(), model);
        let (units, per) = units(wanted.request, wanted.recording_ms);
        let most = match own {
            // Prices of speech are for many characters.
            Some(usd) if kind == MediaKind::Speech => Some(times(usd, units, per * SPEECH_CHARS)),
            Some(usd) => Some(times(usd, units, per)),
            None => offer.price(model).map(|price| times(price, units, per)),
        };
        Ok(Chosen {
            provider: wire.provider(),
            model: model.to_owned(),
            most: most.unwrap_or_default(),
            is_priced: most.is_some(),
        })
    }

    fn recording_ms(&self, recording: &[u8]) -> Option<u64> {
        let header = header::read(recording).filter(|header| header.class != header::Class::Image)?;
        Some(header.duration_ms.unwrap_or(recording.len() as u64 * 1_000 / RECORDING_BYTES_PER_SEC))
    }
}

impl Chooser {
    fn is_configured(&self, provider: &str) -> bool {
        let Some(providers) = self.0.get::<Known>().0.clone() else { return false };
        let providers = providers.load();
        providers.get(provider).is_some_and(|provider| providers.is_usable(provider))
    }

    /// The provider that was named, else the operator's choice, else the first with a key.
    fn wire(&self, kind: MediaKind, named: Option<&str>) -> Result<(&'static dyn Wire, &'static Offer), NotChosen> {
        let settings = self.0.get::<Media>();
        if let Some(name) = named.or_else(|| settings.provider(kind)) {
            let Some(wire) = wire::of(name) else {
                let known: Vec<_> = WIRES.iter().map(|wire| wire.provider()).collect();
                let shown: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
                let text = format!("unknown media provider {shown:?}; known providers: {}", known.join(", "));
                return Err(NotChosen::Unsupported("provider", text));
            };
            let Some(offer) = wire::offer(wire, kind) else {
                let text = format!("provider {name} does not offer {}", kind.as_str());
                return Err(NotChosen::Unsupported("provider", text));
            };
            if !self.is_configured(name) {
                return Err(NotChosen::MissingKey(format!("provider {name} has no key; set one")));
            }
            return Ok((wire, offer));
        }
        let mut offering = WIRES.iter().filter_map(|wire| Some((*wire, wire::offer(*wire, kind)?)));
        let names: Vec<_> = offering.clone().map(|(wire, _)| wire.provider()).collect();
        let found = offering.find(|(wire, _)| self.is_configured(wire.provider()));
        found.ok_or_else(|| {
            let text = format!("no provider of {} has a key; set one for {}", kind.as_str(), names.join(" or "));
            NotChosen::MissingKey(text)
        })
    }
}

fn check_format(wire: &dyn Wire, offer: &Offer, request: &MediaRequest) -> Result<(), NotChosen> {
    let (MediaRequest::Speech { format, .. } | MediaRequest::Music { format, .. }) = request else { return Ok(()) };
    let Some(format) = format.as_deref().filter(|format| !offer.formats.contains(format)) else { return Ok(()) };
    let shown: String = format.chars().filter(|c| !c.is_control()).take(100).collect();
    let text =
        format!("provider {} does not offer the format {shown:?}; use {}", wire.provider(), offer.formats.join(", "));
    Err(NotChosen::Unsupported("format", text))
}

/// For how many units a request is charged at most: so many, of which so many are one unit.
fn units(request: &MediaRequest, recording_ms: Option<u64>) -> (u64, u64) {
    match request {
        MediaRequest::Image { count, .. } => (u64::from(*count), 1),
        MediaRequest::Speech { text, .. } => (text.chars().count() as u64, 1),
        MediaRequest::Video { duration_secs, .. } => (duration_secs.map_or(VIDEO_SECS, u64::from), 1),
        MediaRequest::Music { .. } => (1, 1),
        MediaRequest::Transcription { .. } => (recording_ms.unwrap_or(0).max(1_000), 60_000),
    }
}

/// So many times a price, rounded up.
fn times(price: Micros, units: u64, per: u64) -> Micros {
    let sum = u128::from(price.0) * u128::from(units);
    Micros(u64::try_from(sum.div_ceil(u128::from(per.max(1)))).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use agentsvc_components::FileId;
    use uuid::Uuid;

    use super::super::config::MediaPrice;
    use super::*;

    fn chooser(keys: &'static [&'static str]) -> Chooser {
        let environment: fn(&str) -> Option<String> = match keys {
            [] => |_| None,
            ["openai"] => |name| (name == "OPENAI_API_KEY").then(|| "k".to_owned()),
            ["minimax"] => |name| (name == "MINIMAX_API_KEY").then(|| "k".to_owned()),
            _ => |name| ["OPENAI_API_KEY", "MINIMAX_API_KEY"].contains(&name).then(|| "k".to_owned()),
        };
        let settings = Settings::default();
        let providers = Providers::default().with_environment(environment);
        settings.set(Known(Some(Arc::new(ArcSwap::from_pointee(providers)))));
        Chooser(settings)
    }

    fn image(count: u32) -> MediaRequest {
        MediaRequest::Image { prompt: "x".into(), count, size: None }
    }

    fn wanted<'a>(request: &'a MediaRequest, provider: Option<&'a str>) -> Wanted<'a> {
        Wanted { request, provider, model: None, recording_ms: None }
    }

    #[test]
    fn the_first_provider_with_a_key_and_the_kind_is_chosen() {
        let name =
            |chooser: &Chooser, request: &MediaRequest| chooser.choose(&wanted(request, None)).map(|it| it.provider);
        let video = MediaRequest::Video { prompt: "x".into(), duration_secs: None };
        let both = chooser(&["both"]);
        assert_eq!((name(&both, &image(1)), name(&both, &video)), (Ok("openai"), Ok("minimax")));
        assert_eq!(name(&chooser(&["minimax"]), &image(1)), Ok("minimax"));
        assert!(matches!(name(&chooser(&["openai"]), &video), Err(NotChosen::MissingKey(_))));
        assert!(matches!(name(&chooser(&[]), &image(1)), Err(NotChosen::MissingKey(_))));
        assert_eq!(chooser(&["openai"]).default_provider(MediaKind::Video), None);
        both.0.set(Media { image_provider: Some("minimax".into()), ..Media::default() });
        assert_eq!(both.default_provider(MediaKind::Image), Some("minimax"));
        assert_eq!(name(&both, &image(1)), Ok("minimax"), "the operator's choice");
        let asked = both.choose(&wanted(&image(1), Some("openai"))).map(|it| it.provider);
        assert_eq!(asked, Ok("openai"), "the request's choice");
        for (request, provider, field) in [(&image(1), "nobody", "provider"), (&video, "openai", "provider")] {
            let refused = both.choose(&wanted(request, Some(provider)));
            assert!(matches!(refused, Err(NotChosen::Unsupported(of, _)) if of == field), "{provider}");
        }
        let speech =
            MediaRequest::Speech { text: "x".into(), voice: None, format: Some("pcm".into()), speed_percent: None };
        assert!(matches!(both.choose(&wanted(&speech, None)), Err(NotChosen::Unsupported("format", _))));
    }

    #[test]
    fn the_most_is_the_price_of_all_units() {
        let chooser = chooser(&["both"]);
        let most = |request: &MediaRequest, recording_ms| {
            let wanted = Wanted { request, provider: None, model: None, recording_ms };
            chooser.choose(&wanted).map(|chosen| chosen.most.0)
        };
        assert_eq!(most(&image(3), None), Ok(750_000));
        let speech =
            MediaRequest::Speech { text: "ä".repeat(100).into(), voice: None, format: None, speed_percent: None };
        assert_eq!(most(&speech, None), Ok(1_500));
        let file = FileId(Uuid::nil());
        let transcription = MediaRequest::Transcription { file, is_temporary: false, language: None };
        assert_eq!((most(&transcription, Some(90_000)), most(&transcription, Some(1))), (Ok(9_000), Ok(100)));
        chooser
            .0
            .set(Media { prices: vec![MediaPrice { model: "openai/tts-1".into(), usd: 0.03 }], ..Media::default() });
        assert_eq!(most(&speech, None), Ok(3_000));
        let request = &image(1);
        let unknown = Wanted { request, provider: None, model: Some("new-model"), recording_ms: None };
        let chosen = chooser.choose(&unknown).map(|chosen| (chosen.most, chosen.is_priced));
        assert_eq!(chosen, Ok((Micros::ZERO, false)));
    }
}
