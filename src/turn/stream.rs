//! The way of what turns say, word by word, to those who read along.

use std::sync::Arc;

use agentsvc_components::SessionId;
use agentsvc_components::turn::stream::StreamItem;

/// Takes stream items to the hub.
pub type Publish = Arc<dyn Fn(StreamItem) + Send + Sync>;
/// Tells whether anyone watches a session now.
pub type Subscribed = Arc<dyn Fn(SessionId) -> bool + Send + Sync>;

/// The streams of sessions.
#[derive(Clone)]
pub struct Streams {
    /// The way to the stream hub.
    pub publish: Publish,
    /// Whether anyone watches a session.
    pub subscribed: Subscribed,
}
