//! Browsers of agents (spec 2, Hands): the tools `browser_*`, over a Chromium in the sandbox.
//!
//! ```text
//! tool call -> BrowserManager -> Page -> DevTools protocol over a pipe -> Chromium, without a network
//!                                  ^                                         |
//!                                  +-- requests of the page: egress <--------+
//! ```
//!
//! Chromium has no network: each request of a page waits until the daemon has sent it by the rules of all fetches and given
//! it the answer. What pages say is untrusted content.

mod actions;
mod cdp;
mod chromium;
pub mod config;
mod executable;
mod manager;
mod page;
mod relay;
mod service;
#[cfg(test)]
mod tests;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::browser::browsers::Browsers;
use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_api::upload::files::Files;

use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::tool::toolset::ToolParts;
pub(crate) use executable::{executable, find};
use manager::BrowserManager;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "browser",
    uses: &["session", "tool", "upload", "web"],
    performers,
    open: |opening| {
        let directory = opening.data_dir.join("browser");
        // Of a daemon that was killed.
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        let (web, commands) = (opening.web.clone(), opening.commands.clone());
        let manager = BrowserManager::new(opening.settings.clone(), web, commands, directory);
        opening.provide::<dyn Browsers>(Arc::clone(&manager) as _);
        opening.api.add_probe(Arc::new(Counts(Arc::clone(&manager))));
        let files = opening.api.services.get::<dyn Files>();
        opening.settings.set(Opened(Some((manager, files))));
        Ok(())
    },
    ..Domain::EMPTY
};

/// The name under which the tools are brought.
const SOURCE: &str = "browser";
/// How long the page of an instance of a hand may take to show itself.
const SHOWN_TIME_MAX: Duration = Duration::from_secs(10);

/// The manager, and where screenshots are kept.
type Parts = (Arc<BrowserManager>, Option<Arc<dyn Files>>);

/// What the performers get of what was opened.
#[derive(Clone, Default)]
struct Opened(Option<Parts>);

/// What metrics show.
struct Counts(Arc<BrowserManager>);

impl Probe for Counts {
    fn gather(&self, out: &mut MetricsText) {
        let (open, starts) = self.0.counts();
        out.gauge("agentsvc_browser_pages", "Pages of browsers that are open.", open);
        out.counter("agentsvc_browser_starts_total", "Browsers that were started.", starts);
    }
}

/// Brings the tools while there is a Chromium.
fn performers(performers: &mut Performers) {
    let ToolParts { set, settings, .. } = performers.part();
    let Some((manager, files)) = settings.get::<Opened>().0.clone() else { return };
    let mut changes = settings.changes();
    let bring = move |was: Option<bool>| {
        let found = executable(&settings);
        if was != Some(found.is_ok()) {
            let tools = match &found {
                Ok(_) => tools::all(&manager, files.as_ref()),
                Err(why) => {
                    tracing::info!(%why, "the browser tools are not offered");
                    Vec::new()
                }
            };
            set.bring(SOURCE, tools);
        }
        found.is_ok()
    };
    let is_there = bring(None);
    drop(performers.calls().handle.spawn(async move {
        let bring = Arc::new(bring);
        let mut was = is_there;
        while changes.changed().await.is_ok() {
            let bring = Arc::clone(&bring);
            was = tokio::task::spawn_blocking(move || bring(Some(was))).await.unwrap_or(was);
        }
    }));
}
