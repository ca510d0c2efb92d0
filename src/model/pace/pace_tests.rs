//! Tests of the pace: what passes, what waits, what is refused.

use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_api::provider::calls::{CallState, ProviderCalls};
use reqwest::header::{HeaderName, HeaderValue};

use super::*;
use crate::model::testing;

fn target(base_url: &str) -> Target {
    testing::target(DriverKind::OpenAi, base_url)
}

fn here() -> Target {
    target("http://h:1/v1")
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}

const LONG: Duration = Duration::from_secs(30);

async fn pass(pace: &Pace) -> Result<Pass, CallError> {
    pace.admit(&here(), 10, LONG).await
}

async fn fail(pace: &Pace, error: CallError) {
    pass(pace).await.unwrap().end(&Err(error));
}

fn down() -> CallError {
    CallError::passing(FailureCode::ProviderError, "down")
}

fn limited(after_ms: u64) -> CallError {
    let retry_after = Some(Duration::from_millis(after_ms));
    CallError { retry_after, ..CallError::passing(FailureCode::ProviderRateLimited, "slow down") }
}

#[tokio::test]
async fn a_provider_that_fails_is_left_alone_and_others_are_not() {
    let pace = Pace::default();
    for _ in 0..breaker::FAILURES_MAX {
        fail(&pace, down()).await;
    }
    let error = pass(&pace).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (FailureCode::ProviderError, false));
    assert!(error.message.contains("failed 5 times in a row") && error.retry_after.is_some(), "{}", error.message);
    for other in [target("http://h:2/v1"), Target { provider: "q".into(), ..here() }] {
        assert!(pace.admit(&other, 10, LONG).await.is_ok());
    }
    assert!(pace.admit(&target("HTTP://H:1"), 10, LONG).await.is_err(), "the same host");
    let status = pace.status().into_iter().find(|of| of.provider == "p" && of.failures > 0).unwrap();
    assert_eq!((status.breaker, status.refused_total, status.host.as_str()), (BreakerState::Open, 2, "h"));
    assert!(status.closed_for_ms > 0, "{status:?}");
    let mut text = MetricsText::default();
    pace.gather(&mut text);
    assert!(text.as_str().contains("agentsvc_provider_breaker{provider=\"p\",host=\"h\"} 2"));
}

#[tokio::test]
async fn only_illness_counts() {
    let pace = Pace::default();
    for error in [
        CallError::last(FailureCode::ProviderAuth, "no"),
        CallError::last(FailureCode::ProviderRefused, "no"),
        CallError::passing(FailureCode::ProviderRateLimited, "slow"),
        CallError::passing(FailureCode::ProviderProtocol, "odd"),
        CallError::last(FailureCode::ProviderError, "an error of the answer"),
        CallError::last(FailureCode::Internal, "ours"),
    ] {
        for _ in 0..2 * breaker::FAILURES_MAX {
            fail(&pace, error.clone()).await;
        }
    }
    assert_eq!(pace.status()[0].breaker, BreakerState::Closed);
    // An answer between them: not in a row.
    for _ in 0..3 {
        for _ in 1..breaker::FAILURES_MAX {
            fail(&pace, CallError::last(FailureCode::ProviderTimeout, "silence")).await;
        }
        pass(&pace).await.unwrap().end(&Ok(()));
    }
    assert_eq!(pace.status()[0].breaker, BreakerState::Closed);
}

#[tokio::test]
async fn a_pause_is_waited_for_in_order() {
    let pace = Arc::new(Pace::default());
    let begun = Instant::now();
    // Long enough for all four to come before it is over, on any machine.
    fail(&pace, limited(2_000)).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut calls = Vec::new();
    for at in 0..4 {
        let (pace, order) = (Arc::clone(&pace), Arc::clone(&order));
        calls.push(tokio::spawn(async move {
            let passed = pass(&pace).await;
            order.lock().push(at);
            passed.unwrap().end(&Ok(()));
        }));
        tokio::task::yield_now().await;
    }
    assert_eq!((pace.status()[0].waiting, pace.status()[0].waits_total), (4, 4));
    for call in calls {
        call.await.unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_millis(1_950), "{:?}", begun.elapsed());
    assert_eq!(*order.lock(), [0, 1, 2, 3]);
    assert_eq!(pace.status()[0].waiting, 0);
    assert!(pass(&pace).await.is_ok());
}

#[tokio::test]
async fn too_long_a_pause_is_not_waited_for_and_ends() {
    let pace = Pace::default();
    fail(&pace, limited(86_400_000)).await;
    let error = pass(&pace).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (FailureCode::ProviderRateLimited, false));
    assert!(error.message.contains("pause calls for another 600 s"), "{}", error.message);
    assert_eq!(pace.status()[0].refused_total, 1);
}

#[tokio::test]
async fn a_wait_that_is_stopped_leaves_no_trace() {
    let pace = Pace::default();
    fail(&pace, limited(25_000)).await;
    let waited = tokio::time::timeout(Duration::from_millis(20), pass(&pace)).await;
    assert!(waited.is_err());
    assert_eq!(pace.status()[0].waiting, 0);
    let short = pace.admit(&here(), 10, Duration::from_millis(5)).await.unwrap_err();
    assert_eq!(short.code, FailureCode::ProviderRateLimited);
}

#[tokio::test]
async fn headers_teach() {
    let pace = Pace::default();
    let told = headers(&[
        ("x-ratelimit-limit-requests", "20"),
        ("x-ratelimit-remaining-requests", "1"),
        ("x-ratelimit-reset-requests", "38s"),
        ("x-ratelimit-limit-tokens", "1000"),
        ("x-ratelimit-remaining-tokens", "900"),
        ("x-ratelimit-reset-tokens", "6000s"),
    ]);
    let begun = Instant::now();
    pace.learn(&here(), &told);
    assert_eq!(pace.status()[0].tokens, Some(LimitLeft { limit: 1_000, left: 900 }));
    // One in two seconds: the first passes, the next waits.
    pass(&pace).await.unwrap().end(&Ok(()));
    assert_eq!(pace.status()[0].waits_total, 0);
    pass(&pace).await.unwrap().end(&Ok(()));
    assert!(begun.elapsed() >= Duration::from_millis(1_950), "{:?}", begun.elapsed());
    // 880 tokens are left and one comes back in a minute: 1,000 are too long away.
    let error = pace.admit(&here(), 5_000, LONG).await.unwrap_err();
    assert_eq!(error.code, FailureCode::ProviderRateLimited);
    assert!(pace.admit(&here(), 50, LONG).await.is_ok());
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let pace = Pace::default();
    for at in 0..PLACES_MAX + 10 {
        pace.admit(&target(&format!("http://h{at}")), 1, LONG).await.unwrap().end(&Ok(()));
    }
    let status = pace.status();
    assert_eq!(status.len(), PLACES_MAX);
    assert!(status.iter().all(|of| of.host != "h0") && status.iter().any(|of| of.host == "h265"));
}

#[tokio::test]
async fn the_built_in_model_has_no_pace() {
    let pace = Pace::default();
    let target = Target::default();
    for _ in 0..10 {
        pace.admit(&target, 1, LONG).await.unwrap().end(&Err(down()));
    }
    assert_eq!(pace.status(), []);
}

#[tokio::test]
async fn the_health_of_a_provider_says_what_its_calls_found() {
    let pace = Pace::default();
    let state = |pace: &Pace| pace.health("p").map(|health| (health.state, health.last_error.map(|fault| fault.code)));
    assert_eq!(state(&pace), None, "it was not asked");
    pass(&pace).await.unwrap().end(&Ok(()));
    assert_eq!(state(&pace), Some((CallState::Ok, None)));
    fail(&pace, CallError::last(FailureCode::ProviderAuth, "wrong key")).await;
    assert_eq!(state(&pace), Some((CallState::Failing, Some(FailureCode::ProviderAuth))));
    assert!(pace.held_up("p").is_none(), "a wrong key holds up nothing");
    pace.forget_error("p");
    assert_eq!(state(&pace), Some((CallState::Ok, None)));
    fail(&pace, limited(60_000)).await;
    let held = pace.held_up("p").unwrap();
    assert_eq!(held.code, FailureCode::ProviderRateLimited);
    assert!(held.wait.unwrap() > Duration::from_secs(30), "{held:?}");
    let other = Target { provider: "q".into(), ..here() };
    for _ in 0..breaker::FAILURES_MAX {
        pace.admit(&other, 10, LONG).await.unwrap().end(&Err(down()));
    }
    let health = pace.health("q").unwrap();
    assert_eq!((health.state, health.last_error.unwrap().message.as_ref()), (CallState::Paused, "down"));
    assert!(health.resumes_at.is_some() && pace.held_up("q").is_some());
}
