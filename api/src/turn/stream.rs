//! One turn as server-sent events (spec 1, SSE on message/stream; Attach).

use agentsvc_components::ErrorCode;
use agentsvc_components::turn::error_codes::{SHUTTING_DOWN, STREAM_LAGGED};
use std::time::Duration;

use agentsvc_components::{RefusalKind, SessionId, TurnId};
use agentsvc_systems::session::{GetSession, error_codes::SESSION_REMOVED};
use bytes::Bytes;
use futures_util::{Stream, stream};
use serde::Serialize;
use serde_json::json;

use crate::Api;
use crate::http::bridge::Bridge;
use crate::http::reply::Response;
use crate::http::sse;
use crate::turn::hub::{Delivery, Subscription};

/// How often one who waits for a turn asks whether the session still exists.
const SESSION_CHECK: Duration = Duration::from_secs(30);

/// Answers with the events of one turn, until its last.
pub(crate) fn response(api: &Api, events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let farewell = error("the daemon is shutting down; the turn resumes at the next start", SHUTTING_DOWN);
    sse::response(&api.shutdown, events, Some(farewell))
}

/// The events of `turn`, which was posted after the subscription began.
pub(crate) fn of_turn(subscription: Subscription, turn: TurnId) -> impl Stream<Item = Bytes> + Send {
    stream::unfold(Follower { subscription, turn: Some(turn), ended: false }, async |mut follower| {
        let wire = follower.next().await?;
        Some((wire, follower))
    })
}

/// The event of a message that gets no answer.
pub(crate) fn of_silence() -> impl Stream<Item = Bytes> + Send {
    let usage = json!({ "input_tokens": 0, "output_tokens": 0 });
    stream::iter([sse::event("done", &json!({ "done": true, "silent": true, "usage": usage }))])
}

/// The events of the first turn that speaks: the one in flight, else the next.
pub(crate) fn of_next_turn(
    subscription: Subscription,
    session: SessionId,
    bridge: Bridge,
) -> impl Stream<Item = Bytes> + Send {
    let follower = Follower { subscription, turn: None, ended: false };
    stream::unfold((follower, bridge), move |(mut follower, bridge)| async move {
        let wire = loop {
            if follower.turn.is_some() || follower.ended {
                break follower.next().await?;
            }
            tokio::select! {
                wire = follower.next() => break wire?,
                () = tokio::time::sleep(SESSION_CHECK) => {}
            }
            if is_gone(&bridge, session).await {
                follower.ended = true;
                break error("the session no longer exists", SESSION_REMOVED);
            }
        };
        Some((wire, (follower, bridge)))
    })
}

/// Nobody would ever speak in a session that was removed.
async fn is_gone(bridge: &Bridge, session: SessionId) -> bool {
    let found = bridge.ask(GetSession::ById(session)).await;
    found.is_err_and(|refusal| refusal.kind == RefusalKind::NotFound)
}

/// One subscriber on its way through one turn.
struct Follower {
    subscription: Subscription,
    /// Whom it listens to; `None` until someone speaks.
    turn: Option<TurnId>,
    ended: bool,
}

impl Follower {
    /// The next event; `None` after the last. May be cancelled without loss.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            let frame = match self.subscription.next().await {
                Delivery::Frame(frame) => frame,
                lagged @ Delivery::Lagged(_) => return Some(lagged.wire()),
                end @ Delivery::BrokenOff => {
                    self.ended = true;
                    return Some(end.wire());
                }
            };
            let turn = *self.turn.get_or_insert(frame.turn);
            if frame.turn == turn {
                self.ended = frame.last;
                return Some(frame.sse());
            }
            // One session runs one turn at a time, in order of their ids: a later one speaks only when this one
            // has ended, and its end was among the events that were missed.
            if frame.turn > turn {
                self.ended = true;
                return Some(error("the end of the turn was missed; read the session", STREAM_LAGGED));
            }
        }
        None
    }
}

#[derive(Serialize)]
struct Failure<'a> {
    error: &'a str,
    code: ErrorCode,
}

fn error(error: &str, code: ErrorCode) -> Bytes {
    sse::event("error", &Failure { error, code })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentsvc_components::kernel::limit;
    use agentsvc_components::session::message::Usage;
    use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
    use futures_util::StreamExt;
    use uuid::Uuid;

    use super::*;
    use crate::http::bridge::bridge;
    use crate::turn::hub::StreamHub;

    const SESSION: SessionId = SessionId(Uuid::from_u128(1));

    fn turn(n: u128) -> TurnId {
        TurnId(Uuid::from_u128(n))
    }

    fn say(hub: &StreamHub, n: u128, text: &str) {
        let event = StreamEvent::Chunk { content: text.to_owned() };
        hub.publish(StreamItem { session: SESSION, turn: turn(n), event });
    }

    fn done(hub: &StreamHub, n: u128) {
        let event = StreamEvent::done(Usage::default(), false);
        hub.publish(StreamItem { session: SESSION, turn: turn(n), event });
    }

    async fn names(events: impl Stream<Item = Bytes>) -> Vec<String> {
        let texts = events.map(|wire| String::from_utf8(wire.to_vec()).unwrap());
        texts.map(|text| text.lines().next().unwrap().replace("event: ", "")).collect().await
    }

    #[tokio::test]
    async fn turns_before_are_skipped_and_the_last_event_ends_it() {
        let hub = Arc::new(StreamHub::new());
        let subscription = hub.subscribe(SESSION);
        say(&hub, 4, "earlier");
        done(&hub, 4);
        say(&hub, 5, "mine");
        done(&hub, 5);
        say(&hub, 6, "later");
        assert_eq!(names(of_turn(subscription, turn(5))).await, ["chunk", "done"]);
        assert_eq!(hub.watched(), 0);
    }

    #[tokio::test]
    async fn the_first_who_speaks_is_followed() {
        let hub = Arc::new(StreamHub::new());
        let events = of_next_turn(hub.subscribe(SESSION), SESSION, bridge().0);
        for n in [7, 8] {
            say(&hub, n, "a");
            done(&hub, n);
        }
        assert_eq!(names(events).await, ["chunk", "done"]);
    }

    #[tokio::test]
    async fn a_slow_subscriber_still_gets_the_end() {
        let hub = Arc::new(StreamHub::new());
        let subscription = hub.subscribe(SESSION);
        say(&hub, 1, "mine");
        done(&hub, 1);
        for _ in 0..limit::STREAM_BACKLOG_MAX {
            say(&hub, 2, "later");
        }
        assert_eq!(names(of_turn(subscription, turn(1))).await, ["lagged", "done"]);
    }

    #[tokio::test]
    async fn a_slow_subscriber_that_missed_the_end_is_told() {
        let hub = Arc::new(StreamHub::new());
        let subscription = hub.subscribe(SESSION);
        say(&hub, 1, "mine");
        for n in 1..limit::STREAM_BACKLOG_MAX as u128 + 2 {
            done(&hub, n);
        }
        assert_eq!(names(of_turn(subscription, turn(1))).await, ["lagged", "error"]);
    }
}
