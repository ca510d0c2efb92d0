//! Tests of the prompt projection: examples, then properties over arbitrary logs.

use agentsvc_components::manifest::Manifest;
use agentsvc_components::session::message::{Block, ChatMessage, Reasoning, Role, ToolCall};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::{Timestamp, TurnId};
use proptest::prelude::*;

use super::{
    Dense, Estimate, NOT_RUN, Prompt, SUMMARY_TITLE, Source, TOOL_BLOCK_TOKENS, Tokens, answer_tokens, message_tokens,
    shorten, system_tokens,
};

fn project(manifest: &Manifest, agent_name: &str, records: Vec<MessageRecord>, tokens_max: u64) -> Prompt {
    super::project(Source { manifest, agent_name, summary: None, records, tokens_max, tokens: &Estimate })
}

fn summarised(summary: &str, records: Vec<MessageRecord>, tokens_max: u64) -> Prompt {
    let manifest = silent();
    super::project(Source {
        manifest: &manifest,
        agent_name: "x",
        summary: Some(summary),
        records,
        tokens_max,
        tokens: &Estimate,
    })
}

fn record(role: Role, blocks: Vec<Block>) -> MessageRecord {
    MessageRecord {
        turn: TurnId(uuid::Uuid::nil()),
        role,
        blocks,
        created_at: Timestamp(0),
        usage: None,
        model: None,
        stopped: false,
        repeats: None,
    }
}

fn text(role: Role, text: &str) -> MessageRecord {
    record(role, vec![Block::Text { text: text.to_owned() }])
}

fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall { id: id.to_owned(), name: "system_time".to_owned(), input: "{}".to_owned() })
}

fn result(id: &str, content: &str) -> MessageRecord {
    let (name, content) = ("system_time".to_owned(), content.to_owned());
    record(Role::Tool, vec![Block::ToolResult { call_id: id.to_owned(), name, content, is_error: false }])
}

fn plain(prompt: &Prompt) -> Vec<(Role, String)> {
    prompt.messages.iter().map(|message| (message.role, message.plain_text())).collect()
}

fn said(role: Role, text: &str) -> (Role, String) {
    (role, text.to_owned())
}

fn silent() -> Manifest {
    // A system text that costs little, so that budgets below are about messages.
    Manifest { system_prompt: "s".into(), ..Manifest::default() }
}

#[test]
fn long_ids_of_calls_are_tokens() {
    let call = |id: &str| Block::ToolCall(ToolCall { id: id.to_owned(), name: String::new(), input: String::new() });
    let result = |id: &str| Block::ToolResult {
        call_id: id.to_owned(),
        name: String::new(),
        content: String::new(),
        is_error: false,
    };
    let (usual, long) = ("x".repeat(64), "x".repeat(164));
    for block in [call, result] as [fn(&str) -> Block; 2] {
        assert_eq!(answer_tokens(&[block(&usual)]), TOOL_BLOCK_TOKENS);
        assert_eq!(answer_tokens(&[block(&long)]), TOOL_BLOCK_TOKENS + 100);
    }
}

#[test]
fn the_system_text_names_the_agent_or_is_its_own() {
    let mut manifest = Manifest { description: "Counts ships.".into(), ..Manifest::default() };
    let prompt = project(&manifest, "ada", vec![], 1_000);
    assert_eq!(prompt.system, "You are ada, a helpful assistant. Counts ships.");
    manifest.system_prompt = "Speak Latin.".into();
    manifest.identity.persona = "A terse monk.".into();
    let prompt = project(&manifest, "ada", vec![], 1_000);
    assert_eq!(prompt.system, "Speak Latin.\n\nHow you present yourself: A terse monk.");
    assert_eq!(prompt.estimated_tokens, system_tokens(&prompt.system));
}

#[test]
fn everything_when_it_fits() {
    let log = vec![text(Role::User, "a"), text(Role::Assistant, "b"), text(Role::User, "c")];
    let prompt = project(&silent(), "x", log, 1_000);
    assert_eq!(plain(&prompt), [said(Role::User, "a"), said(Role::Assistant, "b"), said(Role::User, "c")]);
    assert_eq!(prompt.estimated_tokens, 5 + 3 * 5);
}

#[test]
fn the_oldest_go_first_and_a_user_opens() {
    let log = vec![
        text(Role::User, "one"),
        text(Role::Assistant, "two"),
        text(Role::User, "three"),
        text(Role::Assistant, "four"),
        text(Role::User, "five"),
    ];
    // 5 tokens of system text, 5 for "four", 5 for "five": "three" (6) is too much at 20.
    let prompt = project(&silent(), "x", log.clone(), 20);
    assert_eq!(plain(&prompt), [said(Role::User, "five")]);
    assert_eq!(prompt.estimated_tokens, 10);
    let prompt = project(&silent(), "x", log.clone(), 21);
    assert_eq!(plain(&prompt), [said(Role::User, "three"), said(Role::Assistant, "four"), said(Role::User, "five")]);
    let few = Manifest { max_history_messages: Some(3), ..silent() };
    assert_eq!(project(&few, "x", log.clone(), 1_000).messages.len(), 3);
    let none = Manifest { max_history_messages: Some(0), ..silent() };
    assert_eq!(plain(&project(&none, "x", log, 1_000)), [said(Role::User, "five")]);
}

#[test]
fn a_long_question_is_shortened_not_lost() {
    let long = format!("{}{}", "start ".repeat(500), "end");
    let prompt = project(&silent(), "x", vec![text(Role::User, &long)], 100);
    let kept = prompt.messages[0].plain_text();
    assert!(kept.starts_with("start") && kept.ends_with("end") && kept.contains("bytes omitted"), "{kept}");
    assert!(prompt.estimated_tokens <= 100);
}

#[test]
fn calls_and_results_stay_together() {
    let log = vec![
        text(Role::User, "old"),
        record(Role::Assistant, vec![call("a"), call("b")]),
        result("a", &"x".repeat(400)),
        result("b", "y"),
        text(Role::Assistant, "done"),
        text(Role::User, "new"),
    ];
    let whole = project(&silent(), "x", log.clone(), 1_000);
    let roles: Vec<Role> = whole.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]);
    assert_eq!(whole.messages[2].blocks.len(), 2);
    let cut = project(&silent(), "x", log, 60);
    assert_eq!(plain(&cut), [said(Role::User, "new")]);
}

#[test]
fn a_running_turn_keeps_its_newest_results() {
    let log = vec![
        text(Role::User, "earlier"),
        text(Role::Assistant, "yes"),
        text(Role::User, "look it up"),
        record(Role::Assistant, vec![call("a")]),
        result("a", &"x".repeat(4_000)),
        record(Role::Assistant, vec![call("b")]),
        result("b", &"y".repeat(4_000)),
    ];
    let prompt = project(&silent(), "x", log, 200);
    let roles: Vec<Role> = prompt.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert!(matches!(&prompt.messages[2].blocks[0], Block::ToolResult { call_id, content, .. }
        if call_id == "b" && content.contains("bytes omitted")));
    assert!(prompt.estimated_tokens <= 200);
}

#[test]
fn stray_results_drop_out_and_missing_ones_are_filled_in() {
    let log = vec![
        result("lost", "x"),
        text(Role::User, "go"),
        record(Role::Assistant, vec![call("a"), call("b")]),
        result("b", "y"),
        result("b", "again"),
        result("z", "stray"),
        text(Role::User, "and?"),
    ];
    let prompt = project(&silent(), "x", log, 1_000);
    let Some(results) = prompt.messages.iter().find(|message| message.role == Role::Tool) else { panic!("no results") };
    let seen: Vec<(&str, &str)> = results
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolResult { call_id, content, .. } => Some((call_id.as_str(), content.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(seen, [("b", "y"), ("a", NOT_RUN)]);
}

#[test]
fn the_beginning_of_a_cut_history_seldom_moves() {
    let in_turn = |number: u8, role: Role| MessageRecord {
        // The last bits are the slot, the same in all turns of an agent.
        turn: TurnId(uuid::Uuid::from_u128(u128::from(number) << 12 | 7)),
        ..text(role, &format!("message {number:03}"))
    };
    let mut log = Vec::new();
    let (mut begins, mut moves, mut cut) = (String::new(), 0, 0);
    for number in 1..=100 {
        log.push(in_turn(number, Role::User));
        let prompt = project(&silent(), "x", log.clone(), 300);
        assert!(prompt.estimated_tokens <= 300);
        if prompt.messages.len() < log.len() {
            cut += 1;
            let first = prompt.messages[0].plain_text();
            moves += u32::from(first != begins);
            begins = first;
            // 42 messages of 7 tokens fit; no more than half are given up.
            assert!(prompt.messages.len() >= 20, "{}", prompt.messages.len());
        }
        log.push(in_turn(number, Role::Assistant));
    }
    assert!(cut > 70 && moves <= cut / 8 + 1, "{moves} moves in {cut} turns");
}

#[test]
fn a_summary_comes_first_and_stays_when_the_rest_is_cut() {
    let log = |turns: usize| -> Vec<MessageRecord> {
        let turn = |n| [text(Role::User, &format!("question {n}")), text(Role::Assistant, &format!("answer {n}"))];
        (0..turns).flat_map(turn).chain([text(Role::User, "and now?")]).collect()
    };
    let whole = summarised("They spoke of ships.", log(2), 1_000);
    let first = format!("{SUMMARY_TITLE}\nThey spoke of ships.\n\nquestion 0");
    assert_eq!(plain(&whole)[0], said(Role::User, &first));
    assert_eq!((whole.messages.len(), whole.is_cut), (5, false));
    let cut = summarised("They spoke of ships.", log(40), 120);
    assert!(cut.is_cut && cut.estimated_tokens <= 120);
    assert!(plain(&cut)[0].1.starts_with(&format!("{SUMMARY_TITLE}\nThey spoke of ships.\n\nquestion")));
    assert_eq!(plain(&cut).last().unwrap().1, "and now?");
    let long = summarised(&"ships ".repeat(1_000), log(2), 200);
    assert!(long.estimated_tokens <= 200 && plain(&long)[0].1.contains("bytes omitted"), "{long:?}");
    let none = Manifest { max_history_messages: Some(0), ..silent() };
    let source = Source {
        manifest: &none,
        agent_name: "x",
        summary: Some("old"),
        records: log(1),
        tokens_max: 1_000,
        tokens: &Estimate,
    };
    assert_eq!(plain(&super::project(source)), [said(Role::User, "and now?")]);
}

#[test]
fn two_prompts_that_follow_each_other_share_their_beginning() {
    let mut log = vec![text(Role::User, "one"), text(Role::Assistant, "two"), text(Role::User, "three")];
    let before = summarised("old", log.clone(), 1_000);
    log.extend([text(Role::Assistant, "four"), text(Role::User, "five")]);
    let after = summarised("old", log, 1_000);
    assert_eq!(before.system, after.system);
    assert_eq!(before.messages, after.messages[..before.messages.len()]);
}

#[test]
fn neighbouring_texts_are_one_and_what_different_turns_said_stays_apart() {
    let parts = vec![Block::Text { text: "see this".into() }, Block::Text { text: "[Attached file: a]".into() }];
    let log = vec![text(Role::User, "failed"), record(Role::User, parts), text(Role::Assistant, "yes")];
    let prompt = project(&silent(), "x", log.into_iter().chain([text(Role::User, "go")]).collect(), 1_000);
    let merged = said(Role::User, "see this\n\n[Attached file: a]");
    let expected = [said(Role::User, "failed"), merged, said(Role::Assistant, "yes"), said(Role::User, "go")];
    assert_eq!(plain(&prompt), expected);
    assert_eq!(prompt.messages[1].blocks.len(), 1);
    assert_eq!(prompt.estimated_tokens, 5 + prompt.messages.iter().map(message_tokens).sum::<u64>());
}

#[test]
fn nothing_is_counted_while_everything_surely_fits() {
    struct Never;
    impl Tokens for Never {
        fn count(&self, _: &str, _: u64) -> Option<u64> {
            panic!("counted")
        }
    }
    let (manifest, records) = (silent(), vec![text(Role::User, "a"), text(Role::User, &"b".repeat(900))]);
    let source =
        Source { manifest: &manifest, agent_name: "x", summary: Some("s"), records, tokens_max: 1_000, tokens: &Never };
    assert!(!super::project(source).is_cut);
}

/// The dearest tokenizer there can be.
struct Bytes;

impl Tokens for Bytes {
    fn count(&self, text: &str, tokens_max: u64) -> Option<u64> {
        Some(text.len() as u64).filter(|tokens| *tokens <= tokens_max)
    }
}

fn bytes_of(prompt: &Prompt) -> u64 {
    let text = |block: &Block| match block {
        Block::Text { text } => text.len(),
        Block::ToolCall(call) => call.name.len() + call.input.len() + 8,
        Block::ToolResult { content, .. } => content.len() + 8,
        Block::Image { .. } => 1_000,
        Block::Reasoning(thought) => thought.raw.len(),
    };
    let message = |message: &ChatMessage| 4 + message.blocks.iter().map(text).sum::<usize>() as u64;
    let system = if prompt.system.is_empty() { 0 } else { 4 + prompt.system.len() as u64 };
    system + prompt.messages.iter().map(message).sum::<u64>()
}

#[test]
fn thoughts_go_back_only_within_their_turn() {
    let thought = |raw: &str| Block::Reasoning(Reasoning { raw: raw.to_owned(), ..Reasoning::default() });
    let said = |text: &str| Block::Text { text: text.to_owned() };
    let records = vec![
        text(Role::User, "one"),
        record(Role::Assistant, vec![thought("old"), said("first")]),
        record(Role::Assistant, vec![thought("only a thought")]),
        text(Role::User, "two"),
        record(Role::Assistant, vec![thought("new"), call("a")]),
        result("a", "r"),
    ];
    let prompt = project(&silent(), "x", records, 10_000);
    let thoughts: Vec<&str> = prompt
        .messages
        .iter()
        .flat_map(|message| &message.blocks)
        .filter_map(|block| if let Block::Reasoning(thought) = block { Some(thought.raw.as_str()) } else { None })
        .collect();
    assert_eq!((thoughts, prompt.messages.len()), (vec!["new"], 5));
}

fn any_block() -> impl Strategy<Value = Vec<Block>> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c")];
    proptest::collection::vec(
        prop_oneof!["[a-z\u{e9}\u{4e2d} ]{0,80}".prop_map(|text| Block::Text { text }), id.prop_map(call),],
        0..4,
    )
}

fn any_record() -> impl Strategy<Value = MessageRecord> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c")];
    prop_oneof![
        "[a-z\u{e9}\u{4e2d} ]{0,120}".prop_map(|said| text(Role::User, &said)),
        any_block().prop_map(|blocks| record(Role::Assistant, blocks)),
        (id, "[a-z\u{4e2d}]{0,200}").prop_map(|(id, content)| result(id, &content)),
    ]
}

/// Every call is answered right after its message, and every result answers a call of the message before it.
fn paired(messages: &[ChatMessage]) -> bool {
    let calls_of = |message: &ChatMessage| -> Vec<String> {
        let ids = message.blocks.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call.id.clone()),
            Block::ToolResult { call_id, .. } => Some(call_id.clone()),
            Block::Text { .. } | Block::Image { .. } | Block::Reasoning(_) => None,
        });
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids.dedup();
        ids
    };
    messages.iter().enumerate().all(|(at, message)| match message.role {
        Role::User => true,
        Role::Tool => at > 0 && calls_of(&messages[at - 1]) == calls_of(message),
        Role::Assistant => {
            let calls = calls_of(message);
            calls.is_empty()
                || messages.get(at + 1).is_some_and(|next| next.role == Role::Tool && calls_of(next) == calls)
        }
    })
}

#[test]
fn dense_texts_count_about_what_they_can_have_and_prose_what_it_does() {
    let count = |text: &str| Dense.count(text, u64::MAX).unwrap();
    for (text, tokens) in
        [("", 0), ("prose", 2), ("12345", 5), ("{\"a\":1}", 4), ("\u{434}\u{430}", 2), ("\u{4e2d}\u{6587}", 3)]
    {
        assert_eq!(count(text), tokens, "{text}");
    }
    for rare in ["\u{10000}", "\u{1f600}", "\u{12a0}"] {
        assert_eq!(count(rare), rare.len() as u64, "{rare}");
    }
    assert_eq!(Dense.count("12345", 4), None);
    let manifest = Manifest { system_prompt: "be brief".into(), ..Manifest::default() };
    let records = vec![text(Role::User, &"\u{10000}".repeat(500))];
    let of = |tokens: &dyn Tokens| {
        let records = records.clone();
        super::project(Source { manifest: &manifest, agent_name: "a", summary: None, records, tokens_max: 600, tokens })
    };
    assert!(bytes_of(&of(&Estimate)) > 1_500);
    assert!(bytes_of(&of(&Dense)) < 620, "no dearer than what is reserved");
}

proptest! {
    #[test]
    fn always_fits_and_is_well_formed(
        log in proptest::collection::vec(any_record(), 0..40),
        tokens_max in 0_u64..600,
        rows_max in proptest::option::of(0_u32..20),
        system in "[a-z ]{0,300}",
    ) {
        let manifest = Manifest { system_prompt: system.into(), max_history_messages: rows_max, ..Manifest::default() };
        let prompt = project(&manifest, "ada", log.clone(), tokens_max);
        let sum = system_tokens(&prompt.system) + prompt.messages.iter().map(message_tokens).sum::<u64>();
        prop_assert_eq!(sum, prompt.estimated_tokens);
        prop_assert!(prompt.estimated_tokens <= tokens_max);
        prop_assert!(prompt.messages.first().is_none_or(|first| first.role == Role::User));
        prop_assert!(paired(&prompt.messages));
        let last_question = log.iter().rev().find(|row| row.role == Role::User && !row.blocks.iter().all(|block|
            matches!(block, Block::Text { text } if text.is_empty())));
        if tokens_max >= 60 && last_question.is_some() {
            prop_assert!(prompt.messages.iter().any(|message| message.role == Role::User));
        }
        prop_assert_eq!(project(&manifest, "ada", log, tokens_max), prompt);
    }

    #[test]
    fn it_fits_whatever_the_tokenizer(
        log in proptest::collection::vec(any_record(), 0..40),
        tokens_max in 0_u64..1_500,
        summary in proptest::option::of("[a-z\u{4e2d} ]{0,300}"),
        system in "[a-z ]{0,300}",
    ) {
        let manifest = Manifest { system_prompt: system.into(), ..Manifest::default() };
        let summary = summary.as_deref();
        let records = log.clone();
        let prompt =
            super::project(Source { manifest: &manifest, agent_name: "a", summary, records, tokens_max, tokens: &Bytes });
        prop_assert!(bytes_of(&prompt) <= tokens_max, "{} of {tokens_max}", bytes_of(&prompt));
        prop_assert!(paired(&prompt.messages));
        if let (Some(_), Some(first), true) = (summary, prompt.messages.first(), tokens_max > 500) {
            prop_assert!(first.plain_text().starts_with(SUMMARY_TITLE));
        }
    }

    #[test]
    fn shorten_keeps_the_bound(long in "[a-z\u{e9}\u{4e2d}\u{1f600}]{0,200}", bytes_max in 0_usize..300) {
        let mut short = long.clone();
        shorten(&mut short, bytes_max);
        prop_assert!(short.len() <= bytes_max);
        if long.len() <= bytes_max {
            prop_assert_eq!(short, long);
        }
    }
}
