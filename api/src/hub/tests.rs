//! Who watches a session hears all of it, or is told what is missing.

use agentsvc_components::message::Usage;
use futures_util::FutureExt;
use uuid::Uuid;

use super::*;

const SESSION: SessionId = SessionId(Uuid::from_u128(7));

fn chunk(content: impl Into<String>) -> StreamItem {
    StreamItem {
        session: SESSION,
        turn: TurnId(Uuid::from_u128(1)),
        event: StreamEvent::Chunk { content: content.into() },
    }
}

fn wire(event: StreamEvent) -> String {
    String::from_utf8(wire_of(&event).to_vec()).unwrap()
}

#[tokio::test]
async fn every_subscriber_gets_the_same_bytes() {
    let hub = Arc::new(StreamHub::new());
    assert!(!hub.has_subscribers(SESSION));
    hub.publish(chunk("nobody hears this"));
    let (mut a, mut b) = (hub.subscribe(SESSION), hub.subscribe(SESSION));
    hub.publish(chunk("hi"));
    let (one, two) = (a.next().await.wire(), b.next().await.wire());
    assert_eq!(one, two);
    assert_eq!(one.as_ptr(), two.as_ptr());
    assert_eq!(one, "event: chunk\ndata: {\"content\":\"hi\",\"done\":false}\n\n");
    drop(a);
    assert!(hub.has_subscribers(SESSION));
    drop(b);
    assert!(!hub.has_subscribers(SESSION));
    assert_eq!(hub.watched(), 0);
}

#[tokio::test]
async fn a_watch_that_is_broken_off_ends_behind_what_was_said() {
    let hub = Arc::new(StreamHub::new());
    let mut old = hub.subscribe(SESSION);
    hub.publish(chunk("last words"));
    hub.break_off();
    assert!(matches!(old.next().await, Delivery::Frame(_)));
    let end = String::from_utf8(old.next().await.wire().to_vec()).unwrap();
    assert!(end.starts_with("event: error\n") && end.contains("\"code\":\"exchanging\""), "{end}");
    assert_eq!(old.next().await, Delivery::BrokenOff);
    let mut new = hub.subscribe(SESSION);
    assert!(new.next().now_or_never().is_none(), "the next world is watched anew");
}

#[tokio::test]
async fn a_waiting_subscriber_is_woken() {
    let hub = Arc::new(StreamHub::new());
    let mut subscription = hub.subscribe(SESSION);
    let waits = tokio::spawn(async move { subscription.next().await });
    tokio::task::yield_now().await;
    hub.publish(chunk("now"));
    assert!(matches!(waits.await.unwrap(), Delivery::Frame(_)));
}

#[tokio::test]
async fn a_slow_subscriber_is_told_what_it_missed_and_gets_the_newest() {
    let hub = Arc::new(StreamHub::new());
    let mut slow = hub.subscribe(SESSION);
    for n in 0..limit::STREAM_BACKLOG_MAX + 3 {
        hub.publish(chunk(n.to_string()));
    }
    assert_eq!(slow.next().await, Delivery::Lagged(3));
    for n in 3..limit::STREAM_BACKLOG_MAX + 3 {
        let Delivery::Frame(frame) = slow.next().await else { panic!("a frame") };
        assert_eq!(frame.event, StreamEvent::Chunk { content: n.to_string() });
    }
    assert!(slow.next().now_or_never().is_none());
    assert_eq!(Delivery::Lagged(3).wire(), "event: lagged\ndata: {\"missed\":3}\n\n");
}

#[test]
fn wire_forms_are_those_of_the_specification() {
    let usage = Usage::of(3, 4);
    let tool = || "web".to_owned();
    let result = |input: &str| StreamEvent::ToolResult { tool: tool(), input: input.to_owned() };
    assert_eq!(wire(StreamEvent::ToolUse { tool: tool() }), "event: tool_use\ndata: {\"tool\":\"web\"}\n\n");
    assert_eq!(wire(result("{\"q\":1}")), "event: tool_result\ndata: {\"tool\":\"web\",\"input\":{\"q\":1}}\n\n");
    assert_eq!(wire(result("{\n\"q\":\r\n1}")), "event: tool_result\ndata: {\"tool\":\"web\",\"input\":{\"q\":1}}\n\n");
    assert_eq!(
        wire(result("{oops\n")),
        "event: tool_result\ndata: {\"tool\":\"web\",\"input\":{\"raw\":\"{oops\\n\"}}\n\n"
    );
    assert_eq!(
        wire(StreamEvent::OwnerNotice { text: "psst".to_owned() }),
        "event: owner_notice\ndata: {\"text\":\"psst\"}\n\n"
    );
    assert_eq!(
        wire(StreamEvent::done(usage, false)),
        "event: done\ndata: {\"done\":true,\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}\n\n"
    );
    assert_eq!(
        wire(StreamEvent::Error { error: "no".to_owned(), code: "x".to_owned() }),
        "event: error\ndata: {\"error\":\"no\",\"code\":\"x\"}\n\n"
    );
}
