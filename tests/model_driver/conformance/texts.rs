//! Answers of text: whole, streamed, cut anywhere, too long, and what they cost.

use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::{Usage, text_of};
use agentsvc_components::turn::outcome::StopReason;

use super::asking::{PROMPT_TOKENS, ask, question, right, told};
use super::script::Script;
use super::server::{Answer, Server};
use super::speaks::Speaks;

pub(crate) async fn a_whole_answer(speaker: &dyn Speaks) {
    let (heard, told) = told(speaker, &Script::text(&["Hi ", "\"you\" \u{1f600}"]), question(false)).await;
    assert!(!heard.streaming);
    let answer = told.answer();
    assert_eq!(text_of(&answer.blocks), "Hi \"you\" \u{1f600}");
    assert_eq!((answer.usage, answer.stop), (Usage::of(11, 7), StopReason::End));
    assert_eq!((answer.provider.as_str(), answer.model.as_str()), ("scripted", speaker.model()));
}

pub(crate) async fn a_streamed_answer_is_given_out_as_it_comes(speaker: &dyn Speaks) {
    let (heard, told) = told(speaker, &Script::text(&["one ", "two ", "three"]), question(true)).await;
    assert!(heard.streaming);
    assert_eq!(told.chunks, ["one ", "two ", "three"]);
    let answer = told.answer();
    assert_eq!(text_of(&answer.blocks), "one two three");
    assert_eq!((answer.usage, answer.stop), (Usage::of(11, 7), StopReason::End));
}

pub(crate) async fn every_reason_to_stop(speaker: &dyn Speaks) {
    for stop in [StopReason::End, StopReason::Length, StopReason::Filtered] {
        if stop == StopReason::Filtered && !speaker.can_filter() {
            continue;
        }
        for streaming in [false, true] {
            let script = Script { stop, ..Script::text(&["so far"]) };
            let answer = told(speaker, &script, question(streaming)).await.1.answer();
            assert_eq!((answer.stop, text_of(&answer.blocks).as_str()), (stop, "so far"), "streaming {streaming}");
        }
    }
}

pub(crate) async fn an_empty_answer(speaker: &dyn Speaks) {
    for streaming in [false, true] {
        let answer = told(speaker, &Script::text(&[]), question(streaming)).await.1.answer();
        assert_eq!((text_of(&answer.blocks).as_str(), answer.stop), ("", StopReason::End));
    }
}

pub(crate) async fn characters_cut_at_every_byte(speaker: &dyn Speaks) {
    let script = Script::text(&["\u{e9}\u{4e2d}\u{1f600}", "\r\n\u{2028}\"\\", "z\u{301}"]);
    let script = script.and_call("c-1", "look", &["{\"q\":", "\"\u{4e2d}\u{1f468}\u{200d}\u{1f469}\"}"]);
    let bytes = speaker.stream(&script).concat();
    let single = bytes.iter().map(|byte| vec![*byte]).collect();
    let server = Server::always(Answer::new(200, speaker.stream_type(), single)).await;
    let told = ask(speaker, &server, question(true)).await;
    assert_eq!(told.chunks.concat(), script.all_text());
    let answer = told.answer();
    assert_eq!(text_of(&answer.blocks), script.all_text());
    let calls = crate::harness::calls(&answer);
    assert_eq!(calls.len(), 1);
    let input: serde_json::Value = serde_json::from_str(calls[0].2).expect("arguments are JSON");
    assert_eq!(input["q"], "\u{4e2d}\u{1f468}\u{200d}\u{1f469}");
}

pub(crate) async fn a_thousand_chunks(speaker: &dyn Speaks) {
    let pieces: Vec<String> = (0..1_000).map(|at| format!("{at} ")).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let told = told(speaker, &Script::text(&pieces), question(true)).await.1;
    assert_eq!(told.chunks, pieces);
    assert_eq!(text_of(&told.answer().blocks), pieces.concat());
}

pub(crate) async fn whole_though_streaming_was_asked(speaker: &dyn Speaks) {
    let server = Server::always(right(speaker, &Script::text(&["all at once"]), false)).await;
    let told = ask(speaker, &server, question(true)).await;
    assert_eq!(told.chunks, ["all at once"]);
    assert_eq!(told.answer().usage, Usage::of(11, 7));
}

pub(crate) async fn streamed_though_whole_was_asked(speaker: &dyn Speaks) {
    let server = Server::always(right(speaker, &Script::text(&["bit ", "by bit"]), true)).await;
    let answer = ask(speaker, &server, question(false)).await.answer();
    assert_eq!((text_of(&answer.blocks).as_str(), answer.usage), ("bit by bit", Usage::of(11, 7)));
}

pub(crate) async fn too_long_an_answer(speaker: &dyn Speaks) {
    let long = "four".repeat(limit::ANSWER_BYTES_MAX / 16 + 10);
    let script = Script::text(&[&long, &long, &long, &long]);
    for streaming in [false, true] {
        let answer = told(speaker, &script, question(streaming)).await.1.answer();
        assert_eq!((answer.stop, text_of(&answer.blocks).len()), (StopReason::Length, limit::ANSWER_BYTES_MAX));
    }
}

pub(crate) async fn usage_of_the_cache(speaker: &dyn Speaks) {
    let (reads, writes) = speaker.counts_cache();
    let usage = Usage {
        cached_input_tokens: if reads { 70 } else { 0 },
        cache_write_tokens: if writes { 20 } else { 0 },
        ..Usage::of(100, 9)
    };
    for streaming in [false, true] {
        let script = Script { usage: Some(usage), ..Script::text(&["x"]) };
        assert_eq!(told(speaker, &script, question(streaming)).await.1.answer().usage, usage, "streaming {streaming}");
    }
}

pub(crate) async fn usage_that_never_came(speaker: &dyn Speaks) {
    for streaming in [false, true] {
        let script = Script { usage: None, ..Script::text(&["12345678"]) };
        let usage = told(speaker, &script, question(streaming)).await.1.answer().usage;
        assert_eq!(usage, Usage::of(PROMPT_TOKENS, 2), "streaming {streaming}");
    }
}
