//! How sessions look in JSON (spec 1, Session; spec 2, Sessions).

use std::fmt;
use std::str::FromStr;

use agentsvc_components::SessionId;
use agentsvc_systems::session::{SessionPosition, SessionView};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::http::lists::list_schema;
use crate::http::timestamp::Moment;

/// A session without its messages. `id` and `session_id` are the same.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionShape<'a> {
    id: Uuid,
    session_id: Uuid,
    agent_id: Uuid,
    agent_name: &'a str,
    label: Option<&'a str>,
    /// User messages and answers; the summary of a compacted session counts as one.
    message_count: u32,
    created_at: Moment,
    updated_at: Moment,
    /// The agent's current session.
    current: bool,
    /// Open turns.
    queued: u32,
}

impl<'a> SessionShape<'a> {
    /// The shape of a session.
    pub(crate) fn of(view: &'a SessionView) -> Self {
        Self {
            id: view.id.0,
            session_id: view.id.0,
            agent_id: view.agent.0,
            agent_name: &view.agent_name,
            label: view.label.as_deref(),
            message_count: view.message_count,
            created_at: Moment(view.created_at),
            updated_at: Moment(view.updated_at),
            current: view.current,
            queued: view.queued,
        }
    }
}

/// A session that writes itself in its shape.
pub(crate) struct SessionItem(pub(crate) SessionView);

impl Serialize for SessionItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SessionShape::of(&self.0).serialize(serializer)
    }
}

list_schema! {
    /// A list of sessions.
    SessionList {
        sessions: SessionShape<'static>,
        /// Sessions in all; left out where it is not known.
        total: Option<u64>
    }
}

/// A position as a cursor. It holds until the daemon restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionCursor(pub(crate) SessionPosition);

impl fmt::Display for SessionCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{}", self.0.owner, self.0.session.0.simple())
    }
}

impl FromStr for SessionCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (owner, session) = text.split_once('.').ok_or(())?;
        let owner = u64::from_str_radix(owner, 16).map_err(drop)?;
        let session = Uuid::try_parse(session).map(SessionId).map_err(drop)?;
        Ok(Self(SessionPosition { owner, session }))
    }
}
