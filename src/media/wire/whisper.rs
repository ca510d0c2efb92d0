//! Groq and Together: transcription over the wire of OpenAI.

use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::openai::transcribe;
use super::{Made, Offer, Order, Wire};
use crate::media::failed::Failed;

/// The wire of one of them.
pub(super) struct Whisper {
    provider: &'static str,
    offers: &'static [Offer],
}

/// Groq.
pub(super) const GROQ: Whisper = Whisper {
    provider: "groq",
    offers: &[Offer {
        kind: MediaKind::Transcription,
        model: "whisper-large-v3-turbo",
        formats: &[],
        prices: &[("whisper-large-v3-turbo", 700), ("whisper-large-v3", 1_900)],
    }],
};

/// Together.
pub(super) const TOGETHER: Whisper = Whisper {
    provider: "together",
    offers: &[Offer {
        kind: MediaKind::Transcription,
        model: "openai/whisper-large-v3",
        formats: &[],
        prices: &[("openai/whisper-large-v3", 1_500)],
    }],
};

impl Wire for Whisper {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn offers(&self) -> &'static [Offer] {
        self.offers
    }

    fn make<'a>(&'a self, order: Order<'a>) -> BoxFuture<'a, Result<Made, Failed>> {
        async move {
            let MediaRequest::Transcription { language, .. } = order.request else {
                return Err(Failed::new(MediaFault::Refused, format!("provider {} only transcribes", self.provider)));
            };
            let language = language.clone();
            transcribe(order, language.as_deref()).await
        }
        .boxed()
    }
}
