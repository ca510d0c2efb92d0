//! Tests of the answer while it is written.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::{Block, Usage, text_of};
use agentsvc_components::turn::outcome::{ModelAnswer, StopReason};
use agentsvc_components::usage::TokensMax;

use super::{CALL_ID_BYTES_MAX, CallPiece, Draft, PIECE_BYTES, Sent};
use crate::model::provider::Target;

fn answer(draft: Draft) -> ModelAnswer {
    let target = Target { provider: "p".into(), model: "m".into(), ..Target::default() };
    draft.into_answer(Attempt { job: JobId(uuid::Uuid::nil()), number: 7 }, 11, &target)
}

fn calls(answer: &ModelAnswer) -> Vec<(&str, &str, &str)> {
    let calls = answer.blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some((call.id.as_str(), call.name.as_str(), call.input.as_str())),
        _ => None,
    });
    calls.collect()
}

fn piece<'a>(index: Option<u32>, id: &'a str, name: &'a str, arguments: &'a str) -> CallPiece<'a> {
    CallPiece { index, id, name, arguments }
}

#[test]
fn pieces_of_parallel_calls_find_their_call() {
    let mut draft = Draft::default();
    draft.push_call(piece(Some(0), "a", "one", ""));
    draft.push_call(piece(Some(1), "b", "two", "{\"x\""));
    draft.push_call(piece(Some(0), "", "", "{}"));
    draft.push_call(piece(Some(1), "", "", ":1}"));
    let answer = answer(draft);
    assert_eq!(calls(&answer), [("a", "one", "{}"), ("b", "two", "{\"x\":1}")]);
    assert_eq!(answer.stop, StopReason::ToolUse);
}

#[test]
fn calls_without_indexes_or_ids_are_told_apart() {
    let mut draft = Draft::default();
    draft.push_call(piece(None, "same", "one", "{"));
    draft.push_call(piece(None, "", "", "}"));
    draft.push_call(piece(None, "same", "two", "{}"));
    draft.push_call(piece(None, "", "three", "{}"));
    let ids = [("same", "one", "{}"), ("call_7_1", "two", "{}"), ("call_7_2", "three", "{}")];
    assert_eq!(calls(&answer(draft)), ids);
}

#[test]
fn ids_are_bounded_and_count() {
    let mut draft = Draft::default();
    let (fits, long) = ("x".repeat(CALL_ID_BYTES_MAX), "y".repeat(CALL_ID_BYTES_MAX + 1));
    draft.push_call(piece(None, &fits, "one", "{}"));
    draft.push_call(piece(None, &long, "two", "{}"));
    assert_eq!(draft.bytes, 2 * PIECE_BYTES + fits.len() + "onetwo{}{}".len());
    assert_eq!(calls(&answer(draft)), [(&*fits, "one", "{}"), ("call_7_1", "two", "{}")]);
    let mut draft = Draft::default();
    for part in ["a", &"é".repeat(100), "b"] {
        draft.push_call(piece(Some(0), "1", part, ""));
    }
    draft.push_call(piece(Some(0), "", "", "{}"));
    assert_eq!(calls(&answer(draft)), [("1", &*format!("a{}b", "é".repeat(63)), "{}")]);
    // Ids alone fill an answer, too.
    let mut draft = Draft { bytes: limit::ANSWER_BYTES_MAX - PIECE_BYTES - 1, ..Draft::default() };
    draft.push_call(piece(None, &fits, "one", "{}"));
    assert!(draft.full);
}

#[test]
fn thoughts_stand_where_they_were_thought() {
    let mut draft = Draft::default();
    draft.push_thought("Hm, ");
    draft.push_thought("well.");
    draft.close_thought("{\"signature\":\"s\"}");
    draft.push_text("a");
    draft.close_thought("{\"hidden\":1}");
    draft.push_call(piece(Some(0), "1", "t", "{}"));
    draft.push_text("b");
    draft.push_thought("open");
    draft.close_thought("");
    draft.close_thought("");
    let blocks: Vec<String> = answer(draft).blocks.iter().map(shown).collect();
    let expected =
        ["builtin m: Hm, well. {\"signature\":\"s\"}", "a", "builtin m:  {\"hidden\":1}", "t", "b", "builtin m: open "];
    assert_eq!(blocks, expected);
}

fn shown(block: &Block) -> String {
    match block {
        Block::Text { text } => text.clone(),
        Block::ToolCall(call) => call.name.clone(),
        Block::Reasoning(thought) => {
            format!("{} {}: {} {}", thought.wire, thought.model, thought.text, thought.raw)
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn a_block_without_room_is_left_out_whole() {
    let mut draft = Draft::default();
    draft.push_thought("t");
    draft.close_thought(&"x".repeat(limit::ANSWER_BYTES_MAX));
    assert!(draft.is_full());
    assert_eq!(answer(draft).blocks.iter().map(shown).collect::<Vec<_>>(), ["builtin m: t "]);
}

#[test]
fn what_was_sent_and_not_counted_costs_all_that_it_can_where_money_is_reserved() {
    let booked = |sent: bool, told: Option<Usage>, is_final: bool| {
        let mut draft = Draft::default();
        if sent {
            draft.note_sent(Sent { prompt: 400, answer: Some(100), context: 1_000 });
        }
        match told {
            Some(usage) if is_final => draft.set_usage(usage),
            Some(usage) => draft.set_prompt_usage(usage),
            None => {}
        }
        draft.assume_all(11);
        draft.usage_so_far(11)
    };
    assert_eq!(booked(true, None, false), Usage::of(11, 100), "nothing came");
    assert_eq!(booked(true, Some(Usage::of(7, 1)), false), Usage::of(7, 100), "the prompt is counted");
    assert_eq!(booked(true, Some(Usage::of(7, 2)), true), Usage::of(7, 2), "all is counted");
    assert_eq!(booked(false, None, false), Usage::default(), "nothing was sent");
}

#[test]
fn usage_is_the_providers_or_estimated() {
    let mut draft = Draft::default();
    draft.push_text("12345678");
    assert_eq!(answer(draft).usage, Usage::of(11, 2));
    let mut draft = Draft::default();
    draft.set_usage(Usage::of(1, 2));
    assert_eq!(answer(draft).usage, Usage::of(1, 2));
    let mut draft = Draft::default();
    draft.set_prompt_usage(Usage::of(5, 1));
    draft.push_text("12345678");
    assert_eq!((draft.usage_so_far(99), answer(draft).usage), (Usage::of(5, 2), Usage::of(5, 2)));
    // Nothing is free because it was not counted.
    for (told, booked) in [((0, 0), (11, 2)), ((0, 9), (11, 9)), ((9, 0), (9, 2))] {
        let mut draft = Draft::default();
        draft.push_text("12345678");
        draft.set_usage(Usage::of(told.0, told.1));
        assert_eq!(answer(draft).usage, Usage::of(booked.0, booked.1));
    }
    let mut draft = Draft::default();
    assert_eq!(draft.usage_so_far(11), Usage::default());
    draft.note_unread(9);
    assert!(draft.has_begun());
    assert_eq!(draft.usage_so_far(11), Usage::of(11, 3));
}

#[test]
fn what_is_too_long_is_cut_between_characters() {
    let mut draft = Draft::default();
    draft.push_text(&"x".repeat(limit::ANSWER_BYTES_MAX - 1));
    assert!(!draft.is_full());
    draft.push_text("\u{e9}more");
    assert!(draft.is_full());
    draft.set_stop(StopReason::End);
    let answer = answer(draft);
    assert_eq!((answer.stop, text_of(&answer.blocks).len()), (StopReason::Length, limit::ANSWER_BYTES_MAX - 1));
}

#[test]
fn calls_are_bounded() {
    let mut draft = Draft::default();
    (0..10_000).for_each(|index| draft.push_call(piece(Some(index), "", "t", "{}")));
    assert!(draft.is_full());
    assert!(calls(&answer(draft)).len() <= super::CALLS_MAX);
}

#[test]
fn an_answer_has_no_more_tokens_than_its_bound_or_what_came_of_it() {
    let mut draft = Draft::default();
    assert_eq!(draft.tokens_max(), None, "nothing was sent");
    let most = |draft: &Draft| draft.tokens_max().map(|most| (most.input, most.output));
    draft.note_sent(Sent { prompt: 7_000, answer: None, context: 1_000 });
    assert_eq!(most(&draft), Some((7_000, None)));
    draft.note_sent(Sent { prompt: 7_000, answer: Some(100), context: 1_000 });
    assert_eq!(most(&draft), Some((7_000, Some(100))));
    draft.push_text(&"x".repeat(900));
    assert_eq!(most(&draft), Some((7_000, Some(900))), "the provider does not keep to the bound");
    draft.push_text(&"x".repeat(900));
    assert_eq!(most(&draft), Some((7_000, Some(1_000))), "no model writes more than a context");
    assert_eq!(answer(draft).tokens_max, Some(TokensMax { input: 7_000, output: Some(1_000) }));
}
