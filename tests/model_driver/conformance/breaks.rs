//! Answers that break off, never come, or are none.

use std::sync::Arc;

use agentsvc_components::session::message::text_of;
use agentsvc_components::turn::outcome::{FailureCode, StopReason};

use super::asking::{Told, ask, question};
use super::script::Script;
use super::server::{Answer, End, Server};
use super::speaks::Speaks;

fn script() -> Script {
    Script::text(&["one ", "two ", "\u{1f600}"]).and_call("a", "look", &["{\"q\":", "\"x\"}"])
}

/// What is not known to be whole is an error that may pass; what is called whole is.
fn check(told: Told, may_be_whole: bool, place: &str) {
    match told.result {
        Ok(answer) => {
            assert!(may_be_whole, "{place}: a broken answer passes for a whole one: {answer:?}");
            assert_eq!((text_of(&answer.blocks), answer.stop), (script().all_text(), StopReason::ToolUse), "{place}");
            assert_eq!(crate::harness::calls(&answer)[0].2, "{\"q\":\"x\"}", "{place}");
        }
        Err(error) => {
            assert_eq!((error.code, error.retryable), (FailureCode::ProviderError, true), "{place}: {error:?}");
        }
    }
}

pub(crate) async fn a_stream_that_ends_at_every_frame(speaker: &dyn Speaks) {
    let script = script();
    let frames = speaker.stream(&script);
    let stop = speaker.frames_to_stop(&script);
    assert!(stop <= frames.len());
    for count in 0..=frames.len() {
        let answer = Answer::new(200, speaker.stream_type(), frames[..count].to_vec());
        let server = Server::always(answer).await;
        let told = ask(speaker, &server, question(true)).await;
        assert!(count < stop || told.result.is_ok(), "{count} of {} frames: {:?}", frames.len(), told.result);
        check(told, count >= stop, &format!("{count} of {} frames", frames.len()));
    }
}

pub(crate) async fn a_stream_that_ends_at_every_byte(speaker: &'static dyn Speaks) {
    let script = script();
    let frames = speaker.stream(&script);
    let until_stop = frames[..speaker.frames_to_stop(&script)].concat().len();
    let bytes = Arc::new(frames.concat());
    let step = (bytes.len() / 150).max(1);
    let cut = Arc::clone(&bytes);
    let server = Server::answering(move |number| {
        let end = (number * step).min(cut.len());
        Answer::new(200, speaker.stream_type(), vec![cut[..end].to_vec()])
    })
    .await;
    for number in 0..=bytes.len() / step {
        let told = ask(speaker, &server, question(true)).await;
        // The blank line behind an event may be missing.
        check(told, number * step + 2 >= until_stop, &format!("{} of {} bytes", number * step, bytes.len()));
    }
}

pub(crate) async fn a_connection_that_breaks(speaker: &dyn Speaks) {
    for streaming in [false, true] {
        let (kind, pieces) = if streaming {
            (speaker.stream_type(), speaker.stream(&script())[..2].to_vec())
        } else {
            let whole = speaker.whole(&script());
            ("application/json", vec![whole[..whole.len() / 2].to_vec()])
        };
        let server = Server::always(Answer::new(200, kind, pieces).ending(End::Break)).await;
        let error = ask(speaker, &server, question(streaming)).await.error();
        assert_eq!((error.code, error.retryable), (FailureCode::ProviderError, true), "{error:?}");
        assert!(error.message.contains("closed the connection"), "{error:?}");
    }
}

pub(crate) async fn silence(speaker: &dyn Speaks) {
    let frames = speaker.stream(&script());
    for count in [0, 2] {
        let answer = Answer::new(200, speaker.stream_type(), frames[..count].to_vec()).ending(End::Silence);
        let server = Server::always(answer).await;
        let mut question = question(true);
        question.impatient = true;
        let error = ask(speaker, &server, question).await.error();
        assert_eq!(error.code, FailureCode::ProviderTimeout, "after {count} frames: {error:?}");
    }
}

pub(crate) async fn what_is_no_answer(speaker: &dyn Speaks) {
    let no_answers = [
        Answer::new(200, "application/json", vec![b"<html>".to_vec()]),
        Answer::new(200, "application/json", vec![b"{}".to_vec()]),
        Answer::new(200, "application/json", vec![b"[1]".to_vec()]),
        Answer::new(200, "application/json", Vec::new()),
        Answer::new(200, speaker.stream_type(), vec![speaker.garbage_frame()]),
        Answer::new(307, "text/plain", Vec::new()).header("location", "http://elsewhere.example/"),
    ];
    for answer in no_answers {
        let place = format!("{answer:?}");
        let server = Server::always(answer).await;
        let error = ask(speaker, &server, question(false)).await.error();
        assert_eq!((error.code, error.retryable), (FailureCode::ProviderProtocol, false), "{place}: {error:?}");
        assert!(error.message.contains("scripted"), "{error:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

pub(crate) async fn too_long_a_frame(speaker: &dyn Speaks) {
    let long = "x".repeat(9 << 20);
    let frames = speaker.stream(&Script::text(&[&long]));
    let server = Server::always(Answer::new(200, speaker.stream_type(), frames)).await;
    let error = ask(speaker, &server, question(true)).await.error();
    assert_eq!((error.code, error.retryable), (FailureCode::ProviderProtocol, false), "{error:?}");
}
