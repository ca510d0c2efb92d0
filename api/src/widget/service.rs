//! The sites of the configuration, and the tokens of their visitors.

use std::sync::Arc;

/// One of `[[web_chats]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Its name; that of its instance among the channels.
    pub name: Box<str>,
    /// Its token, which stands in its pages: no secret.
    pub token: Box<str>,
    /// Name of the agent that answers.
    pub agent: Box<str>,
    /// Origins of its pages, as browsers write them.
    pub allowed_origins: Vec<Box<str>>,
    /// Heading of the chat.
    pub title: Box<str>,
    /// What the chat shows before the first message; empty for nothing.
    pub greeting: Box<str>,
    /// Colour as `#rrggbb`; empty for that of the script.
    pub colour: Box<str>,
    /// `auto`, `light` or `dark`.
    pub theme: Box<str>,
    /// `right` or `left`.
    pub position: Box<str>,
    /// Messages that one visitor may send in a minute.
    pub per_visitor: u32,
    /// Messages, and new sessions, of one address in a minute; and its open streams.
    pub per_address: u32,
    /// Messages of all visitors in a minute.
    pub per_minute: u32,
    /// Streams of all visitors that may be open.
    pub streams_max: usize,
}

/// Knows the sites and their visitors. The daemon provides it.
pub trait WebChats: Send + Sync + 'static {
    /// Every site of the configuration in force, by name.
    fn list(&self) -> Vec<Arc<Site>>;

    /// The site of this token.
    fn site(&self, token: &str) -> Option<Arc<Site>>;

    /// The token of a new visitor; `None` without randomness. Nothing is stored before the visitor writes.
    fn new_visitor(&self, site: &Site) -> Option<String>;

    /// The visitor whose token this is; `None` when it was not made for the site.
    fn visitor(&self, site: &Site, token: &str) -> Option<Box<str>>;
}
