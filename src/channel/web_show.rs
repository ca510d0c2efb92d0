//! What open pages of a visitor see of an answer on its way: that it is being written, and its text as it comes.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::turn::hub::{Delivery, StreamHub, Subscription};
use agentsvc_api::widget::hub::{Sign, WebHub};
use agentsvc_components::TurnId;
use agentsvc_components::channel::signal::{ChatSignal, Shown};
use agentsvc_components::manifest::channel::TypingMode;
use agentsvc_components::turn::stream::StreamEvent;
use tokio::time::{Instant, sleep_until};

use super::registry::Registry;
use super::show::may_be_silence;

/// How often pieces of a text are passed on.
const PIECE_PERIOD: Duration = Duration::from_millis(100);

/// Shows how far a message of a visitor is. Never blocks.
pub(super) fn show(registry: &Registry, signal: ChatSignal) {
    let hub = registry.api.services.state::<WebHub>();
    match signal.shown {
        Shown::Began { session, turn, typing, .. } => {
            if typing == TypingMode::Never {
                return;
            }
            hub.tell(&signal.instance, &signal.chat, Sign::Began(turn));
            let events = registry.api.services.state::<StreamHub>().subscribe_from_start(session).only(turn);
            registry.spawn(async move { follow(&hub, &signal, turn, events).await });
        }
        Shown::Ended { .. } => hub.tell(&signal.instance, &signal.chat, Sign::Ended),
    }
}

/// Passes the text on. The whole message comes when it is stored, so that what is left at the end needs no piece of its own.
async fn follow(hub: &Arc<WebHub>, signal: &ChatSignal, turn: TurnId, mut events: Subscription) {
    let (mut waiting, mut next_piece, mut has_begun) = (String::new(), Instant::now(), false);
    loop {
        let may_go = !waiting.is_empty() && !may_be_silence(has_begun, &waiting);
        tokio::select! {
            delivery = events.next() => {
                let Delivery::Frame(frame) = delivery else { return };
                if frame.last {
                    return;
                }
                if let StreamEvent::Chunk { content } = &frame.event {
                    waiting.push_str(content);
                }
            }
            () = sleep_until(next_piece), if may_go => {
                let text = std::mem::take(&mut waiting);
                hub.tell(&signal.instance, &signal.chat, Sign::Piece(turn, text.into()));
                (has_begun, next_piece) = (true, Instant::now() + PIECE_PERIOD);
            }
        }
    }
}
