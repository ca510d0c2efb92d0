//! Web chats: what visitors of sites wrote, and what they were answered.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::uuid_id;
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "widget", uses: &[] };

uuid_id! {
    /// Names one message in the conversation of a visitor. Later messages have greater ids.
    WebMessageId
}

/// A message in the conversation of a visitor, as the visitor sees it.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebMessage {
    /// The name of the site.
    pub site: Box<str>,
    /// The visitor.
    pub visitor: Box<str>,
    /// What the page knows it by: the id that the visitor's page gave it, or that of the turn or the send.
    pub name: Box<str>,
    /// The visitor wrote it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_visitors: bool,
    /// What it says; Markdown.
    pub text: Box<str>,
    /// When it was stored.
    pub at: Timestamp,
}

stored!(WebMessage: b'W', WebMessageId);

impl WebMessage {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.site.len() + self.visitor.len() + self.name.len() + self.text.len()
    }
}
