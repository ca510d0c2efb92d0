//! Tool calls in answers and in conversations.

use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::turn::outcome::StopReason;

use super::asking::{call, conversation, question, result, text, told, tool};
use super::script::{Script, Step};
use super::speaks::Speaks;
use crate::harness::calls;

/// A name that no provider takes as it is: a dot, a slash, and too long.
const HOSTILE: &str = "files.example/read_the_whole_of_a_very_long_document_from_the_shared_drive_of_the_department";

pub(crate) async fn interleaved_calls(speaker: &dyn Speaks) {
    let mut script = Script::text(&["Let me see."]).and_call("a", "look", &[]).and_call("b", "find", &[]);
    let pieces = [(0, "{\"q\":"), (1, "{\"q\""), (0, "\"x\"}"), (1, ":\"y\"}")];
    script.steps.extend(pieces.map(|(at, piece)| Step::Arguments { at, piece: piece.to_owned() }));
    for streaming in [false, true] {
        let mut question = question(streaming);
        question.tools = vec![tool("look"), tool("find")];
        let answer = told(speaker, &script, question).await.1.answer();
        let made = calls(&answer);
        let ids: Vec<&str> = made.iter().map(|call| call.0).collect();
        if speaker.carries_call_ids() {
            assert_eq!(ids, ["a", "b"]);
        } else {
            assert!(ids[0] != ids[1] && ids.iter().all(|id| !id.is_empty()), "{ids:?}");
        }
        let rest: Vec<_> = made.iter().map(|call| (call.1, call.2)).collect();
        assert_eq!(rest, [("look", "{\"q\":\"x\"}"), ("find", "{\"q\":\"y\"}")], "streaming {streaming}");
        assert_eq!(answer.stop, StopReason::ToolUse);
    }
}

pub(crate) async fn text_and_calls_keep_their_order(speaker: &dyn Speaks) {
    let script = Script::text(&["before"]).and_call("a", "look", &["{}"]).and_call("b", "look", &["{}"]);
    for streaming in [false, true] {
        let answer = told(speaker, &script, question(streaming)).await.1.answer();
        let kinds: Vec<&str> = answer.blocks.iter().map(kind).collect();
        assert_eq!(kinds, ["text", "call", "call"], "streaming {streaming}");
    }
}

pub(crate) async fn calls_without_arguments(speaker: &dyn Speaks) {
    let script = Script::text(&[]).and_call("a", "look", &["{}"]).and_call("b", "look", &["{}"]);
    for streaming in [false, true] {
        let answer = told(speaker, &script, question(streaming)).await.1.answer();
        let inputs: Vec<&str> = calls(&answer).iter().map(|call| call.2).collect();
        assert_eq!(inputs, ["{}", "{}"], "streaming {streaming}");
    }
}

pub(crate) async fn names_that_the_provider_would_refuse(speaker: &dyn Speaks) {
    for streaming in [false, true] {
        let said = || {
            vec![
                (Role::User, vec![text("read")]),
                (Role::Assistant, vec![call("a.b:1/2", HOSTILE, "{\"q\":1}")]),
                (Role::Tool, vec![result("a.b:1/2", HOSTILE, "done")]),
            ]
        };
        let mut first = conversation(streaming, said());
        first.tools = vec![tool("look"), tool(HOSTILE)];
        let (heard, _) = told(speaker, &Script::text(&["x"]), first).await;
        let wire = heard.tools[1].clone();
        let fits = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)) && text.len() <= 64;
        assert!(fits(&wire) && heard.tools[0] == "look", "{:?}", heard.tools);
        let called = heard.said.iter().find(|line| line.starts_with("call ")).expect("the call went back");
        assert!(called.contains(&wire) && !called.contains("files.example"), "{called}");

        let mut second = conversation(streaming, said());
        second.tools = vec![tool("look"), tool(HOSTILE)];
        let script = Script::text(&[]).and_call("c", &wire, &["{\"q\":2}"]).and_call("d", "look", &["{}"]);
        let answer = told(speaker, &script, second).await.1.answer();
        let names: Vec<&str> = calls(&answer).iter().map(|call| call.1).collect();
        assert_eq!(names, [HOSTILE, "look"]);
    }
}

pub(crate) async fn a_conversation_with_tools(speaker: &dyn Speaks) {
    let said = vec![
        (Role::User, vec![text("first")]),
        (Role::Assistant, vec![text("I look."), call("a", "look", "{\"q\":1}"), call("b", "look", "{broken")]),
        (Role::Tool, vec![result("a", "look", "rain"), result("b", "look", "bad arguments")]),
        (Role::Assistant, vec![call("c", "find", "")]),
        (Role::Tool, vec![result("c", "find", "nothing")]),
        (Role::User, vec![text("and now?")]),
        (Role::Assistant, vec![text("Rain.")]),
        (Role::User, vec![text("thanks")]),
    ];
    let mut question = conversation(false, said);
    question.tools = vec![tool("look"), tool("find")];
    let (heard, told) = told(speaker, &Script::text(&["ok"]), question).await;
    told.answer();
    assert_eq!((heard.system.as_str(), heard.tools), ("Be brief.", vec!["look".to_owned(), "find".to_owned()]));
    let expected = [
        "user: first",
        "assistant: I look.",
        "call a look {\"q\":1}",
        "call b look {}",
        "result a: rain",
        "result b: bad arguments",
        "call c find {}",
        "result c: nothing",
        "user: and now?",
        "assistant: Rain.",
        "user: thanks",
    ];
    if speaker.carries_call_ids() {
        assert_eq!(heard.said, expected);
    } else {
        assert_eq!(heard.said.len(), expected.len(), "{:?}", heard.said);
    }
}

fn kind(block: &Block) -> &'static str {
    match block {
        Block::Text { .. } => "text",
        Block::ToolCall(_) => "call",
        Block::ToolResult { .. } => "result",
        Block::Image { .. } => "image",
        Block::Reasoning(_) => "thought",
    }
}
