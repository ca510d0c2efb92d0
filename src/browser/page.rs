//! One page, in a browser context of its own: cookies and storage are shared with no other page, and end with it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use agentsvc_components::kernel::holder::Holder;
use agentsvc_systems::browser::limits::{BROWSER_NOTES_MAX, BROWSER_REQUESTS_MAX};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

use super::cdp::{CallError, Connection};
use super::chromium::{COMMAND_TIME_MAX, Chromium, Routes, attach_all, send};
use super::config::Browser;
use super::relay::Posts;
use crate::kernel::egress::Web;

/// How long a page may take to begin to load something else after it was acted on.
const BEGIN_TIME_MAX: Duration = Duration::from_millis(400);
/// Characters of a dialog's text or an address that are shown.
const NOTE_CHARS_MAX: usize = 300;

/// How far a page has loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// It loads.
    is_loading: bool,
    /// How often it began to.
    begun: u64,
    /// Its process has ended.
    is_crashed: bool,
    /// It was closed.
    is_closed: bool,
}

/// What the agent that acts may reach.
#[derive(Clone)]
pub(super) struct Grant {
    pub(super) holder: Holder,
    pub(super) network: Arc<[Box<str>]>,
}

/// A page.
pub(super) struct Page {
    pub(super) connection: Connection,
    pub(super) context: String,
    pub(super) target: String,
    pub(super) session: String,
    pub(super) web: Web,
    pub(super) timeout: Duration,
    pub(super) grant: Mutex<Grant>,
    /// Whose browser it is in, and of whose share.
    pub(super) holder: Holder,
    routes: Weak<Routes>,
    /// One call acts at a time.
    turn: tokio::sync::Mutex<()>,
    /// Calls that act or wait for their turn, and since when there has been one without a pause.
    uses: Mutex<(usize, Instant)>,
    /// Requests that may be under way.
    pub(super) requests: Arc<Semaphore>,
    /// Memory for what it sends.
    pub(super) posts: Posts,
    load: watch::Sender<Load>,
    /// What the next result tells.
    notes: Mutex<VecDeque<String>>,
    /// A window that it wanted to open.
    window: Mutex<Option<String>>,
    used: Mutex<Instant>,
}

/// A call acts on a page, or waits for its turn, until this is dropped.
pub(super) struct InUse<'p>(&'p Page);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.uses.lock().0 -= 1;
    }
}

impl Page {
    /// Opens an empty one.
    pub(super) async fn open(
        chromium: &Chromium,
        settings: &Browser,
        web: Web,
        grant: Grant,
    ) -> Result<Arc<Self>, CallError> {
        let connection = chromium.connection.clone();
        let of_browser =
            async |method: &str, params: Value| connection.call("", method, &params, COMMAND_TIME_MAX).await;
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let made = of_browser("Target.createBrowserContext", json!({ "disposeOnDetach": true })).await?;
        let context = text(&made, "browserContextId");
        let (width, height) = (settings.viewport_width, settings.viewport_height);
        let wanted = json!({ "url": "about:blank", "browserContextId": context, "width": width, "height": height });
        let target = text(&of_browser("Target.createTarget", wanted).await?, "targetId");
        let attach = json!({ "targetId": target, "flatten": true });
        let session = text(&of_browser("Target.attachToTarget", attach).await?, "sessionId");
        let deny = json!({ "behavior": "deny", "browserContextId": context });
        of_browser("Browser.setDownloadBehavior", deny).await?;
        of_browser("Browser.grantPermissions", json!({ "permissions": [], "browserContextId": context })).await?;
        let page = Arc::new(Self {
            connection: connection.clone(),
            context,
            target,
            session,
            web,
            timeout: Duration::from_secs(settings.timeout_secs),
            holder: grant.holder,
            routes: Arc::downgrade(&chromium.routes),
            grant: Mutex::new(grant),
            turn: tokio::sync::Mutex::default(),
            uses: Mutex::new((0, Instant::now())),
            requests: Arc::new(Semaphore::new(BROWSER_REQUESTS_MAX)),
            posts: chromium.posts.clone(),
            load: watch::Sender::default(),
            notes: Mutex::default(),
            window: Mutex::default(),
            used: Mutex::new(Instant::now()),
        });
        chromium.routes.add(&page.session, &page);
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        for (method, params) in [
            ("Fetch.enable", json!({ "patterns": [{ "urlPattern": "*" }] })),
            ("Page.enable", json!({})),
            ("Target.setAutoAttach", attach_all()),
            ("Emulation.setDeviceMetricsOverride", size),
        ] {
            page.call(method, params).await?;
        }
        Ok(page)
    }

    /// Sends a command of the page.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.connection.call(&self.session, method, &params, self.timeout).await
    }

    /// Closes it with its cookies and storage.
    pub(super) fn close(&self) {
        if let Some(routes) = self.routes.upgrade() {
            routes.remove(self);
        }
        self.load.send_modify(|load| load.is_closed = true);
        let context = json!({ "browserContextId": self.context });
        send(&self.connection, String::new(), "Target.disposeBrowserContext", context);
    }

    /// Has it ended, by itself or with its browser?
    pub(super) fn is_gone(&self) -> bool {
        self.connection.is_closed() || self.load.borrow().is_crashed
    }

    /// Did its process end while the browser goes on?
    pub(super) fn is_crashed(&self) -> bool {
        self.load.borrow().is_crashed
    }

    pub(super) fn crashed(&self) {
        self.load.send_modify(|load| (load.is_crashed, load.is_loading) = (true, false));
    }

    /// Ends when the page is closed or has crashed.
    pub(super) async fn ended(&self) {
        let mut load = self.load.subscribe();
        let _ended = load.wait_for(|load| load.is_closed || load.is_crashed).await;
    }

    /// A call is about to act. It stays in use from the first to the last of those that follow each other without a pause.
    pub(super) fn begin_use(&self, now: Instant) -> InUse<'_> {
        let mut uses = self.uses.lock();
        if uses.0 == 0 {
            uses.1 = now;
        }
        uses.0 += 1;
        InUse(self)
    }

    /// Waits until no other call acts.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// Since when it has been in use; `None` while nobody uses it.
    pub(super) fn in_use_since(&self) -> Option<Instant> {
        let (count, since) = *self.uses.lock();
        (count > 0).then_some(since)
    }

    pub(super) fn touch(&self) {
        *self.used.lock() = Instant::now();
    }

    pub(super) fn used(&self) -> Instant {
        *self.used.lock()
    }

    /// Tells the model with the next result.
    pub(super) fn note(&self, text: &str) {
        let mut notes = self.notes.lock();
        if notes.len() >= BROWSER_NOTES_MAX {
            notes.pop_front();
        }
        notes.push_back(text.chars().take(NOTE_CHARS_MAX).collect());
    }

    /// What is to be told.
    pub(super) fn take_notes(&self) -> Vec<String> {
        self.notes.lock().drain(..).collect()
    }

    /// The address of a window that it wanted to open meanwhile.
    pub(super) fn take_window(&self) -> Option<String> {
        self.window.lock().take()
    }

    /// Something happened in it.
    pub(super) fn told(&self, session: &str, method: &str, params: &Value) {
        let is_main = session == self.session && params["frameId"].as_str() == Some(&self.target);
        match method {
            "Page.frameStartedLoading" if is_main => {
                self.load.send_modify(|load| (load.is_loading, load.begun) = (true, load.begun + 1));
            }
            "Page.frameStoppedLoading" if is_main => self.load.send_modify(|load| load.is_loading = false),
            "Inspector.targetCrashed" if session == self.session => self.crashed(),
            "Page.windowOpen" => *self.window.lock() = params["url"].as_str().map(str::to_owned),
            "Page.javascriptDialogOpening" => {
                let (kind, text) = (params["type"].as_str(), params["message"].as_str().unwrap_or_default());
                let leaves = kind == Some("beforeunload");
                self.note(&format!("The page showed a dialog ({}), which was closed: {text}", kind.unwrap_or("alert")));
                let answer = json!({ "accept": leaves });
                send(&self.connection, session.to_owned(), "Page.handleJavaScriptDialog", answer);
            }
            _ => {}
        }
    }

    /// How often it has begun to load.
    pub(super) fn begun(&self) -> u64 {
        self.load.borrow().begun
    }

    /// Waits until it has loaded what it began to after it had begun `begun` times; soon if it begins nothing. False when it
    /// still loads.
    pub(super) async fn settle(&self, begun: u64) -> bool {
        let mut load = self.load.subscribe();
        let ends = |load: &Load| load.is_crashed || load.is_closed;
        let begins = load.wait_for(|load| load.begun > begun || ends(load));
        if tokio::time::timeout(BEGIN_TIME_MAX, begins).await.is_err() {
            return true;
        }
        let stops = load.wait_for(|load| !load.is_loading || ends(load));
        tokio::time::timeout(self.timeout, stops).await.is_ok()
    }
}
