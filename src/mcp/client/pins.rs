//! What servers list is compared with what was accepted, which the world keeps. Nothing is offered before.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::mcp::PinnedTool;
use agentsvc_components::{Actor, Timestamp};
use agentsvc_systems::mcp::{FindMcpPin, ForgetMcpTools, FoundPin, ListMcpPins, ListedTool, NoteMcpTools, ToolChanges};
use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::registry::Registry;
use super::review::{Listing, Offer, judge, some_of, source_of};
use super::server::Server;
use super::session::Described;

/// Lists that are scanned at once.
static SCANS: Semaphore = Semaphore::const_new(1);
/// Time until the world is asked again when it does not answer.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(200);
/// How often the world may refuse a list.
const REFUSALS_MAX: u32 = 5;
/// How often a comparison is tried that no list of the server causes.
const SETTLE_TRIES_MAX: u32 = 50;

impl Registry {
    /// Takes what a server listed, and offers what is accepted of it. Waits for the world as long as it takes.
    pub(super) async fn take_list(&self, server: &Server, tools: Vec<Described>) {
        let (name, policy) = (server.name().to_owned(), self.injection);
        // Err: the daemon ends.
        let Ok(permit) = SCANS.acquire().await else { return };
        let before = server.listing();
        let judged = tokio::task::spawn_blocking(move || {
            let is_known = before.is_of(&source_of(&tools));
            (!is_known).then(|| judge(&name, tools, policy))
        });
        match judged.await {
            Ok(Some(listing)) => server.set_listing(listing),
            Ok(None) => {}
            // What could not be looked at is not offered.
            Err(_) => server.set_listing(Listing::default()),
        }
        drop(permit);
        while !self.settle_tools(server).await {
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
    }

    /// Offers what is accepted of a server's list. False when the world does not answer.
    pub(super) async fn settle_tools(&self, server: &Server) -> bool {
        let _one_by_one = server.settling.lock().await;
        let listing = server.listing();
        let Some((accepted, accepted_at)) = self.accepted(server, &listing).await else { return false };
        let offer = Offer::of(listing, &accepted, accepted_at);
        let before = server.offer();
        if let Some(review) = offer.review.as_ref().filter(|review| before.review.as_ref() != Some(review)) {
            let names = [&review.new[..], &review.changed[..]].concat();
            server.warn(&format!("new or changed tools wait until you accept them: {}", some_of(&names)));
        }
        server.set_offer(offer);
        // Many servers that come up together cost one list of all tools.
        self.gather.done(|| self.offer()).await;
        true
    }

    /// The same, tried for ten seconds while the world does not answer: no list of the server may come that tries it again.
    pub(super) async fn settle_tools_in_time(&self, server: &Server) {
        for _ in 0..SETTLE_TRIES_MAX {
            if self.settle_tools(server).await {
                return;
            }
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
        server.warn("the daemon was too busy to compare its tools with those that were accepted; reconnect it");
    }

    /// What is accepted of a server's tools once the world knows of this list, and since when. `None` when it does not answer.
    async fn accepted(&self, server: &Server, listing: &Listing) -> Option<(Vec<PinnedTool>, Timestamp)> {
        let bridge = self.api.bridge.acting_as(Actor::System);
        let find = FindMcpPin(server.name().to_owned());
        let FoundPin { tools: pinned, accepted_at, is_strict } = bridge.ask(find.clone()).await.ok()?;
        let listed = listing.listed();
        if let Some(pinned) = &pinned {
            let changes = ToolChanges::between(pinned, &listed);
            if changes.is_accepted() {
                return Some((pinned.clone(), accepted_at));
            }
            if !is_strict {
                let names = [&changes.new[..], &changes.changed[..]].concat();
                server.warn(&format!("it has new or changed tools: {}", some_of(&names)));
            }
        }
        let note = NoteMcpTools { server: server.name().to_owned(), hash: listing.hash.clone(), tools: listed.clone() };
        for _ in 0..REFUSALS_MAX {
            match bridge.ask(note.clone()).await {
                Ok(_) => {
                    let FoundPin { tools, accepted_at, .. } = bridge.ask(find).await.ok()?;
                    return Some((tools.unwrap_or_default(), accepted_at));
                }
                Err(refusal) => tracing::debug!(server = server.name(), %refusal, "a list of tools is not stored yet"),
            }
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
        server.warn("the list of its tools could not be stored");
        if is_strict {
            return Some((pinned.unwrap_or_default(), accepted_at));
        }
        let pin = |tool: ListedTool| PinnedTool { name: tool.name.into(), hash: tool.hash.into() };
        // It is not known since when they are as they are: no call of before is repeated.
        Some((listed.into_iter().map(pin).collect(), Timestamp(i64::MAX)))
    }

    /// Compares the lists of all servers with what is accepted by now: the world or the policy is another one.
    pub(super) fn settle_all(self: &Arc<Self>) {
        let of = Arc::clone(self);
        drop(tokio::spawn(async move {
            let servers = of.servers();
            // One that has not listed its tools yet does so when it is connected.
            let listed = servers.iter().filter(|server| server.listing().is_made());
            join_all(listed.map(|server| of.settle_tools_in_time(server))).await;
        }));
    }
}

/// Forgets what was accepted of servers that are not there any more.
pub(super) async fn forget_others(bridge: &Bridge, is_there: impl Fn(&str) -> bool) {
    let bridge = bridge.acting_as(Actor::System);
    let Ok(pinned) = bridge.ask(ListMcpPins).await else { return };
    let gone: Vec<String> = pinned.into_iter().filter(|name| !is_there(name)).collect();
    for name in gone {
        // One that is refused is forgotten the next time.
        let _refused = bridge.ask(ForgetMcpTools(name)).await;
    }
}
