//! What a provider says when it does not answer.

use agentsvc_components::turn::outcome::FailureCode;
use std::time::Duration;

use super::asking::{ask, question};
use super::script::Script;
use super::server::{Answer, Server};
use super::speaks::Speaks;

/// Status, class, and whether it may pass.
const STATUSES: &[(u16, FailureCode, bool)] = &[
    (400, FailureCode::ProviderRefused, false),
    (401, FailureCode::ProviderAuth, false),
    (403, FailureCode::ProviderAuth, false),
    (404, FailureCode::ProviderRefused, false),
    (408, FailureCode::ProviderTimeout, true),
    (413, FailureCode::ProviderRefused, false),
    (422, FailureCode::ProviderRefused, false),
    (429, FailureCode::ProviderRateLimited, true),
    (500, FailureCode::ProviderError, true),
    (502, FailureCode::ProviderError, true),
    (503, FailureCode::ProviderError, true),
    (529, FailureCode::ProviderError, true),
];

pub(crate) async fn by_status(speaker: &dyn Speaks) {
    for (status, code, passes) in STATUSES {
        for streaming in [false, true] {
            let answer = speaker.error(*status, "the provider's own words").header("retry-after", "7");
            let server = Server::always(answer).await;
            let error = ask(speaker, &server, question(streaming)).await.error();
            assert_eq!((error.code, error.retryable), (*code, *passes), "{status}: {error:?}");
            assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
            assert!(error.message.contains(&format!("Provider scripted answered {status}")), "{error:?}");
            assert!(error.message.contains("the provider's own words"), "{error:?}");
        }
    }
}

pub(crate) async fn within_the_stream(speaker: &dyn Speaks) {
    let Some(frame) = speaker.error_frame("busy now") else { return };
    for before in [0, 2] {
        let mut frames = speaker.stream(&Script::text(&["one ", "two "]))[..before].to_vec();
        frames.push(frame.clone());
        let server = Server::always(Answer::new(200, speaker.stream_type(), frames)).await;
        let error = ask(speaker, &server, question(true)).await.error();
        assert_eq!((error.code, error.retryable), (FailureCode::ProviderError, true), "{error:?}");
        assert!(error.message.contains("busy now"), "{error:?}");
    }
}

pub(crate) async fn keys_are_not_repeated(speaker: &dyn Speaks) {
    let words = format!("no such key {} here", speaker.key());
    let server = Server::always(speaker.error(401, &words)).await;
    let error = ask(speaker, &server, question(false)).await.error();
    assert!(error.message.contains("no such key"), "{error:?}");
    for part in speaker.key().split(':') {
        assert!(!error.message.contains(part), "{error:?}");
    }
}
