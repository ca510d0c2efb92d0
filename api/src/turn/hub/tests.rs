//! Subscribers get what is said, in order, and who is slow or late is told.

use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::Usage;
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
    assert!(!hub.is_followed(SESSION));
    hub.publish(chunk("nobody hears this"));
    let (mut a, mut b) = (hub.subscribe(SESSION), hub.subscribe(SESSION));
    hub.publish(chunk("hi"));
    let (one, two) = (a.next().await.wire(), b.next().await.wire());
    assert_eq!(one, two);
    assert_eq!(one.as_ptr(), two.as_ptr());
    assert_eq!(one, "event: chunk\ndata: {\"content\":\"hi\",\"done\":false}\n\n");
    drop(a);
    assert!(hub.is_followed(SESSION));
    drop(b);
    assert!(hub.is_followed(SESSION), "its turn still runs");
    hub.publish(done());
    assert!(!hub.is_followed(SESSION));
    assert_eq!(hub.watched(), 0);
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
        wire(StreamEvent::Error { error: "no".to_owned(), code: error_codes::BUSY }),
        "event: error\ndata: {\"error\":\"no\",\"code\":\"busy\"}\n\n"
    );
}

fn done() -> StreamItem {
    StreamItem { event: StreamEvent::done(Usage::default(), false), ..chunk("") }
}

#[tokio::test]
async fn who_comes_later_hears_what_was_said() {
    let hub = Arc::new(StreamHub::new());
    let first = hub.subscribe(SESSION);
    hub.publish(chunk("Hello"));
    hub.publish(chunk(" wor"));
    hub.publish(StreamItem { event: StreamEvent::ToolUse { tool: "look".into() }, ..chunk("") });
    // Nobody listens for a while.
    drop(first);
    assert_eq!(hub.watched(), 0);
    hub.publish(chunk("ld"));
    let mut late = hub.subscribe_from_start(SESSION);
    let mut plain = hub.subscribe(SESSION);
    hub.publish(chunk("!"));
    let mut heard = Vec::new();
    for _ in 0..4 {
        heard.push(String::from_utf8(late.next().await.wire().to_vec()).unwrap());
    }
    let text = heard.concat();
    assert!(heard[0].contains("Hello wor") && heard[1].contains("look"), "{text}");
    assert!(heard[2].contains("\"ld\"") && heard[3].contains("\"!\""), "{text}");
    assert!(String::from_utf8(plain.next().await.wire().to_vec()).unwrap().contains("\"!\""));
    assert!(plain.next().now_or_never().is_none());
    // With the end it is forgotten.
    drop((late, plain));
    hub.publish(done());
    assert!(hub.subscribe_from_start(SESSION).next().now_or_never().is_none());
    assert!(hub.shards.iter().all(|shard| shard.sessions.read().is_empty()));
}

#[tokio::test]
async fn who_leaves_before_the_first_word_finds_it_later() {
    let hub = Arc::new(StreamHub::new());
    let mut first = hub.subscribe(SESSION);
    first.expect_turn();
    drop(first.only(chunk("").turn));
    assert!(hub.is_followed(SESSION) && hub.watched() == 0);
    hub.publish(chunk("Hello"));
    let mut late = hub.subscribe_from_start(SESSION);
    assert!(String::from_utf8(late.next().await.wire().to_vec()).unwrap().contains("Hello"));
    drop(late);
    hub.publish(done());
    assert!(!hub.is_followed(SESSION));
    // No turn came of it.
    let mut refused = hub.subscribe(SESSION);
    refused.expect_turn();
    drop(refused);
    assert!(!hub.is_followed(SESSION));
}

#[tokio::test]
async fn what_becomes_of_others_takes_no_expected_turn_away() {
    let hub = Arc::new(StreamHub::new());
    let turn = |n: u128| TurnId(Uuid::from_u128(n));
    let post = || {
        let mut poster = hub.subscribe(SESSION);
        poster.expect_turn();
        poster
    };
    drop(post().only(turn(5)));
    // Another post is refused, another turn speaks, a third ends without a word while that one speaks.
    drop(post());
    hub.publish(StreamItem { turn: turn(4), ..chunk("other") });
    hub.publish(StreamItem { turn: turn(6), ..done() });
    let mut late = hub.subscribe_from_start(SESSION);
    assert!(matches!(late.next().await, Delivery::Frame(frame) if frame.turn == turn(4)));
    drop(late);
    hub.publish(StreamItem { turn: turn(4), ..done() });
    assert!(hub.is_followed(SESSION), "the turn that was posted first has not spoken");
    hub.publish(StreamItem { turn: turn(5), ..done() });
    assert!(!hub.is_followed(SESSION));
    // One that has ended before its poster hears of it is not waited for.
    let poster = post();
    whole(&hub, turn(7));
    drop(poster.only(turn(7)));
    assert!(!hub.is_followed(SESSION));
    // Nor one of a world that is gone.
    let (expected, poster) = (post().only(turn(8)), post());
    hub.break_off();
    drop((expected, poster.only(turn(9))));
    assert!(!hub.is_followed(SESSION));
}

#[test]
fn expected_turns_are_bounded() {
    let hub = Arc::new(StreamHub::new());
    let turns = || (0..=limit::STREAM_TURNS_EXPECTED_MAX as u128).map(|n| TurnId(Uuid::from_u128(n)));
    for turn in turns() {
        let mut poster = hub.subscribe(SESSION);
        poster.expect_turn();
        drop(poster.only(turn));
    }
    turns().take(limit::STREAM_TURNS_EXPECTED_MAX).for_each(|turn| hub.publish(StreamItem { turn, ..done() }));
    assert!(!hub.is_followed(SESSION), "one more than may be expected is not");
}

#[tokio::test]
async fn what_is_kept_is_bounded_and_what_is_gone_is_told() {
    let hub = Arc::new(StreamHub::new());
    let _watch = hub.subscribe(SESSION);
    hub.publish(chunk("x".repeat(limit::STREAM_SAID_BYTES_MAX)));
    hub.publish(chunk("y"));
    let mut late = hub.subscribe_from_start(SESSION);
    assert_eq!(late.next().await, Delivery::Lagged(1));
    assert!(String::from_utf8(late.next().await.wire().to_vec()).unwrap().contains("\"y\""));
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
    let mut new = hub.subscribe_from_start(SESSION);
    assert!(new.next().now_or_never().is_none(), "the next world is watched anew");
}

/// What `turn` says: a piece, and its end.
fn whole(hub: &StreamHub, turn: TurnId) {
    let items = [chunk("x"), done()];
    items.into_iter().for_each(|item| hub.publish(StreamItem { turn, ..item }));
}

#[tokio::test]
async fn who_listens_to_one_turn_hears_no_other() {
    let hub = Arc::new(StreamHub::new());
    let turns: Vec<TurnId> = (10..40).map(|n| TurnId(Uuid::from_u128(n))).collect();
    let mut all = hub.subscribe(SESSION);
    let early = hub.subscribe(SESSION);
    whole(&hub, turns[0]);
    let mut listeners: Vec<_> = turns[1..].iter().map(|turn| (*turn, hub.subscribe(SESSION).only(*turn))).collect();
    // What was said before it knew which turn is its own is not lost.
    let mut first = early.only(turns[0]);
    turns[1..].iter().for_each(|turn| whole(&hub, *turn));
    let heard = |delivery: Delivery| match delivery {
        Delivery::Frame(frame) => (frame.turn, frame.last),
        other => panic!("{other:?}"),
    };
    assert_eq!((heard(first.next().await), heard(first.next().await)), ((turns[0], false), (turns[0], true)));
    assert!(first.next().now_or_never().is_none());
    for (turn, listener) in &mut listeners {
        assert_eq!((heard(listener.next().await), heard(listener.next().await)), ((*turn, false), (*turn, true)));
        assert!(listener.next().now_or_never().is_none());
    }
    for turn in &turns {
        assert_eq!((heard(all.next().await), heard(all.next().await)), ((*turn, false), (*turn, true)));
    }
    assert_eq!(hub.watched(), 1);
    drop((all, first, listeners));
    assert!(!hub.is_followed(SESSION), "nothing is left of them");
}

#[tokio::test]
async fn ends_of_turns_stay_in_order_among_the_rest() {
    let hub = Arc::new(StreamHub::new());
    let mut slow = hub.subscribe(SESSION);
    let turn = |n: usize| TurnId(Uuid::from_u128(100 + n as u128));
    let count = limit::STREAM_BACKLOG_MAX;
    (0..count).for_each(|n| whole(&hub, turn(n)));
    // Twice as many as wait: all pieces are gone, all ends are there.
    assert_eq!(slow.next().await, Delivery::Lagged(count as u64));
    for n in 0..count {
        let Delivery::Frame(frame) = slow.next().await else { panic!("an end") };
        assert_eq!((frame.turn, frame.last), (turn(n), true));
    }
    (0..=count).for_each(|n| whole(&hub, turn(n)));
    // One end more than may wait: the oldest goes.
    assert_eq!(slow.next().await, Delivery::Lagged(count as u64 + 2));
    let Delivery::Frame(frame) = slow.next().await else { panic!("an end") };
    assert_eq!(frame.turn, turn(1));
}
