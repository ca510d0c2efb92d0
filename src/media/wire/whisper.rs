//! Groq, Together and Fireworks: transcription over the wire of OpenAI.

use agentsvc_components::media::{MediaFault, MediaKind, MediaRequest};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::openai::transcribe;
use super::{Made, Offer, Order, Wire};
use crate::kernel::host::host_of;
use crate::media::failed::Failed;
use crate::model::provider::Target;

/// The wire of one of them.
pub(super) struct Whisper {
    provider: &'static str,
    offers: &'static [Offer],
    /// The endpoints of models, by the beginning of their names, where the provider does not transcribe at that of its other
    /// models, which is the host here.
    elsewhere: Option<(&'static str, &'static [(&'static str, &'static str)])>,
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
    elsewhere: None,
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
    elsewhere: None,
};

/// Fireworks.
pub(super) const FIREWORKS: Whisper = Whisper {
    provider: "fireworks",
    offers: &[Offer {
        kind: MediaKind::Transcription,
        model: "whisper-v3-turbo",
        formats: &[],
        prices: &[("whisper-v3-turbo", 900), ("whisper-v3", 1_500)],
    }],
    elsewhere: Some((
        "api.fireworks.ai",
        &[
            ("whisper-v3-turbo", "https://audio-turbo.api.fireworks.ai/v1"),
            ("", "https://audio-prod.api.fireworks.ai/v1"),
        ],
    )),
};

impl Whisper {
    /// Where a model transcribes. An endpoint that the operator chose stays.
    fn place(&self, target: &Target) -> Option<Target> {
        let (_, endpoints) = self.elsewhere.filter(|(host, _)| host_of(&target.base_url).as_deref() == Some(*host))?;
        let (_, base_url) = endpoints.iter().find(|(name, _)| target.model.starts_with(name))?;
        Some(Target { base_url: (*base_url).into(), ..target.clone() })
    }
}

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
            let (language, elsewhere) = (language.clone(), self.place(order.target));
            let target = elsewhere.as_ref().unwrap_or(order.target);
            transcribe(Order { target, ..order }, language.as_deref()).await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fireworks_transcribes_at_an_endpoint_for_each_model_unless_the_operator_chose_one() {
        let place = |base_url: &str, model: &str| {
            let target = Target { base_url: base_url.into(), model: model.into(), ..Target::default() };
            FIREWORKS.place(&target).map(|target| target.base_url.to_string())
        };
        let usual = "https://api.fireworks.ai/inference/v1";
        assert_eq!(place(usual, "whisper-v3-turbo").as_deref(), Some("https://audio-turbo.api.fireworks.ai/v1"));
        assert_eq!(place(usual, "whisper-v3").as_deref(), Some("https://audio-prod.api.fireworks.ai/v1"));
        assert_eq!(place("https://gateway.example/v1", "whisper-v3"), None);
        let groq = Target { base_url: usual.into(), ..Target::default() };
        assert!(GROQ.place(&groq).is_none() && TOGETHER.place(&groq).is_none());
    }
}
