//! Shapes of web chats.

use agentsvc_components::widget::WebMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::Site;

/// A site.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SiteItem {
    /// Name of the site, and of its channel.
    name: String,
    /// Public token for `data-token` of the script.
    token: String,
    /// Name of the agent that answers.
    agent: String,
    /// Origins of the pages that may use the chat.
    allowed_origins: Vec<String>,
    /// Heading of the chat.
    title: String,
    /// Text before the first message.
    greeting: String,
    /// Colour as `#rrggbb`; empty for the default.
    colour: String,
    /// `auto`, `light` or `dark`.
    theme: String,
    /// `right` or `left`.
    position: String,
    /// Messages per minute of one visitor.
    rate_limit_per_visitor: u32,
    /// Messages per minute of one address.
    rate_limit_per_address: u32,
    /// Messages per minute of all visitors.
    rate_limit_per_minute: u32,
    /// Pages that may have the chat open at once.
    max_streams: usize,
}

impl From<&Site> for SiteItem {
    fn from(site: &Site) -> Self {
        Self {
            name: site.name.to_string(),
            token: site.token.to_string(),
            agent: site.agent.to_string(),
            allowed_origins: site.allowed_origins.iter().map(ToString::to_string).collect(),
            title: site.title.to_string(),
            greeting: site.greeting.to_string(),
            colour: site.colour.to_string(),
            theme: site.theme.to_string(),
            position: site.position.to_string(),
            rate_limit_per_visitor: site.per_visitor,
            rate_limit_per_address: site.per_address,
            rate_limit_per_minute: site.per_minute,
            max_streams: site.streams_max,
        }
    }
}

/// The sites.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SiteList {
    /// Sites, by name.
    pub(crate) web_chats: Vec<SiteItem>,
    /// How many there are.
    pub(crate) total: usize,
}

/// Nothing: the session of the visitor in `X-Visitor`, or of a new one.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct SessionBody {}

/// What a page needs to show the chat.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LookItem {
    /// Heading of the chat.
    title: String,
    /// Text before the first message; empty for none.
    greeting: String,
    /// Colour as `#rrggbb`; empty for the default.
    colour: String,
    /// `auto`, `light` or `dark`.
    theme: String,
    /// `right` or `left`.
    position: String,
}

impl From<&Site> for LookItem {
    fn from(site: &Site) -> Self {
        Self {
            title: site.title.to_string(),
            greeting: site.greeting.to_string(),
            colour: site.colour.to_string(),
            theme: site.theme.to_string(),
            position: site.position.to_string(),
        }
    }
}

/// The session of a visitor.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionItem {
    /// Token of the visitor, for `X-Visitor`.
    pub(crate) visitor: String,
    /// Look of the chat.
    #[serde(flatten)]
    pub(crate) look: LookItem,
}

/// A visitor's message.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct WebMessageBody {
    /// Names the message: the same `id` again is the same message. 1 to 64 letters, digits, `-` or `_`.
    pub(crate) id: String,
    /// Text, 1 to 4000 characters.
    pub(crate) text: String,
}

/// A message that is stored.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WebMessageStored {
    /// Its `id`.
    pub(crate) id: String,
}

/// A message of the conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WebMessageItem {
    /// Names the message in this conversation.
    id: String,
    /// `user` or `assistant`.
    role: &'static str,
    /// Text; that of `assistant` is Markdown.
    text: String,
}

impl From<WebMessage> for WebMessageItem {
    fn from(message: WebMessage) -> Self {
        let role = if message.is_visitors { "user" } else { "assistant" };
        Self { id: message.name.into(), role, text: message.text.into() }
    }
}

/// The conversation of one visitor.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WebMessageList {
    /// Messages, the oldest first.
    pub(crate) messages: Vec<WebMessageItem>,
}
