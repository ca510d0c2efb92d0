//! Why a provider made nothing, and what follows from it.

use std::time::Duration;

use agentsvc_components::Micros;
use agentsvc_components::kernel::job::TryEnd;
use agentsvc_components::media::MediaFault;
use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_systems::media::MediaReport;

use crate::model::error::CallError;

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) fault: MediaFault,
    /// For people; may hold words of the provider, and no secret.
    pub(super) message: String,
    /// How long the provider asks to be left alone.
    pub(super) retry_after: Option<Duration>,
    /// The request may have been charged all the same.
    pub(super) is_charged: bool,
    /// It may succeed later.
    pub(super) may_pass: bool,
}

impl Failed {
    /// What another try cannot mend, and what was not charged.
    pub(super) fn new(fault: MediaFault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), retry_after: None, is_charged: false, may_pass: false }
    }

    /// The request may have been charged.
    pub(super) const fn charged(mut self) -> Self {
        self.is_charged = true;
        self
    }

    /// It may succeed later.
    pub(super) const fn passing(mut self) -> Self {
        self.may_pass = true;
        self
    }

    fn report(&self, cost: Option<Micros>) -> String {
        let report =
            MediaReport { cost, fault: Some(self.fault), error: Some(self.message.clone()), ..MediaReport::default() };
        serde_json::to_string(&report).unwrap_or_default()
    }

    /// What becomes of a request that is paid, which costs at most so much: it is repeated only where nothing was charged.
    pub(super) fn paid_end(&self, most: Micros) -> TryEnd {
        if self.may_pass && !self.is_charged {
            return self.retry();
        }
        TryEnd::Failed(self.report(self.is_charged.then_some(most)))
    }

    /// What becomes of a question that costs nothing.
    pub(super) fn free_end(&self) -> TryEnd {
        // The result may be paid: it is not given up for one answer that is late, broken off or cannot be read.
        if self.may_pass || self.is_charged || self.fault == MediaFault::Timeout {
            self.retry()
        } else {
            TryEnd::Failed(self.report(None))
        }
    }

    fn retry(&self) -> TryEnd {
        let after_ms = self.retry_after.map(|after| u32::try_from(after.as_millis()).unwrap_or(u32::MAX));
        TryEnd::Retry { after_ms, reason: self.report(None) }
    }
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        let fault = match error.code {
            FailureCode::ProviderAuth | FailureCode::UnknownProvider => MediaFault::Auth,
            FailureCode::ProviderRateLimited => MediaFault::RateLimited,
            FailureCode::ProviderUnreachable => MediaFault::Unreachable,
            FailureCode::ProviderTimeout => MediaFault::Timeout,
            FailureCode::ProviderProtocol => MediaFault::Protocol,
            FailureCode::ProviderRefused | FailureCode::PromptTooLarge | FailureCode::PluginFailed => {
                MediaFault::Refused
            }
            FailureCode::ProviderError | FailureCode::Internal => MediaFault::Provider,
        };
        let CallError { message, retryable, retry_after, .. } = error;
        Self { fault, message, retry_after, is_charged: false, may_pass: retryable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_charged_is_never_asked_for_again() {
        let most = Micros(7);
        let busy = Failed::from(CallError::passing(FailureCode::ProviderRateLimited, "busy"));
        assert!(matches!(busy.paid_end(most), TryEnd::Retry { .. }));
        let lost = Failed::from(CallError::passing(FailureCode::ProviderError, "broken off")).charged();
        let TryEnd::Failed(text) = lost.paid_end(most) else { panic!("it is tried again") };
        let report: MediaReport = serde_json::from_str(&text).unwrap();
        assert_eq!((report.cost, report.fault), (Some(most), Some(MediaFault::Provider)));
        assert!(matches!(lost.free_end(), TryEnd::Retry { .. }), "a question is free");
        let refused = Failed::from(CallError::last(FailureCode::ProviderRefused, "no"));
        let TryEnd::Failed(text) = refused.paid_end(most) else { panic!("it is tried again") };
        assert_eq!(serde_json::from_str::<MediaReport>(&text).unwrap().cost, None);
        assert!(matches!(refused.free_end(), TryEnd::Failed(_)));
        let garbled = Failed::from(CallError::last(FailureCode::ProviderProtocol, "no JSON")).charged();
        assert!(matches!(garbled.free_end(), TryEnd::Retry { .. }), "the next answer may be better");
    }
}
