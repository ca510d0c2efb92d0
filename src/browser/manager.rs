//! The browsers of this daemon and the pages in them: one page for each session of an agent, and one browser for each user with a
//! limited role or family of agents. It runs while it has pages.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::refusal::RefusalKind;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::browser::limits::BROWSER_PAGE_HELD_SECS_MAX;
use agentsvc_systems::session::GetSession;
use parking_lot::Mutex;

use super::cdp::CallError;
use super::chromium::Chromium;
use super::config::Browser;
use super::executable::executable;
use super::page::{Grant, Page};
use crate::kernel::egress::Web;
use crate::kernel::sandbox::Commands;
use crate::kernel::settings::Settings;
use crate::tool::toolset::{Context, Ended};

/// Time between two looks for pages that are not needed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time until a browser that failed is started again; twice as long each time.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// The longest such time.
const RESTART_AFTER_MAX: Duration = Duration::from_secs(300);
/// Shares of the pages: a user with a limited role has one, and so has each other family of agents.
const PAGE_SHARES: usize = 2;
/// A browser that ran for so long has not failed at its start.
const RAN_WELL_AFTER: Duration = Duration::from_secs(60);

/// Who has a page.
pub(super) type Key = (AgentId, SessionId);

/// The browsers and their pages.
pub(crate) struct BrowserManager {
    pub(super) settings: Settings,
    web: Web,
    commands: Commands,
    directory: PathBuf,
    pub(super) inner: Mutex<Inner>,
    /// Browsers that were started.
    pub(super) starts: AtomicU64,
    /// Pages that are open.
    pub(super) open: AtomicUsize,
}

#[derive(Default)]
pub(super) struct Inner {
    /// A browser for each who shares places: what pages of one do to theirs, others do not feel.
    browsers: HashMap<Holder, Arc<tokio::sync::Mutex<Own>>>,
    pub(super) pages: HashMap<Key, Arc<Page>>,
    /// Those for whom a page is being opened.
    opening: HashSet<Holder>,
    is_watched: bool,
}

/// The browser of one who shares places, and how it fared.
#[derive(Default)]
pub(super) struct Own {
    chromium: Option<(Chromium, Instant)>,
    failures: u32,
    rests_until: Option<Instant>,
}

/// A page that is being opened has its place, until this is dropped.
struct Opening<'a> {
    manager: &'a BrowserManager,
    holder: Holder,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.manager.inner.lock().opening.remove(&self.holder);
    }
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
        let page = self.page_of((run.agent, run.session), Grant { holder: run.holder, network }, open).await;
        if !std::mem::replace(&mut self.inner.lock().is_watched, true) {
            drop(tokio::spawn(watch(Arc::clone(self), context.parts.bridge.clone())));
        }
        page
    }

    /// The same, for who has this key.
    pub(super) async fn page_of(&self, key: Key, grant: Grant, open: bool) -> Result<Arc<Page>, String> {
        if let Some(page) = self.open_page(&key, &grant, open)? {
            return Ok(page);
        }
        let holder = grant.holder;
        let own = self.own(holder);
        // One after the other of those who share; the others do not wait for them.
        let mut own = own.lock().await;
        // Another call of the session may have opened it meanwhile.
        if let Some(page) = self.open_page(&key, &grant, open)? {
            return Ok(page);
        }
        own.clear_if_ended();
        own.check_rest()?;
        let settings = self.settings.get::<Browser>();
        let _opening = {
            let mut inner = self.inner.lock();
            inner.make_space(settings.max_sessions, holder, Instant::now())?;
            inner.opening.insert(holder);
            Opening { manager: self, holder }
        };
        let chromium = self.started(&mut own).await?;
        match Page::open(chromium, &settings, self.web.clone(), grant).await {
            Ok(page) => {
                let mut inner = self.inner.lock();
                inner.opening.remove(&holder);
                inner.pages.insert(key, Arc::clone(&page));
                self.open.store(inner.pages.len(), Ordering::Relaxed);
                Ok(page)
            }
            Err(error) => {
                // Without a page it would stay for nobody; one that opens none has failed.
                if self.inner.lock().pages.values().all(|page| page.holder != holder) {
                    own.chromium = None;
                    own.failed();
                }
                Err(format!("A page could not be opened: {}", sentence(&error)))
            }
        }
    }

    /// The browser of a holder.
    pub(super) fn own(&self, holder: Holder) -> Arc<tokio::sync::Mutex<Own>> {
        Arc::clone(self.inner.lock().browsers.entry(holder).or_default())
    }

    /// The page of this key, if it is there.
    fn open_page(&self, key: &Key, grant: &Grant, open: bool) -> Result<Option<Arc<Page>>, String> {
        let mut inner = self.inner.lock();
        match inner.pages.get(key).cloned() {
            Some(page) if !page.is_gone() => {
                // The manifest may have changed.
                *page.grant.lock() = grant.clone();
                page.touch();
                Ok(Some(page))
            }
            Some(page) => {
                inner.forget(key);
                if open { Ok(None) } else { Err(gone(&page)) }
            }
            None if open => Ok(None),
            None => Err("No page is open. Call browser_navigate first.".to_owned()),
        }
    }

    /// Starts the browser where it does not run.
    async fn started<'o>(&self, own: &'o mut Own) -> Result<&'o Chromium, String> {
        if own.chromium.is_none() {
            let number = self.starts.fetch_add(1, Ordering::Relaxed);
            let settings = self.settings.clone();
            let found = tokio::task::spawn_blocking(move || executable(&settings)).await;
            let file = found.map_err(|_| "The browser could not be looked for.".to_owned())?;
            let file = file.map_err(|why| format!("There is no browser: {why}."))?;
            match Chromium::start(&self.commands, &file, self.directory.join(number.to_string())).await {
                Ok(chromium) => own.chromium = Some((chromium, Instant::now())),
                Err(why) => {
                    own.failed();
                    return Err(format!("The browser could not be started: {why}."));
                }
            }
        }
        own.chromium.as_ref().map(|(chromium, _)| chromium).ok_or_else(|| "The browser ended.".to_owned())
    }

    /// Closes the page of a session. False when there is none.
    pub(super) fn close(&self, key: &Key) -> bool {
        let mut inner = self.inner.lock();
        let was_open = inner.forget(key);
        self.open.store(inner.pages.len(), Ordering::Relaxed);
        was_open
    }

    /// What the failure of a call means, for the model. A page that does not respond is closed.
    pub(super) fn failed(&self, key: &Key, page: &Arc<Page>, error: CallError) -> String {
        match error {
            CallError::Refused(_) => format!("The page refused: {}", sentence(&error)),
            CallError::Closed => {
                self.close(key);
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
                self.close(key);
                text
            }
        }
    }

    /// What it means that a page ended while a call acted on it, for the model.
    pub(super) fn taken(&self, key: &Key, page: &Arc<Page>) -> Ended {
        Ended::own_failure(if page.is_crashed() {
            self.failed(key, page, CallError::Closed)
        } else {
            "The page was closed meanwhile: by browser_close, or because another agent waited for a page while this one was in \
             use for long. Call browser_navigate to open it again."
                .to_owned()
        })
    }

    /// The page of these agents that was used last.
    pub(super) fn last_used(&self, agents: &[AgentId]) -> Option<Arc<Page>> {
        let inner = self.inner.lock();
        let of_them = inner.pages.iter().filter(|((agent, _), page)| agents.contains(agent) && !page.is_gone());
        of_them.max_by_key(|(_, page)| page.used()).map(|(_, page)| Arc::clone(page))
    }

    /// Closes what is not needed any more. False once nothing is open.
    async fn look(&self, bridge: &Bridge) -> bool {
        let keys: Vec<Key> = self.inner.lock().pages.keys().copied().collect();
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
        let mut inner = self.inner.lock();
        let is_idle = |page: &Page| page.used().elapsed() >= idle && page.in_use_since().is_none();
        let is_over = |page: &Page| page.is_crashed() || page.connection.is_closed() || is_idle(page);
        let unused = inner.pages.iter().filter(|(_, page)| is_over(page)).map(|(key, _)| *key);
        ended.extend(unused.collect::<Vec<_>>());
        for key in ended {
            inner.forget(&key);
        }
        inner.tidy(Instant::now());
        self.open.store(inner.pages.len(), Ordering::Relaxed);
        inner.is_watched = !inner.pages.is_empty() || !inner.browsers.is_empty();
        inner.is_watched
    }
}

impl Inner {
    /// Closes a page.
    fn forget(&mut self, key: &Key) -> bool {
        let page = self.pages.remove(key);
        page.inspect(|page| page.close()).is_some()
    }

    /// Lets browsers go that have no pages, and forgets those that have not failed lately.
    fn tidy(&mut self, now: Instant) {
        let pages = &self.pages;
        self.browsers.retain(|holder, own| {
            // Others have it while they open a page.
            let Some(mut own) = own.try_lock().ok().filter(|_| Arc::strong_count(own) == 1) else { return true };
            own.clear_if_ended();
            if pages.values().all(|page| page.holder != *holder) {
                own.chromium = None;
            }
            own.chromium.is_some() || own.rests_until.is_some_and(|until| until + RAN_WELL_AFTER > now)
        });
    }

    /// Pages that a holder has, with one that is being opened.
    fn held(&self, holder: Holder) -> usize {
        let open = self.pages.values().filter(|page| page.holder == holder).count();
        open + usize::from(self.opening.contains(&holder))
    }

    /// Makes space for one more page of the holder: closes the page that was used longest ago, one of its own where it has its share;
    /// and if all are in use, one of another that is so for long.
    pub(super) fn make_space(&mut self, max: usize, holder: Holder, now: Instant) -> Result<(), String> {
        while self.held(holder) >= max.div_ceil(PAGE_SHARES) {
            let Some(key) = self.unused(|page| page.holder == holder) else {
                return Err("All browser pages of this agent and those it shares them with are in use; close one, or try again \
                            later."
                    .to_owned());
            };
            self.forget(&key);
        }
        while self.pages.len() + self.opening.len() >= max {
            let Some(key) = self.unused(|_| true).or_else(|| self.held_long(holder, now)) else {
                return Err("All browser pages are in use; try again later.".to_owned());
            };
            self.forget(&key);
        }
        Ok(())
    }

    /// The page that was used longest ago of those that nobody uses now.
    fn unused(&self, is_meant: impl Fn(&Page) -> bool) -> Option<Key> {
        let unused = self.pages.iter().filter(|(_, page)| is_meant(page) && page.in_use_since().is_none());
        unused.min_by_key(|(_, page)| page.used()).map(|(key, _)| *key)
    }

    /// Of the pages of others that have been in use for long, one of who has most; of these the one that has been for longest.
    fn held_long(&self, holder: Holder, now: Instant) -> Option<Key> {
        let held_max = Duration::from_secs(BROWSER_PAGE_HELD_SECS_MAX);
        let is_long = |since: Instant| now.saturating_duration_since(since) >= held_max;
        let others = self.pages.iter().filter(|(_, page)| page.holder != holder);
        let long = others.filter_map(|(key, page)| Some((key, page, page.in_use_since().filter(|at| is_long(*at))?)));
        long.min_by_key(|(_, page, since)| (Reverse(self.held(page.holder)), *since)).map(|(key, ..)| *key)
    }
}

impl Own {
    /// Lets a browser go that has ended by itself.
    fn clear_if_ended(&mut self) {
        let Some((chromium, since)) = &self.chromium else { return };
        if chromium.connection.is_closed() {
            if since.elapsed() >= RAN_WELL_AFTER {
                self.failures = 0;
            }
            self.failed();
            self.chromium = None;
        }
    }

    pub(super) fn failed(&mut self) {
        let rest = RESTART_AFTER.saturating_mul(2_u32.saturating_pow(self.failures)).min(RESTART_AFTER_MAX);
        self.rests_until = Some(Instant::now() + rest);
        self.failures = self.failures.saturating_add(1);
    }

    /// A browser that failed is not started at once.
    fn check_rest(&self) -> Result<(), String> {
        let until = self.rests_until.filter(|_| self.chromium.is_none());
        match until.and_then(|until| until.checked_duration_since(Instant::now())) {
            Some(left) => {
                Err(format!("The browser failed; it can be started again in {} seconds.", left.as_secs() + 1))
            }
            None => Ok(()),
        }
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
