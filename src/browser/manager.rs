//! The browser of this daemon and the pages in it: one page for each session of an agent. It runs while pages are open.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::kernel::refusal::RefusalKind;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::session::GetSession;
use tokio::sync::Mutex;

use super::cdp::CallError;
use super::chromium::Chromium;
use super::config::Browser;
use super::executable::executable;
use super::page::{Grant, Page};
use crate::kernel::egress::Web;
use crate::kernel::sandbox::Commands;
use crate::kernel::settings::Settings;
use crate::tool::toolset::Context;

/// Time between two looks for pages that are not needed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time until a browser that failed is started again; twice as long each time.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// The longest such time.
const RESTART_AFTER_MAX: Duration = Duration::from_secs(300);
/// A browser that ran for so long has not failed at its start.
const RAN_WELL_AFTER: Duration = Duration::from_secs(60);

/// Who has a page.
pub(super) type Key = (AgentId, SessionId);

/// The browser and its pages.
pub(crate) struct BrowserManager {
    pub(super) settings: Settings,
    web: Web,
    commands: Commands,
    directory: PathBuf,
    inner: Mutex<Inner>,
    /// Browsers that were started.
    pub(super) starts: AtomicU64,
    /// Pages that are open.
    pub(super) open: AtomicUsize,
}

#[derive(Default)]
struct Inner {
    chromium: Option<(Chromium, Instant)>,
    pages: HashMap<Key, Arc<Page>>,
    failures: u32,
    rests_until: Option<Instant>,
    is_watched: bool,
}

impl BrowserManager {
    /// One that starts browsers in `directory`.
    pub(super) fn new(settings: Settings, web: Web, commands: Commands, directory: PathBuf) -> Arc<Self> {
        let (inner, starts, open) = (Mutex::default(), AtomicU64::new(0), AtomicUsize::new(0));
        Arc::new(Self { settings, web, commands, directory, inner, starts, open })
    }

    /// The page of the call's session. With `open`, one is opened where there is none.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(super) async fn page(self: &Arc<Self>, context: &Context, open: bool) -> Result<Arc<Page>, String> {
        let run = &context.run;
        let network = run.manifest.manifest.capabilities.network.clone().into();
        let grant = Grant { holder: run.holder, network };
        let key = (run.agent, run.session);
        let mut inner = self.inner.lock().await;
        if let Some(page) = inner.pages.get(&key).cloned() {
            if !page.is_gone() {
                // The manifest may have changed.
                *page.grant.lock() = grant;
                page.touch();
                return Ok(page);
            }
            inner.forget(&key);
            if !open {
                return Err(gone(&page));
            }
        }
        if !open {
            return Err("No page is open. Call browser_navigate first.".to_owned());
        }
        inner.clear_if_ended();
        let settings = self.settings.get::<Browser>();
        inner.make_space(settings.max_sessions)?;
        self.started(&mut inner).await?;
        let Some((chromium, _)) = &inner.chromium else { return Err("The browser ended.".to_owned()) };
        let page = Page::open(chromium, &settings, self.web.clone(), grant).await;
        let page = page.map_err(|error| format!("A page could not be opened: {}", sentence(&error)))?;
        inner.pages.insert(key, Arc::clone(&page));
        self.open.store(inner.pages.len(), Ordering::Relaxed);
        if !std::mem::replace(&mut inner.is_watched, true) {
            drop(tokio::spawn(watch(Arc::clone(self), context.parts.bridge.clone())));
        }
        Ok(page)
    }

    /// Starts the browser where it does not run.
    async fn started(&self, inner: &mut Inner) -> Result<(), String> {
        if inner.chromium.is_some() {
            return Ok(());
        }
        if let Some(left) = inner.rests_until.and_then(|until| until.checked_duration_since(Instant::now())) {
            return Err(format!("The browser failed; it can be started again in {} seconds.", left.as_secs() + 1));
        }
        let number = self.starts.fetch_add(1, Ordering::Relaxed);
        let settings = self.settings.clone();
        let found = tokio::task::spawn_blocking(move || executable(&settings)).await;
        let file = found.map_err(|_| "The browser could not be looked for.".to_owned())?;
        let file = file.map_err(|why| format!("There is no browser: {why}."))?;
        match Chromium::start(&self.commands, &file, self.directory.join(number.to_string())).await {
            Ok(chromium) => {
                inner.chromium = Some((chromium, Instant::now()));
                Ok(())
            }
            Err(why) => {
                inner.failed();
                Err(format!("The browser could not be started: {why}."))
            }
        }
    }

    /// Closes the page of a session. False when there is none.
    pub(super) async fn close(&self, key: &Key) -> bool {
        let mut inner = self.inner.lock().await;
        let was_open = inner.forget(key);
        self.open.store(inner.pages.len(), Ordering::Relaxed);
        was_open
    }

    /// What the failure of a call means, for the model. A page that does not respond is closed.
    pub(super) async fn failed(&self, key: &Key, page: &Arc<Page>, error: CallError) -> String {
        match error {
            CallError::Refused(_) => format!("The page refused: {}", sentence(&error)),
            CallError::Closed => {
                self.close(key).await;
                gone(page)
            }
            CallError::Timeout(secs) => {
                let text = if page.is_gone() {
                    gone(page)
                } else {
                    format!(
                        "The page did not respond within {secs} seconds and was closed. Call browser_navigate to open it again."
                    )
                };
                self.close(key).await;
                text
            }
        }
    }

    /// The page of these agents that was used last.
    pub(super) async fn last_used(&self, agents: &[AgentId]) -> Option<Arc<Page>> {
        let inner = self.inner.lock().await;
        let of_them = inner.pages.iter().filter(|((agent, _), page)| agents.contains(agent) && !page.is_gone());
        of_them.max_by_key(|(_, page)| page.used()).map(|(_, page)| Arc::clone(page))
    }

    /// Closes what is not needed any more. False once nothing is open.
    async fn look(&self, bridge: &Bridge) -> bool {
        let keys: Vec<Key> = self.inner.lock().await.pages.keys().copied().collect();
        let mut ended = Vec::new();
        for key in keys {
            // A client that calls a tool by itself has no session.
            let is_gone = !key.1.0.is_nil()
                && bridge
                    .ask(GetSession::ById(key.1))
                    .await
                    .is_err_and(|refusal| refusal.kind == RefusalKind::NotFound);
            if is_gone {
                ended.push(key);
            }
        }
        let idle = Duration::from_secs(self.settings.get::<Browser>().idle_secs);
        let mut inner = self.inner.lock().await;
        let is_idle = |page: &Page| page.used().elapsed() >= idle && page.turn.try_lock().is_ok();
        let unused = inner.pages.iter().filter(|(_, page)| page.is_crashed() || is_idle(page)).map(|(key, _)| *key);
        ended.extend(unused.collect::<Vec<_>>());
        for key in ended {
            inner.forget(&key);
        }
        inner.clear_if_ended();
        self.open.store(inner.pages.len(), Ordering::Relaxed);
        if inner.pages.is_empty() {
            inner.chromium = None;
            inner.is_watched = false;
        }
        inner.is_watched
    }
}

impl Inner {
    /// Closes a page.
    fn forget(&mut self, key: &Key) -> bool {
        let Some(page) = self.pages.remove(key) else { return false };
        if let Some((chromium, _)) = &self.chromium {
            page.close(chromium);
        }
        true
    }

    /// Lets a browser go that has ended by itself. Its pages remain, so that their next calls say so.
    fn clear_if_ended(&mut self) {
        let Some((chromium, since)) = &self.chromium else { return };
        if chromium.connection.is_closed() {
            if since.elapsed() >= RAN_WELL_AFTER {
                self.failures = 0;
            }
            self.failed();
            self.chromium = None;
            self.pages.retain(|_, page| !page.connection.is_closed());
        }
    }

    fn failed(&mut self) {
        let rest = RESTART_AFTER.saturating_mul(2_u32.saturating_pow(self.failures)).min(RESTART_AFTER_MAX);
        self.rests_until = Some(Instant::now() + rest);
        self.failures = self.failures.saturating_add(1);
    }

    /// Closes the page that was used longest ago where there are too many.
    fn make_space(&mut self, max: usize) -> Result<(), String> {
        while self.pages.len() >= max {
            let idle = self.pages.iter().filter(|(_, page)| page.turn.try_lock().is_ok());
            let oldest = idle.min_by_key(|(_, page)| page.used()).map(|(key, _)| *key);
            let Some(key) = oldest else { return Err("All browser pages are in use; try again later.".to_owned()) };
            self.forget(&key);
        }
        Ok(())
    }
}

/// Looks until nothing is open.
async fn watch(manager: Arc<BrowserManager>, bridge: Bridge) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if !manager.look(&bridge).await {
            return;
        }
    }
}

/// What became of a page, for the model.
fn gone(page: &Page) -> String {
    let what = if page.is_crashed() { "The page crashed" } else { "The browser ended unexpectedly" };
    format!("{what}, and the page is lost. Call browser_navigate to open it again.")
}

fn sentence(error: &CallError) -> String {
    match error {
        CallError::Closed => "the browser ended.".to_owned(),
        CallError::Timeout(secs) => format!("the browser did not respond within {secs} seconds."),
        CallError::Refused(why) => format!("{}.", why.trim_end_matches('.')),
    }
}
