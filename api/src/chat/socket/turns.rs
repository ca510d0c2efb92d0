//! The turns that one WebSocket began and still waits for. Only these are shown on it; turns that others began in the
//! same session are not.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use agentsvc_components::turn::stream::StreamEvent;
use agentsvc_components::{SessionId, TurnId};

use super::wire::{ServerMessage, of_event};
use crate::http::socket::Outbox;
use crate::turn::hub::{BROKEN_OFF, Delivery, Frame, Subscription};

/// The sessions with open turns of this socket.
#[derive(Default)]
pub(crate) struct Turns(Vec<Follow>);

/// One session that is followed until every turn of ours in it has ended.
struct Follow {
    session: SessionId,
    subscription: Subscription,
    /// In execution order.
    turns: VecDeque<TurnId>,
}

impl Turns {
    /// Turns that have not ended.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|follow| follow.turns.len()).sum()
    }

    /// Sessions with such turns.
    pub(crate) fn sessions(&self) -> Vec<SessionId> {
        self.0.iter().map(|follow| follow.session).collect()
    }

    /// Follows `turn`, whose session was subscribed to before it was posted.
    pub(crate) fn begin(&mut self, turn: TurnId, session: SessionId, subscription: Subscription, outbox: &mut Outbox) {
        if let Some(follow) = self.0.iter_mut().find(|follow| follow.session == session) {
            // The subscription that is there heard everything that the new one did.
            return follow.turns.push_back(turn);
        }
        outbox.push(ServerMessage::Thinking.text());
        self.0.push(Follow { session, subscription, turns: VecDeque::from([turn]) });
    }

    /// Takes over what the sessions say. Ready when there was anything; asks to be called again then.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, outbox: &mut Outbox) -> Poll<()> {
        let mut heard = Poll::Pending;
        for follow in &mut self.0 {
            while let Poll::Ready(delivery) = follow.subscription.poll(cx) {
                heard = Poll::Ready(());
                match delivery {
                    Delivery::Frame(frame) => follow.take(&frame, outbox),
                    Delivery::Lagged(missed) => outbox.note_missed(missed),
                    Delivery::BrokenOff => {
                        outbox.push(ServerMessage::Error { content: BROKEN_OFF }.text());
                        follow.turns.clear();
                    }
                }
                if follow.turns.is_empty() {
                    break;
                }
            }
        }
        self.0.retain(|follow| !follow.turns.is_empty());
        heard
    }
}

impl Follow {
    /// Passes on what a turn of ours says.
    fn take(&mut self, frame: &Frame, outbox: &mut Outbox) {
        let Some(place) = self.turns.iter().position(|turn| *turn == frame.turn) else { return };
        for _ in 0..place {
            // A session runs one turn at a time: the ends of those before were among the frames that were missed.
            let content = "the end of the turn was missed; read the session";
            outbox.push(ServerMessage::Error { content }.text());
            self.next(outbox);
        }
        match frame.text(of_event) {
            Some(text) if matches!(frame.event, StreamEvent::Chunk { .. }) => outbox.push_delta(text),
            Some(text) => outbox.push(text),
            None => {}
        }
        if frame.last {
            self.next(outbox);
        }
    }

    /// The first turn has ended; the next begins.
    fn next(&mut self, outbox: &mut Outbox) {
        self.turns.pop_front();
        if !self.turns.is_empty() {
            outbox.push(ServerMessage::Thinking.text());
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::turn::outcome::StopReason;
    use std::sync::Arc;

    use agentsvc_components::session::message::Usage;
    use agentsvc_components::turn::stream::StreamItem;
    use uuid::Uuid;

    use super::*;
    use crate::http::socket::Outbox;
    use crate::turn::hub::StreamHub;

    const SESSION: SessionId = SessionId(Uuid::from_u128(1));

    struct Case {
        hub: Arc<StreamHub>,
        turns: Turns,
        outbox: Outbox,
    }

    impl Case {
        fn new() -> Self {
            Self { hub: Arc::new(StreamHub::new()), turns: Turns::default(), outbox: Outbox::default() }
        }

        fn begin(&mut self, turn: u128) {
            let subscription = self.hub.subscribe(SESSION);
            self.turns.begin(TurnId(Uuid::from_u128(turn)), SESSION, subscription, &mut self.outbox);
        }

        fn say(&self, turn: u128, event: StreamEvent) {
            self.hub.publish(StreamItem { session: SESSION, turn: TurnId(Uuid::from_u128(turn)), event });
        }

        fn chunk(&self, turn: u128) {
            self.say(turn, StreamEvent::Chunk { content: turn.to_string() });
        }

        fn done(&self, turn: u128) {
            let response = Some(turn.to_string().into());
            let (usage, stop) = (Usage::default(), StopReason::End);
            let tool_calls = Vec::new();
            self.say(turn, StreamEvent::Done { usage, stopped: false, iterations: 1, stop, response, tool_calls });
        }

        /// The types of all messages so far.
        fn types(&mut self) -> Vec<String> {
            let mut cx = Context::from_waker(std::task::Waker::noop());
            while self.turns.poll(&mut cx, &mut self.outbox).is_ready() {}
            let said = std::iter::from_fn(|| self.outbox.pop());
            said.map(|text| text.split('"').nth(3).unwrap_or_default().to_owned()).collect()
        }
    }

    #[test]
    fn turns_of_ours_are_shown_in_order_and_others_are_not() {
        let mut case = Case::new();
        case.begin(1);
        case.begin(3);
        assert_eq!((case.turns.len(), case.turns.sessions()), (2, vec![SESSION]));
        for turn in [1, 2, 3, 4] {
            case.chunk(turn);
            case.done(turn);
        }
        assert_eq!(case.types(), ["thinking", "text_delta", "response", "thinking", "text_delta", "response"]);
        assert_eq!((case.turns.len(), case.hub.watched()), (0, 0));
    }

    #[test]
    fn a_missed_end_is_told() {
        let mut case = Case::new();
        case.begin(1);
        case.begin(2);
        case.chunk(2);
        case.done(2);
        assert_eq!(case.types(), ["thinking", "error", "thinking", "text_delta", "response"]);
    }

    #[test]
    fn lost_pieces_are_counted_and_the_response_is_not_lost() {
        let mut case = Case::new();
        case.begin(1);
        for _ in 0..agentsvc_components::kernel::limit::STREAM_BACKLOG_MAX + 5 {
            case.chunk(1);
        }
        case.done(1);
        let types = case.types();
        assert_eq!(types[..2], ["thinking", "lagged"]);
        assert_eq!(types.last().unwrap(), "response");
    }
}
