//! One server: started, held, checked, and started again when it ends.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::mcp::servers::shape::ServerHealth;
use agentsvc_api::mcp::servers::sign_in::SignInStatus;
use arc_swap::ArcSwap;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::asks::Places;
use super::backoff::rest;
use super::call::{self, Caller};
use super::config::Extensions;
use super::connection::{Answer, Connection, Failure};
use super::definition::Definition;
use super::incoming::LogQuota;
use super::link::Link;
use super::pace::Pace;
use super::review::{Listing, Offer};
use super::session::{self, Described};
use super::sign_ins::not_required;
use super::state::State;
use super::stderr::Tail;
use super::wire::{self, Authorize, Means, Opened, Transport};
use crate::kernel::settings::Settings;
use crate::mcp::oauth::{SignIn, Signing};

/// Time that a program may take to end after its output did.
const END_TIME_MAX: Duration = Duration::from_secs(1);
/// Time that a server may take to answer a health check.
const CHECK_TIME_MAX: Duration = Duration::from_secs(10);
/// Health checks that may fail one after the other.
const CHECKS_FAILED_MAX: u32 = 3;
/// What is shown in the place of a secret.
const MASK: &str = "***";
/// Secrets that are shorter are not looked for: they are parts of words.
const SECRET_BYTES_MIN: usize = 6;

/// A server.
pub(super) struct Server {
    definition: Definition,
    transport: Result<Transport, String>,
    /// How it is signed in to, where it may ask for that.
    sign_in: Option<Arc<SignIn>>,
    settings: Settings,
    state: Mutex<State>,
    /// Its tools as they are offered; they stay while it is restarted.
    offer: ArcSwap<Offer>,
    /// What it listed last.
    listing: ArcSwap<Listing>,
    /// What it lists is compared with what was accepted, one list after the other.
    pub(super) settling: tokio::sync::Mutex<()>,
    /// What may still be written to the log of its tools.
    findings: Mutex<LogQuota>,
    /// The end of its error output.
    tail: Tail,
    /// Somebody wants another connection.
    again: Notify,
    /// Attempts that are over: it was connected, or was not.
    attempts: watch::Sender<u64>,
    /// The model calls that it asks for, so many at once.
    pub(super) samplings: Places,
}

/// An attempt to reach a server.
pub(super) type Opening = BoxFuture<'static, Result<Opened, String>>;

/// How a run ended.
enum End {
    /// Somebody wants another one.
    Asked,
    /// By itself: why.
    Why(String),
}

/// Ends what waits for a connection when nothing carries it any more.
struct Closing<'a>(&'a Server, Connection);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.1.close();
        self.0.state.lock().stopped();
    }
}

impl Server {
    /// The server of this definition; its directory lies in `directories`.
    pub(super) fn new(
        definition: Definition,
        directories: &Path,
        sign_in: Option<Arc<SignIn>>,
        settings: Settings,
    ) -> Self {
        let signing = sign_in.clone().map(|sign_in| Arc::new(Signing(sign_in)) as Arc<dyn Authorize>);
        let transport = definition.transport(directories, signing);
        Self {
            definition,
            transport,
            sign_in,
            settings,
            state: Mutex::default(),
            offer: ArcSwap::default(),
            listing: ArcSwap::default(),
            settling: tokio::sync::Mutex::default(),
            findings: Mutex::default(),
            tail: Tail::default(),
            again: Notify::new(),
            attempts: watch::Sender::default(),
            samplings: Places::default(),
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.definition.name
    }

    /// What it is.
    pub(super) const fn definition(&self) -> &Definition {
        &self.definition
    }

    /// How it is signed in to, as far as that is known.
    pub(super) fn auth(&self) -> SignInStatus {
        self.sign_in.as_ref().map_or_else(not_required, |sign_in| sign_in.shown())
    }

    /// What signs in to it, where it may ask for that.
    pub(super) const fn sign_in(&self) -> Option<&Arc<SignIn>> {
        self.sign_in.as_ref()
    }

    /// Is it a program of this machine?
    pub(super) const fn is_program(&self) -> bool {
        matches!(self.transport, Ok(Transport::Stdio(_)))
    }

    /// Its tools as they are offered.
    pub(super) fn offer(&self) -> Arc<Offer> {
        self.offer.load_full()
    }

    /// Offers these tools from now on.
    pub(super) fn set_offer(&self, offer: Offer) {
        self.offer.store(Arc::new(offer));
    }

    /// What it listed last.
    pub(super) fn listing(&self) -> Arc<Listing> {
        self.listing.load_full()
    }

    /// Takes what it listed.
    pub(super) fn set_listing(&self, listing: Listing) {
        if let Some(tools) = listing.findings() {
            self.warn(&format!("tools look like prompt injections: {tools}"));
        }
        self.listing.store(Arc::new(listing));
    }

    /// Writes something about its tools to its log and to that of the daemon.
    pub(super) fn warn(&self, text: &str) {
        if self.findings.lock().take().is_ok() {
            tracing::warn!(server = self.name(), "MCP server: {text}");
            self.tail.add(format!("\nagentsvc: {text}\n").as_bytes());
        }
    }

    /// Calls something that it has: once, whatever comes of it.
    pub(super) async fn call(
        &self,
        called: &Described,
        arguments: Map<String, Value>,
        caller: Caller,
    ) -> Result<Answer, Failure> {
        let connection = match &self.state.lock().link {
            Link::Up(connection) | Link::Starting(Some(connection)) => connection.clone(),
            Link::Starting(None) => {
                return Err(Failure::Unanswered("it is not connected, because it is starting".to_owned()));
            }
            Link::Down(why) => return Err(Failure::Unanswered(format!("it is not connected, because {why}"))),
        };
        let result = call::call(&connection, called, arguments, caller, self.definition.timeout).await;
        if !matches!(result, Err(Failure::Unanswered(_))) {
            self.state.lock().answered();
        }
        result
    }

    /// How it is.
    pub(super) fn health(&self) -> ServerHealth {
        let state = self.state.lock();
        ServerHealth {
            id: self.name().to_owned(),
            status: match state.link {
                Link::Up(_) => "connected",
                Link::Starting(_) => "connecting",
                Link::Down(_) => "disconnected",
            },
            tool_count: self.offer.load().tools.len(),
            tools_to_review: self.offer.load().waiting(),
            last_ok: state.last_ok,
            last_error: state.last_error.clone(),
            consecutive_failures: state.failures,
            reconnecting: state.reconnecting,
            reconnect_attempts: state.reconnect_attempts,
            connected_since: state.connected_since,
            auth: self.auth(),
        }
    }

    /// Why it is not connected; `None` when it is, or is starting.
    pub(super) fn fault(&self) -> Option<String> {
        match &self.state.lock().link {
            Link::Down(why) => Some(why.clone()),
            Link::Up(_) | Link::Starting(_) => None,
        }
    }

    /// The end of its error output, without its secrets.
    pub(super) fn log(&self) -> String {
        let mut text = self.tail.text();
        for secret in self.definition.secrets().filter(|secret| secret.len() >= SECRET_BYTES_MIN) {
            if text.contains(secret) {
                text = text.replace(secret, MASK);
            }
        }
        text
    }

    /// Ends the connection that there is, and begins another at once.
    pub(super) fn reconnect(&self) {
        self.again.notify_one();
    }

    /// Hears of the end of each attempt from now on.
    pub(super) fn attempts(&self) -> watch::Receiver<u64> {
        self.attempts.subscribe()
    }

    /// Is it the first time that it is started, and not known yet whether it is there?
    pub(super) fn is_new(&self) -> bool {
        *self.attempts.borrow() == 0
    }

    /// Reaches it as its definition says.
    pub(super) fn open(&self, means: &Means) -> Opening {
        let (name, transport, means) = (self.definition.name.clone(), self.transport.clone(), means.clone());
        Box::pin(async move { wire::open(&name, transport?, &means).await })
    }

    /// Keeps it running, for ever. `open` reaches it, and `offer` gets each list of its tools.
    pub(super) async fn keep(
        &self,
        open: impl Fn() -> Opening,
        offer: impl Fn(Vec<Described>) -> BoxFuture<'static, ()>,
    ) {
        let mut failures = 0;
        loop {
            self.state.lock().begin();
            // A panic is one more way to end: what keeps a server must not end with it.
            let why = match AssertUnwindSafe(self.run(open(), &offer)).catch_unwind().await {
                Ok(End::Asked) => {
                    failures = 0;
                    continue;
                }
                Ok(End::Why(why)) => why,
                Err(_) => "an internal error ended it".to_owned(),
            };
            failures = if self.state.lock().was_settled() { 0 } else { failures };
            let rest = self.rest(failures);
            self.note_down(why, rest, failures);
            let pause = async {
                match rest {
                    Some(rest) => tokio::time::sleep(rest).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = pause => failures += 1,
                () = self.again.notified() => failures = 0,
            }
        }
    }

    /// How long it rests before it is started again; `None`: until somebody wants it.
    fn rest(&self, failures: u32) -> Option<Duration> {
        let extensions = self.settings.get::<Extensions>();
        // It is asked again when the user has signed in.
        let needs_user = self.sign_in.as_ref().is_some_and(|sign_in| sign_in.is_needed());
        let may_start = extensions.auto_reconnect && self.transport.is_ok() && !needs_user;
        let most = Duration::from_secs(extensions.reconnect_max_backoff_secs);
        (may_start && failures < extensions.reconnect_max_attempts).then(|| rest(failures, most))
    }

    fn note_down(&self, why: String, rest: Option<Duration>, failures: u32) {
        let (stderr, restart_secs) = (self.log(), rest.map(|rest| rest.as_secs()));
        tracing::warn!(server = self.name(), %why, stderr, restart_secs, "an MCP server ended");
        self.state.lock().down(why, rest, failures);
        self.attempts.send_modify(|count| *count += 1);
    }

    /// Runs it once.
    async fn run(&self, open: Opening, offer: &impl Fn(Vec<Described>) -> BoxFuture<'static, ()>) -> End {
        let opened = tokio::select! {
            opened = open => opened,
            () = self.again.notified() => return End::Asked,
        };
        let Opened { connection, mut carry, program } = match opened {
            Ok(opened) => opened,
            Err(why) => return End::Why(why.trim_end_matches('.').to_owned()),
        };
        connection.offer(self.definition.asks.offers());
        let closing = Closing(self, connection.clone());
        let (stderr, process) = program.map_or((None, None), |program| (Some(program.stderr), Some(program.process)));
        let mut is_over = stderr.is_none();
        let end = {
            let fill = async {
                if let Some(stderr) = stderr {
                    self.tail.fill(stderr).await;
                }
            };
            let converse = self.converse(&connection, offer);
            tokio::pin!(fill, converse);
            loop {
                tokio::select! {
                    () = &mut fill, if !is_over => is_over = true,
                    why = &mut carry => break End::Why(why),
                    why = &mut converse => break End::Why(why),
                    () = self.again.notified() => break End::Asked,
                }
            }
        };
        drop(closing);
        match (end, process) {
            (End::Why(why), Some(mut process)) => {
                let exit = tokio::time::timeout(END_TIME_MAX, process.ended()).await;
                End::Why(exit.map_or_else(|_| why.clone(), |exit| format!("{why}: {exit}")))
            }
            (end, _) => end,
        }
    }

    /// Talks with it until something is wrong with it.
    async fn converse(
        &self,
        connection: &Connection,
        offer: &impl Fn(Vec<Described>) -> BoxFuture<'static, ()>,
    ) -> String {
        let features = match session::initialize(connection).await {
            Ok(features) => features,
            Err(failure) => return self.reason("initialize", failure),
        };
        let mut pace = Pace::default();
        let follow = async {
            loop {
                match session::describe(connection, features).await {
                    Ok(tools) => {
                        self.note_answering(connection);
                        offer(tools).await;
                    }
                    Err(failure) => return self.reason("tools/list", failure),
                }
                self.note_up(connection);
                tokio::select! {
                    () = connection.tools_changed() => tokio::time::sleep(pace.rest(Instant::now())).await,
                    why = self.watch(connection) => return why,
                }
            }
        };
        tokio::pin!(follow);
        tokio::select! {
            why = &mut follow => why,
            () = session::subscribe(connection) => follow.await,
        }
    }

    /// A tool that is offered can be called at once, before all that follows it is done.
    fn note_answering(&self, connection: &Connection) {
        let link = &mut self.state.lock().link;
        if matches!(link, Link::Starting(_)) {
            *link = Link::Starting(Some(connection.clone()));
        }
    }

    fn note_up(&self, connection: &Connection) {
        self.state.lock().connected(connection);
        tracing::info!(server = self.name(), tools = self.offer().tools.len(), "an MCP server is connected");
        self.attempts.send_modify(|count| *count += 1);
    }

    /// Looks again and again whether it still answers. Gives why it does not.
    async fn watch(&self, connection: &Connection) -> String {
        loop {
            let interval = self.settings.get::<Extensions>().health_check_interval_secs;
            tokio::time::sleep(Duration::from_secs(interval)).await;
            let answer = connection.request("ping", json!({}), CHECK_TIME_MAX).await;
            let mut state = self.state.lock();
            match answer {
                // One that does not know the method is there, too.
                Ok(_) | Err(Failure::Refused(_)) => {
                    state.answered();
                    state.failures = 0;
                }
                Err(Failure::Unanswered(why)) => {
                    if state.unanswered(why) >= CHECKS_FAILED_MAX {
                        return format!("it did not answer {CHECKS_FAILED_MAX} health checks");
                    }
                }
            }
        }
    }

    /// A failure in our words: agents read them.
    fn reason(&self, method: &str, failure: Failure) -> String {
        match failure {
            Failure::Unanswered(why) => why,
            Failure::Refused(said) => {
                tracing::warn!(server = self.name(), method, said, "an MCP server refused a request");
                format!("it refused `{method}`")
            }
        }
    }
}
