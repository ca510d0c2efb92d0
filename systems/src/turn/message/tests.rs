//! What the event of a message carries.

use agentsvc_components::session::message::text_of;

use super::*;

#[test]
fn an_event_carries_the_beginning_of_the_whole_message() {
    let text = |text: &str| Block::Text { text: text.to_owned() };
    let call = Block::ToolCall(ToolCall { id: "c".into(), name: "t".into(), input: "{}".into() });
    let most = limit::EVENT_TEXT_BYTES_MAX;
    for blocks in [
        vec![],
        vec![text("a"), call, text("ä")],
        vec![text(&"x".repeat(most - 1)), text("ä"), text("b")],
        vec![text(&"x".repeat(most)), text("y")],
        vec![text(&"ä".repeat(most))],
    ] {
        assert_eq!(*told(&blocks), *event_text(&text_of(&blocks)));
    }
}
