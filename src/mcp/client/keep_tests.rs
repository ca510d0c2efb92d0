//! Servers that end, hang and come back, in virtual time: when they are started again, and what readers of the API see.

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::mcp::servers::shape::ServerHealth;
use agentsvc_components::Timestamp;
use agentsvc_components::mcp::PinnedTool;
use agentsvc_systems::injection::InjectionPolicy;
use agentsvc_systems::mcp::ListedTool;
use futures_util::FutureExt;
use serde_json::{Map, json};
use tokio::io::duplex;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::call::Caller;
use super::config::{Extensions, McpClient};
use super::connection::Failure;
use super::definition::Sources;
use super::review::{Offer, judge};
use super::server::Server;
use super::session::Described;
use super::tests::Peer;
use super::wire::{self, Opened};
use crate::kernel::config::Secret;
use crate::kernel::sandbox::config::ExecMode;
use crate::kernel::settings::Settings;
use crate::mcp::catalog::Catalog;

/// Seconds between starts of a server that never is there, with the default settings.
const RESTS: [u64; 10] = [5, 10, 20, 40, 80, 160, 300, 300, 300, 300];
/// Time between two health checks.
const CHECK_EVERY: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// A server that is kept running.
struct Kept {
    server: Arc<Server>,
    /// When it was started, with the other side where it can be.
    starts: mpsc::UnboundedReceiver<(Instant, Option<Peer>)>,
    attempts: watch::Receiver<u64>,
    task: AbortHandle,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Kept {
    /// With these settings; `can_start` says whether its program can.
    fn new(extensions: Extensions, can_start: bool) -> Self {
        let settings = Settings::default();
        settings.set(extensions);
        let sources = Sources {
            catalog: &Catalog::new("/none".into()),
            variable: &|_| None,
            unseal: &|text| Ok(Secret::new(text)),
            mode: ExecMode::Deny,
        };
        let config = McpClient { command: "run".into(), ..McpClient::default() };
        let definition = sources.configured("s", &config);
        let server = Arc::new(Server::new(definition, "/h".as_ref(), None, settings));
        let (started, starts) = mpsc::unbounded_channel();
        let open = move || {
            let (ours, theirs) = duplex(64 << 10);
            let peer = can_start.then(|| Peer::new(theirs));
            let _test_is_over = started.send((Instant::now(), peer));
            let (connection, carry) = wire::lines("s", ours);
            let opened = Opened { connection, carry: carry.boxed(), program: None };
            async move { if can_start { Ok(opened) } else { Err("it cannot start".to_owned()) } }.boxed()
        };
        let offering = Arc::clone(&server);
        let offer = move |tools| {
            let listing = Arc::new(judge("s", tools, InjectionPolicy::Mark));
            let pin = |tool: ListedTool| PinnedTool { name: tool.name.into(), hash: tool.hash.into() };
            let accepted: Vec<_> = listing.listed().into_iter().map(pin).collect();
            offering.set_offer(Offer::of(listing, &accepted, Timestamp(1)));
            async {}.boxed()
        };
        let (kept, attempts) = (Arc::clone(&server), server.attempts());
        let task = tokio::spawn(async move { kept.keep(open, offer).await }).abort_handle();
        Self { server, starts, attempts, task }
    }

    /// The next start.
    async fn start(&mut self) -> (Instant, Option<Peer>) {
        self.starts.recv().await.expect("it is kept")
    }

    /// The next start, with an answer to all that the daemon asks at the beginning.
    async fn connected(&mut self) -> (Instant, Peer) {
        let (at, peer) = self.start().await;
        let mut peer = peer.expect("it can start");
        peer.answer("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } })).await;
        assert_eq!(peer.next().await["method"], "notifications/initialized");
        let tool = json!({ "name": "a", "inputSchema": { "type": "object" } });
        peer.answer("tools/list", json!({ "tools": [tool] })).await;
        let health = self.attempted().await;
        assert_eq!((health.status, health.failures()), ("connected", (0, false, 0)));
        assert!(health.connected_since.is_some() && self.server.fault().is_none());
        (at, peer)
    }

    /// The state at the end of the next attempt, or of the connection.
    async fn attempted(&mut self) -> ServerHealth {
        self.attempts.changed().await.expect("it is kept");
        self.server.health()
    }

    /// The state when it is down next, and why it is.
    async fn down(&mut self, why: &str) -> ServerHealth {
        let health = self.attempted().await;
        assert_eq!((health.status, self.server.fault().as_deref()), ("disconnected", Some(why)));
        assert_eq!((health.last_error.as_deref(), health.connected_since), (Some(why), None));
        health
    }

    /// What a call of its tool gives while it is not there.
    async fn call(&self) -> String {
        let described = Described { name: "a".to_owned(), ..Described::default() };
        match self.server.call(&described, Map::new(), Caller::default()).await {
            Err(Failure::Unanswered(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Is it not started again, however long one waits?
    async fn rests_for_good(&mut self) -> bool {
        timeout(DAY, self.starts.recv()).await.is_err() && !self.server.health().reconnecting
    }
}

trait Failures {
    fn failures(&self) -> (u32, bool, u32);
}

impl Failures for ServerHealth {
    /// Failures, whether it is started again, and how often it was.
    fn failures(&self) -> (u32, bool, u32) {
        (self.consecutive_failures, self.reconnecting, self.reconnect_attempts)
    }
}

/// Answers the next health check, which comes in time.
async fn ping(peer: &mut Peer) {
    timeout(CHECK_EVERY + Duration::from_secs(1), peer.answer("ping", json!({}))).await.expect("a health check");
}

fn secs(since: Instant, at: Instant) -> u64 {
    at.duration_since(since).as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_start_is_tried_more_and_more_rarely_and_then_given_up() {
    let mut kept = Kept::new(Extensions::default(), false);
    assert_eq!((kept.server.health().status, kept.server.is_new()), ("connecting", true));
    assert_eq!(kept.call().await, "it is not connected, because it is starting");
    let mut before = kept.start().await.0;
    for (attempts, rest) in (0_u32..).zip(RESTS) {
        let health = kept.down("it cannot start").await;
        assert_eq!((health.failures(), kept.server.is_new()), ((attempts + 1, true, attempts), false));
        // Nothing waits for it meanwhile.
        assert_eq!(kept.call().await, "it is not connected, because it cannot start");
        let (at, _) = kept.start().await;
        assert_eq!(secs(before, at), rest);
        before = at;
    }
    assert_eq!(kept.down("it cannot start").await.failures(), (11, false, 10));
    assert!(kept.rests_for_good().await);
    // The operator wants it: it begins as at first.
    let now = Instant::now();
    kept.server.reconnect();
    assert_eq!(kept.start().await.0, now);
    assert_eq!(kept.down("it cannot start").await.failures(), (12, true, 0));
    assert_eq!(secs(now, kept.start().await.0), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_soon_after_it_was_there_rests_longer_each_time() {
    let mut kept = Kept::new(Extensions::default(), true);
    let (_, mut peer) = kept.connected().await;
    for (attempts, rest) in (0_u32..).zip(RESTS) {
        tokio::time::advance(Duration::from_secs(10)).await;
        let ended = Instant::now();
        drop(peer);
        let health = kept.down("it closed its output").await;
        assert_eq!((health.failures(), health.tool_count), ((1, true, attempts), 1), "its tools stay");
        assert_eq!(kept.call().await, "it is not connected, because it closed its output");
        let at;
        (at, peer) = kept.connected().await;
        assert_eq!(secs(ended, at), rest);
    }
    drop(peer);
    assert_eq!(kept.down("it closed its output").await.failures(), (1, false, 10));
    assert!(kept.rests_for_good().await);
    kept.server.reconnect();
    let (_, mut peer) = kept.connected().await;
    // One that was there for a minute begins as at first.
    ping(&mut peer).await;
    let ended = Instant::now();
    drop(peer);
    assert_eq!(kept.down("it closed its output").await.failures(), (1, true, 0));
    assert_eq!(secs(ended, kept.start().await.0), 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_at_its_start_is_given_up_too() {
    let mut kept = Kept::new(Extensions::default(), true);
    let (mut before, mut peer) = kept.start().await;
    for (attempts, rest) in (0_u32..).zip(RESTS) {
        assert_eq!(peer.as_mut().expect("it can start").next().await["method"], "initialize");
        assert_eq!((kept.server.health().status, kept.server.fault()), ("connecting", None));
        assert_eq!(kept.call().await, "it is not connected, because it is starting");
        let health = kept.down("it did not answer within 120 seconds").await;
        assert_eq!(health.failures(), (attempts + 1, true, attempts));
        let at;
        (at, peer) = kept.start().await;
        assert_eq!(secs(before, at), 120 + rest);
        before = at;
    }
    assert_eq!(kept.down("it did not answer within 120 seconds").await.failures(), (11, false, 10));
    assert!(kept.rests_for_good().await);
    // A reconnect does not wait for one that hangs.
    kept.server.reconnect();
    let (at, _peer) = kept.start().await;
    kept.server.reconnect();
    assert_eq!(kept.start().await.0, at);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_no_health_checks_is_started_again() {
    let mut kept = Kept::new(Extensions::default(), true);
    let (mut before, mut peer) = kept.connected().await;
    for (attempts, rest) in (0_u32..3).zip(RESTS) {
        for failed in 1..=2 {
            assert_eq!(peer.next().await["method"], "ping");
            assert_eq!(peer.next().await["method"], "notifications/cancelled");
            let health = kept.server.health();
            assert_eq!((health.status, health.consecutive_failures), ("connected", failed));
            assert_eq!(health.last_error.as_deref(), Some("it did not answer within 10 seconds"));
        }
        assert_eq!(peer.next().await["method"], "ping");
        let health = kept.down("it did not answer 3 health checks").await;
        assert_eq!(health.failures(), (4, true, attempts));
        let at;
        (at, peer) = kept.connected().await;
        assert_eq!(secs(before, at), 3 * 70 + rest);
        before = at;
    }
    // Two that fail and one that does not: nothing happens, and it was there.
    for _ in 0..2 {
        assert_eq!(peer.next().await["method"], "ping");
        assert_eq!(peer.next().await["method"], "notifications/cancelled");
    }
    ping(&mut peer).await;
    assert_eq!(peer.next().await["method"], "ping");
    assert_eq!(kept.server.health().failures(), (0, false, 0));
    for _ in 0..2 {
        assert_eq!(peer.next().await["method"], "notifications/cancelled");
        assert_eq!(peer.next().await["method"], "ping");
    }
    assert_eq!(kept.down("it did not answer 3 health checks").await.failures(), (4, true, 0));
}

#[tokio::test(start_paused = true)]
async fn reconnecting_by_hand_begins_at_once_and_is_all_there_is_where_nothing_else_does_it() {
    let mut kept = Kept::new(Extensions { auto_reconnect: false, ..Extensions::default() }, true);
    let (_, first) = kept.connected().await;
    let now = Instant::now();
    kept.server.reconnect();
    let (at, second) = kept.connected().await;
    assert_eq!(at, now);
    drop(first);
    assert_eq!(kept.server.health().status, "connected", "the end of the old one is none of the new one");
    drop(second);
    assert_eq!(kept.down("it closed its output").await.failures(), (1, false, 0));
    assert!(kept.rests_for_good().await);
    kept.server.reconnect();
    kept.connected().await;
}
