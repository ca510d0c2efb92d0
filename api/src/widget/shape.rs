//! Shapes of web chats.

use agentsvc_components::widget::WebMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::Site;
use crate::http::shape::shape;

shape! {
    /// A site.
    pub(crate) struct SiteItem from site: &Site {
        /// Name of the site, and of its channel.
        name: String = site.name.to_string(),
        /// Public token for `data-token` of the script.
        token: String = site.token.to_string(),
        /// Name of the agent that answers.
        agent: String = site.agent.to_string(),
        /// Origins of the pages that may use the chat.
        allowed_origins: Vec<String> = site.allowed_origins.iter().map(ToString::to_string).collect(),
        /// Heading of the chat.
        title: String = site.title.to_string(),
        /// Text before the first message.
        greeting: String = site.greeting.to_string(),
        /// Colour as `#rrggbb`; empty for the default.
        colour: String = site.colour.to_string(),
        /// `auto`, `light` or `dark`.
        theme: String = site.theme.to_string(),
        /// `right` or `left`.
        position: String = site.position.to_string(),
        /// Messages per minute of one visitor.
        rate_limit_per_visitor: u32 = site.per_visitor,
        /// Messages per minute of one address.
        rate_limit_per_address: u32 = site.per_address,
        /// Messages per minute of all visitors.
        rate_limit_per_minute: u32 = site.per_minute,
        /// Pages that may have the chat open at once.
        max_streams: usize = site.streams_max,
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

shape! {
    /// What a page needs to show the chat.
    pub(crate) struct LookItem from site: &Site {
        /// Heading of the chat.
        title: String = site.title.to_string(),
        /// Text before the first message; empty for none.
        greeting: String = site.greeting.to_string(),
        /// Colour as `#rrggbb`; empty for the default.
        colour: String = site.colour.to_string(),
        /// `auto`, `light` or `dark`.
        theme: String = site.theme.to_string(),
        /// `right` or `left`.
        position: String = site.position.to_string(),
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
