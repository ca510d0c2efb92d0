//! Sending into a channel. What provides channels implements [`ChannelOut`] and provides it with
//! `services.provide::<dyn ChannelOut>(...)`; everything else that sends asks for it here, and only here.
//!
//! Where nothing provides it there are no channels, and what names one is refused.

use std::sync::Arc;

use agentsvc_components::AgentId;
use futures_util::future::BoxFuture;
use uuid::Uuid;

/// A text on its way into a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelText {
    /// Names the send. The same one comes again when its outcome is not known, such as after a restart; a channel that has it
    /// already sends nothing again.
    pub id: Uuid,
    /// Whose words they are.
    pub agent: Option<AgentId>,
    /// The channel's name, that of its instance.
    pub channel: Box<str>,
    /// The conversation or person; `None` is the channel's usual one.
    pub recipient: Option<Box<str>>,
    /// What is said.
    pub text: String,
}

/// Why a text did not go into a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// It may work later: why, in a sentence.
    Later(String),
    /// It will not: why, in a sentence.
    Refused(String),
}

/// The channels that the daemon can send into.
pub trait ChannelOut: Send + Sync + 'static {
    /// Is there a channel of this name?
    fn has(&self, channel: &str) -> bool;

    /// Does the configuration let what comes from outside be sent to this conversation or person?
    fn may_reach(&self, channel: &str, recipient: &str) -> bool;

    /// Takes a text for a channel, to where it [may go](Self::may_reach): it is stored when this comes back, and goes out from there.
    fn deliver(self: Arc<Self>, text: ChannelText) -> BoxFuture<'static, Result<(), NotSent>>;
}
