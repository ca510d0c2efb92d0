//! What routes and metrics see of browsers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agentsvc_api::browser::browsers::{Browsers, OpenPage};
use agentsvc_components::AgentId;
use futures_util::future::BoxFuture;

use super::manager::BrowserManager;

/// The beginning of the text, where the page has one.
const TEXT: &str = "(document.body ? document.body.innerText : '').slice(0, 2000)";

impl Browsers for BrowserManager {
    fn open_page(self: Arc<Self>, agents: Vec<AgentId>) -> BoxFuture<'static, Option<OpenPage>> {
        Box::pin(async move {
            let page = self.last_used(&agents)?;
            let (url, title) = page.place().await.ok()?;
            // A call may be under way: what the page does not show in time is left out.
            let shown = async { tokio::join!(page.look(TEXT), page.screenshot()) };
            let (text, screenshot) = tokio::time::timeout(super::SHOWN_TIME_MAX, shown).await.ok().unzip();
            let content =
                text.and_then(Result::ok).and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
            Some(OpenPage { url, title, content, screenshot_base64: screenshot.and_then(Result::ok) })
        })
    }
}

impl BrowserManager {
    /// Pages that are open, and browsers that were started.
    pub(super) fn counts(&self) -> (usize, u64) {
        (self.open.load(Ordering::Relaxed), self.starts.load(Ordering::Relaxed))
    }
}
