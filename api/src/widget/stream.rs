//! The conversation of one visitor as it goes on. Messages are read from the world, so that a page that comes back, also after a
//! restart, misses none; pieces of a text are passed on as they come.

use std::collections::VecDeque;
use std::sync::Arc;

use agentsvc_components::TurnId;
use agentsvc_components::widget::WebMessageId;
use agentsvc_systems::widget::{ListWebMessages, WebMessageView};
use bytes::Bytes;
use futures_util::{Stream, stream};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;

use super::hub::{Page, Sign, Writing};
use super::service::Site;
use super::shape::WebMessageItem;
use crate::http::bridge::Bridge;
use crate::http::sse;

/// A page that watches.
struct Watcher {
    bridge: Bridge,
    page: Page,
    site: Arc<Site>,
    visitor: Box<str>,
    /// The last message that it got, or has from before.
    seen: Option<WebMessageId>,
    /// The answer of which it has heard each piece so far.
    hears: Option<TurnId>,
    is_behind: bool,
    ready: VecDeque<Bytes>,
}

/// The events of a page that has all messages up to `seen`.
pub(super) fn events(
    bridge: Bridge,
    page: Page,
    (site, visitor): (Arc<Site>, Box<str>),
    seen: Option<WebMessageId>,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let ready = VecDeque::new();
    let watcher = Watcher { bridge, page, site, visitor, seen, hears: None, is_behind: true, ready };
    stream::unfold(watcher, |mut watcher| async move {
        let wire = watcher.next().await?;
        Some((wire, watcher))
    })
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(wire) = self.ready.pop_front() {
                return Some(wire);
            }
            if std::mem::take(&mut self.is_behind) {
                self.catch_up().await?;
                continue;
            }
            if let Some(Writing { turn, text }) = self.page.writing.take() {
                self.begin(turn);
                if !text.is_empty() {
                    self.write(turn, &text);
                }
                continue;
            }
            match self.page.signs.recv().await {
                Ok(Sign::Stored) => self.is_behind = true,
                Ok(Sign::Began(turn)) => {
                    // The message that it answers is stored, and comes first.
                    self.catch_up().await?;
                    self.begin(turn);
                }
                Ok(Sign::Piece(turn, text)) if self.hears == Some(turn) => self.write(turn, &text),
                Ok(Sign::Piece(..)) => {}
                Ok(Sign::Ended) => self.ready.push_back(sse::event("typing", &json!({ "on": false }))),
                Err(RecvError::Lagged(_)) => (self.is_behind, self.hears) = (true, None),
                Ok(Sign::Closed) | Err(RecvError::Closed) => return None,
            }
        }
    }

    /// An answer is being written.
    fn begin(&mut self, turn: TurnId) {
        self.hears = Some(turn);
        self.ready.push_back(sse::event("typing", &json!({ "on": true })));
    }

    /// A piece of it.
    fn write(&mut self, turn: TurnId, text: &str) {
        self.ready.push_back(sse::event("delta", &json!({ "id": turn, "text": text })));
    }

    /// Reads what it has not got. `None` when the world is gone: the page comes back.
    async fn catch_up(&mut self) -> Option<()> {
        let (site, visitor) = (self.site.name.clone(), self.visitor.clone());
        let list = ListWebMessages { site, visitor, after: self.seen };
        for WebMessageView { id, message } in self.bridge.ask(list).await.ok()? {
            self.seen = Some(id);
            let mut wire = format!("id: {id}\n").into_bytes();
            wire.extend_from_slice(&sse::event("message", &WebMessageItem::from(message)));
            self.ready.push_back(wire.into());
        }
        Some(())
    }
}
