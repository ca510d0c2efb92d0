//! The seam to the browsers of agents.

use std::sync::Arc;

use agentsvc_components::AgentId;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;

/// The page that an agent has open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OpenPage {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// The beginning of its text, at most 2000 characters; untrusted content.
    pub content: String,
    /// A PNG image of the visible part of the page; absent if the page does not draw in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screenshot_base64: Option<String>,
}

/// The browsers of agents.
pub trait Browsers: Send + Sync + 'static {
    /// The page of these agents that was used last; `None` if none of them has one open.
    fn open_page(self: Arc<Self>, agents: Vec<AgentId>) -> BoxFuture<'static, Option<OpenPage>>;
}
