//! What a model thinks: kept with the answer, given back to the same model and to no other.

use agentsvc_components::session::message::{Block, Role, text_of};

use super::asking::{conversation, question, result, text, told, tool};
use super::script::Script;
use super::speaks::Speaks;

fn script() -> Script {
    Script::text(&[]).and_thought("Hm, \u{e9}\n\"well\"", "bWFyaw==").and_text("I look.").and_call(
        "a",
        "look",
        &["{\"q\":", "1}"],
    )
}

/// What the model said, in the conversation of the next call.
async fn blocks(speaker: &dyn Speaks, streaming: bool) -> Vec<Block> {
    let mut question = question(streaming);
    question.tools = vec![tool("look")];
    question.asked.thinking = true;
    let told = told(speaker, &script(), question).await.1;
    assert_eq!(told.chunks.concat(), if streaming { "I look." } else { "" }, "thoughts are not given out");
    told.answer().blocks
}

/// The lines of the next call, asked of `model`.
async fn next(speaker: &dyn Speaks, said: Vec<Block>, model: &'static str) -> Vec<String> {
    let id = said.iter().find_map(|block| if let Block::ToolCall(call) = block { Some(call.id.clone()) } else { None });
    let id = id.expect("a call was made");
    let messages = vec![
        (Role::User, vec![text("question")]),
        (Role::Assistant, said),
        (Role::Tool, vec![result(&id, "look", "rain")]),
    ];
    let mut question = conversation(false, messages);
    question.tools = vec![tool("look")];
    question.asked.thinking = true;
    question.model = Some(model);
    told(speaker, &Script::text(&["Rain."]), question).await.0.said
}

pub(crate) async fn thoughts_go_back_to_their_model(speaker: &dyn Speaks) {
    for streaming in [false, true] {
        let said = blocks(speaker, streaming).await;
        assert_eq!(text_of(&said), "I look.");
        if !speaker.carries_thoughts() {
            continue;
        }
        let Block::Reasoning(thought) = &said[0] else { panic!("no thought comes first: {said:?}") };
        assert_eq!(thought.text, "Hm, \u{e9}\n\"well\"", "streaming {streaming}");
        assert_eq!((thought.wire.as_str(), thought.model.as_str()), (speaker.kind().as_str(), speaker.model()));
        let lines = next(speaker, said, speaker.model()).await;
        let thoughts: Vec<&String> = lines.iter().filter(|line| line.starts_with("thought ")).collect();
        assert_eq!(thoughts, ["thought bWFyaw=="], "streaming {streaming}: {lines:?}");
    }
}

pub(crate) async fn thoughts_go_to_no_other_model(speaker: &dyn Speaks) {
    let said = blocks(speaker, true).await;
    let lines = next(speaker, said, "m-2").await;
    assert!(lines.iter().all(|line| !line.starts_with("thought ")), "{lines:?}");
    assert!(lines.iter().any(|line| line == "assistant: I look."), "{lines:?}");
}
