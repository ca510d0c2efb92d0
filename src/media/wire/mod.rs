//! The wires of providers of media: one file each. To add a provider, write a file and add a line in [`WIRES`].

mod elevenlabs;
pub(super) mod form;
mod gemini;
mod minimax;
mod openai;
mod stability;
mod whisper;

use agentsvc_components::Micros;
use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest, MediaState};
use agentsvc_systems::media::MediaSource;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::failed::Failed;
use super::header::Header;
use super::http::Http;
use crate::model::provider::Target;

/// All wires, in the order in which they are chosen where nothing else says it.
pub(super) const WIRES: &[&dyn Wire] = &[
    &openai::OpenAi,
    &minimax::MiniMax,
    &gemini::Gemini,
    &elevenlabs::ElevenLabs,
    &stability::Stability,
    &whisper::GROQ,
    &whisper::TOGETHER,
    &whisper::FIREWORKS,
];

/// The wire of a provider.
pub(super) fn of(provider: &str) -> Option<&'static dyn Wire> {
    WIRES.iter().copied().find(|wire| wire.provider() == provider)
}

/// What a provider offers of a kind.
pub(super) struct Offer {
    pub(super) kind: MediaKind,
    /// The model that is asked where the request names none.
    pub(super) model: &'static str,
    /// Formats of files that a request may name, the usual one first.
    pub(super) formats: &'static [&'static str],
    /// The most that a model costs, by the beginning of its name, the longest first: micro-dollars for an image, a character of
    /// speech, a second of video, a piece of music, or a minute of a recording.
    pub(super) prices: &'static [(&'static str, u64)],
}

impl Offer {
    /// The most that a unit of a model costs, where that is known.
    pub(super) fn price(&self, model: &str) -> Option<Micros> {
        self.prices.iter().find(|(name, _)| model.starts_with(name)).map(|(_, price)| Micros(*price))
    }
}

/// The request of a job.
pub(super) struct Order<'a> {
    pub(super) http: &'a Http,
    pub(super) target: &'a Target,
    pub(super) request: &'a MediaRequest,
    /// The recording of a transcription, and what it says of itself.
    pub(super) recording: Option<(Vec<u8>, Header)>,
    /// Bytes of one file of the result at most.
    pub(super) bytes_max: u64,
}

/// What a provider made.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// The files themselves.
    pub(super) files: Vec<Vec<u8>>,
    /// Where files are to be downloaded.
    pub(super) links: Vec<String>,
    /// Its task that makes them.
    pub(super) remote: Option<String>,
    /// A transcript, or the prompt as the provider changed it.
    pub(super) text: Option<String>,
    /// The language of the transcript.
    pub(super) language: Option<String>,
}

/// How far a task is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Polled {
    /// It goes on.
    Open(MediaState),
    /// It has ended; where the result is.
    Ready(MediaSource),
}

/// The wire of one provider.
pub(super) trait Wire: Send + Sync {
    /// The provider, by its name in the catalog.
    fn provider(&self) -> &'static str;

    /// What it offers.
    fn offers(&self) -> &'static [Offer];

    /// Asks for media. This is what is paid.
    fn make<'a>(&'a self, order: Order<'a>) -> BoxFuture<'a, Result<Made, Failed>>;

    /// Asks for a task. Providers without tasks have none.
    fn poll<'a>(&'a self, _: &'a Http, _: &'a Target, _: &'a str) -> BoxFuture<'a, Result<Polled, Failed>> {
        async { Err(without_tasks(self.provider())) }.boxed()
    }

    /// A fresh link to a file. Providers without tasks have none.
    fn link<'a>(&'a self, _: &'a Http, _: &'a Target, _: &'a str) -> BoxFuture<'a, Result<String, Failed>> {
        async { Err(without_tasks(self.provider())) }.boxed()
    }
}

fn without_tasks(provider: &str) -> Failed {
    Failed::new(MediaFault::Refused, format!("provider {provider} has no tasks"))
}

/// What a provider offers of a kind.
pub(super) fn offer(wire: &dyn Wire, kind: MediaKind) -> Option<&'static Offer> {
    wire.offers().iter().find(|offer| offer.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wires_offer_each_kind_once_with_a_price_of_the_usual_model() {
        for wire in WIRES {
            let mut kinds: Vec<_> = wire.offers().iter().map(|offer| offer.kind).collect();
            kinds.dedup();
            assert_eq!(kinds.len(), wire.offers().len());
            for offer in wire.offers() {
                assert!(offer.price(offer.model).is_some(), "{}: {}", wire.provider(), offer.model);
                let shadowed = offer
                    .prices
                    .iter()
                    .enumerate()
                    .find(|(at, (name, _))| offer.prices[..*at].iter().any(|(before, _)| name.starts_with(before)));
                assert!(shadowed.is_none(), "{shadowed:?}");
            }
            assert!(of(wire.provider()).is_some());
        }
    }
}
