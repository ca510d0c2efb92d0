//! What comes back when it does not, and what is tried again.

use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::manifest::ModelChoice;
use agentsvc_components::session::message::text_of;
use agentsvc_components::turn::outcome::FailureCode;

use crate::harness::{Harness, KEY, Log, attempt, chunk};
use crate::model_server::{Gate, ModelServer, Reply};

#[tokio::test]
async fn a_break_is_retried_until_something_was_given_out() {
    let server = ModelServer::start();
    let mut harness = Harness::new(&server.base_url());
    // Whole: nothing was seen. Streamed: only the role had come.
    for streaming in [false, true] {
        server.push(Reply::text("lost words").break_after(1));
        server.push(Reply::text("all of it"));
        harness.call(streaming);
        assert_eq!(text_of(&harness.answer().await.blocks), "all of it");
    }
    assert_eq!(server.requests().len(), 4);
    harness.events();

    server.push(Reply::text("seen and lost").break_after(3));
    harness.call(true);
    let failure = harness.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderError);
    assert!(failure.message.contains("closed the connection"), "{}", failure.message);
    assert_eq!(server.requests().len(), 5);
    assert_eq!(harness.events(), [chunk("seen "), chunk("and ")]);
}

#[tokio::test]
async fn passing_failures_are_retried() {
    let server = ModelServer::start();
    let mut harness = Harness::new(&server.base_url());
    server.push(Reply::error(500, "oops"));
    server.push(Reply::error(429, "slow down").header("retry-after", "0"));
    server.push(Reply::raw(503, &[], "<html>busy</html>"));
    server.push(Reply::text("at last"));
    harness.call(false);
    assert_eq!(text_of(&harness.answer().await.blocks), "at last");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn retries_are_bounded() {
    let server = ModelServer::start();
    let mut harness = Harness::new(&server.base_url());
    server.respond(|_| Reply::error(429, "slow down"));
    harness.call(false);
    let failure = harness.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderRateLimited);
    assert_eq!(failure.message, "Provider scripted answered 429 Too Many Requests: slow down");
    assert_eq!(server.requests().len(), 4);

    server.push(Reply::error(429, "tomorrow").header("retry-after", "86400"));
    harness.call(false);
    assert!(harness.failure().await.message.contains("tomorrow"));
    assert_eq!(server.requests().len(), 5, "a wait beyond the total is not begun");
    harness.call(false);
    let failure = harness.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderRateLimited);
    assert!(failure.message.contains("pause calls"), "{}", failure.message);
    assert_eq!(server.requests().len(), 5, "nor is it asked again before its time");

    let mut harness = Harness::new(&server.base_url());
    let quota = r#"{"error":{"message":"out of money","code":"insufficient_quota"}}"#;
    server.push(Reply::raw(429, &[], quota));
    harness.call(false);
    assert!(harness.failure().await.message.contains("out of money"));
    assert_eq!(server.requests().len(), 6);

    server.respond(|_| Reply::error(502, "upstream"));
    harness.call(true);
    assert_eq!(harness.failure().await.code, FailureCode::ProviderError);
    assert_eq!(server.requests().len(), 10);
}

#[tokio::test]
async fn lasting_failures_are_not_retried() {
    let server = ModelServer::start();
    let mut harness = Harness::new(&server.base_url());
    let expected = [
        (Reply::error(401, &format!("Incorrect API key provided: {KEY}")), FailureCode::ProviderAuth),
        (Reply::error(403, "not yours"), FailureCode::ProviderAuth),
        (Reply::error(400, "context too long"), FailureCode::ProviderRefused),
        (Reply::error(404, "the model does not exist"), FailureCode::ProviderRefused),
        (Reply::raw(307, &[("location", "http://elsewhere.example/")], ""), FailureCode::ProviderProtocol),
        (Reply::raw(200, &[("content-type", "application/json")], "<html>"), FailureCode::ProviderProtocol),
        (Reply::raw(200, &[("content-type", "application/json")], "{}"), FailureCode::ProviderProtocol),
        (Reply::raw(200, &[("content-type", "text/event-stream")], "data: {oops\n\n"), FailureCode::ProviderProtocol),
    ];
    for (at, (reply, code)) in expected.into_iter().enumerate() {
        server.push(reply);
        harness.call(false);
        let failure = harness.failure().await;
        assert_eq!(failure.code, code, "{}", failure.message);
        assert!(failure.message.contains("scripted") && !failure.message.contains("hunter2"), "{}", failure.message);
        assert_eq!(server.requests().len(), at + 1);
    }
}

#[tokio::test]
async fn a_stream_without_content_is_given_up() {
    let server = ModelServer::start();
    let mut harness = Harness::new(&server.base_url());
    let stream = [("content-type", "text/event-stream")];
    let content = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
    for idle in ["data: {\"choices\":[{\"delta\":{}}]}\n\n", "data:\n\n"] {
        server.push(Reply::raw(200, &stream, &format!("{}{content}", idle.repeat(210_000))));
        harness.call(true);
        let failure = harness.failure().await;
        assert_eq!(failure.code, FailureCode::ProviderProtocol, "{}", failure.message);
        assert!(failure.message.contains("almost no content"), "{}", failure.message);
        server.push(Reply::raw(200, &stream, &format!("{}{content}", idle.repeat(10_000))));
        harness.call(true);
        assert_eq!(text_of(&harness.answer().await.blocks), "x");
    }
}

#[tokio::test]
async fn no_connection() {
    // Nobody listens at the port of "discard"; one that was free a moment ago may be another test's by now.
    let mut harness = Harness::new("http://127.0.0.1:9/v1");
    harness.call(false);
    let failure = harness.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderUnreachable, "{}", failure.message);
    assert!(failure.message.contains("127.0.0.1") && failure.message.contains("refused"), "{}", failure.message);
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let server = ModelServer::start();
    let mut harness = Harness::impatient(&server.base_url());
    server.push(Reply::hang());
    harness.call(false);
    assert_eq!(harness.failure().await.code, FailureCode::ProviderTimeout);
    // Before the next reply is scripted: on a busy machine the request may be read after it was given up.
    server.received(1).await;

    let gate = Gate::default();
    gate.pass(2);
    server.push(Reply::text("one two").gated(&gate));
    harness.call(true);
    let failure = harness.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderTimeout, "{}", failure.message);
    server.abandoned(2).await;
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn fallback_models_are_asked_in_order() {
    let server = ModelServer::start();
    let mut harness = Harness::new(&server.base_url());
    let nowhere = ModelChoice { provider: "nowhere".into(), model: "x".into(), ..ModelChoice::default() };
    let second = ModelChoice { model: "m-2".into(), ..ModelChoice::default() };
    harness.manifest.fallback_models = vec![nowhere, second];
    server.push(Reply::error(404, "the model does not exist"));
    server.push(Reply::text("from the second"));
    harness.call(false);
    let answer = harness.answer().await;
    assert_eq!((answer.provider.as_str(), answer.model.as_str()), ("scripted", "m-2"));
    let asked: Vec<String> = server.requests().iter().map(|request| request.body["model"].to_string()).collect();
    assert_eq!(asked, ["\"m-1\"", "\"m-2\""]);
}

#[tokio::test]
async fn failures_of_the_house_itself() {
    for log in [Log::Broken, Log::Panics] {
        let mut harness = Harness::with_log("http://127.0.0.1:9/v1", log);
        harness.call(false);
        let failure = harness.failure().await;
        assert_eq!(failure.code, FailureCode::Internal);
        assert!(!failure.message.contains("bad disk"), "{}", failure.message);
        assert_eq!(harness.performer.calls_out(), 0);
        assert!(harness.outcomes.try_recv().is_err(), "exactly one outcome");
    }
    let mut harness = Harness::new("http://127.0.0.1:9/v1");
    harness.model.api_key_env = Some("MISSING_KEY".into());
    harness.call(false);
    let failure = harness.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderAuth);
    assert!(failure.message.contains("MISSING_KEY"), "{}", failure.message);
}

#[tokio::test]
async fn a_provider_that_keeps_failing_is_left_alone() {
    let (server, other) = (ModelServer::start(), ModelServer::start());
    let mut harness = Harness::new(&server.base_url());
    server.respond(|_| Reply::error(502, "upstream"));
    let elsewhere =
        ModelChoice { provider: "other".into(), base_url: Some(other.base_url().into()), ..harness.model.clone() };
    harness.manifest.fallback_models = vec![elsewhere];
    other.respond(|_| Reply::text("from elsewhere"));
    // Four tries, a fifth, and then the one that is ill is not asked any more. Where a call takes longer than its pause of
    // five seconds, the call is the probe, and the next pause twice as long.
    let (mut asked, mut rounds) = (0, 0);
    loop {
        harness.call(false);
        let answer = harness.answer().await;
        assert_eq!((answer.provider.as_str(), text_of(&answer.blocks).as_str()), ("other", "from elsewhere"));
        let status = harness.performer.pace().status();
        let states: Vec<_> = status.iter().map(|of| (of.provider.as_str(), of.breaker.as_str())).collect();
        let (before, now) = (asked, server.requests().len());
        (asked, rounds) = (now, rounds + 1);
        match rounds {
            1 => assert_eq!(now, 4),
            2 => assert_eq!(now, 5),
            _ if now == before && states == [("other", "closed"), ("scripted", "open")] => break,
            _ => assert!(now <= before + 1 && rounds < 7, "{now} requests, {states:?}"),
        }
    }

    // Where there is no other model the pause is waited out.
    harness.manifest.fallback_models = Vec::new();
    server.respond(|_| Reply::text("well again"));
    harness.call(false);
    assert_eq!(text_of(&harness.answer().await.blocks), "well again");
    assert_eq!(server.requests().len(), asked + 1);
}

#[tokio::test]
async fn limits_are_learned_from_headers_and_waited_for() {
    let server = ModelServer::start();
    let mut harness = Harness::new(&server.base_url());
    let body = r#"{"choices":[{"message":{"content":"first"},"finish_reason":"stop"}]}"#;
    let headers = [
        ("content-type", "application/json"),
        ("x-ratelimit-limit-requests", "2"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "4s"),
    ];
    server.push(Reply::raw(200, &headers, body));
    server.push(Reply::text("second"));
    let begun = std::time::Instant::now();
    harness.call(false);
    assert_eq!(text_of(&harness.answer().await.blocks), "first");
    harness.call(false);
    assert_eq!(text_of(&harness.answer().await.blocks), "second");
    // Two come back in 4 s.
    assert!(begun.elapsed().as_millis() >= 1_950, "{:?}", begun.elapsed());

    // An abort ends the wait.
    let slow = [headers[0], headers[1], headers[2], ("x-ratelimit-reset-requests", "20s")];
    server.push(Reply::raw(200, &slow, body));
    harness.call(false);
    harness.answer().await;
    harness.call(false);
    harness.performer.perform(Abort(attempt()));
    assert_eq!(harness.aborted().await.blocks, []);
    assert_eq!(server.requests().len(), 3);
}
