//! Search over sessions: labels, agent names and what was said (spec 2, Sessions). For the route and the tool.
//!
//! Nothing is indexed: the messages are read. A search therefore reads a bounded number of rows and says where to go
//! on when there is more to read; the next one goes on there, even amid a session.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use agentsvc_components::kernel::limit::PAGE_SCAN_MAX;
use agentsvc_components::{AgentId, SessionId};
use agentsvc_systems::session::{GetSession, ListSessions, SessionPosition, SessionView};

use crate::http::bridge::Bridge;
use crate::http::cpu::{self, Asker};
use crate::http::error::{ContentError, Error};
use crate::session::content::{Content, MessageRange};
use crate::session::shape::SessionCursor;
use crate::session::transcript::{self, Place};

/// Rows that one request reads at most.
const ROWS_MAX: usize = 20_000;
/// Bytes of messages that one request reads, give or take a chunk.
const BYTES_MAX: usize = 64 << 20;
/// Sessions that one request looks at at most.
const SESSIONS_MAX: usize = 20_000;
/// Sessions that are taken from the world at once.
const PAGE_SESSIONS: usize = 256;
/// Characters of a message that are shown before and after the place found.
const EXCERPT_CHARS: usize = 60;

/// Search criteria. All given criteria must match.
pub struct SearchFor {
    /// Part of the label, agent name or a message, case-insensitive.
    pub text: Option<String>,
    /// Part of the label, case-insensitive.
    pub label: Option<String>,
    /// Only sessions of this agent.
    pub agent: Option<AgentId>,
    /// Only this session.
    pub session: Option<SessionId>,
    /// At most so many sessions.
    pub limit: usize,
}

/// A session that was found.
pub struct Hit {
    /// The session.
    pub session: SessionView,
    /// `label`, `agent_name` or `message`; `None` when no text was looked for.
    pub matched: Option<&'static str>,
    /// Position in the message.
    pub excerpt: Option<String>,
}

/// What a search found.
pub struct Found {
    /// The sessions.
    pub hits: Vec<Hit>,
    /// Where the next search goes on; `None` when everything was looked at.
    pub next: Option<SearchCursor>,
}

/// Looks for sessions, from `cursor` on, in the places of `asker`.
///
/// # Errors
/// The world is not ready, or the messages cannot be read.
pub async fn search(
    bridge: &Bridge,
    (content, asker): (Arc<dyn Content>, Asker),
    wanted: SearchFor,
    cursor: Option<SearchCursor>,
) -> Result<Found, Error> {
    let lower = |text: Option<String>| text.map(|text| text.to_lowercase()).filter(|text| !text.is_empty());
    let search = Search {
        text: lower(wanted.text),
        label: lower(wanted.label),
        content,
        asker,
        hits: Vec::new(),
        limit: wanted.limit,
        rows_left: ROWS_MAX,
        bytes_left: BYTES_MAX,
        sessions_left: SESSIONS_MAX,
        done: cursor,
        next: None,
    };
    let searched = match wanted.session {
        Some(session) => search.run_in(bridge, session, cursor).await,
        None => search.run(bridge, wanted.agent, cursor).await,
    };
    let Search { hits, next, .. } = searched?;
    Ok(Found { hits, next })
}

/// Where a search goes on: after a session, or after a row of it.
#[derive(Clone, Copy)]
pub struct SearchCursor {
    session: SessionCursor,
    /// The session itself is not done: go on after this row.
    row: Option<Place>,
}

impl fmt::Display for SearchCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.fmt(f)?;
        self.row.map_or(Ok(()), |row| write!(f, "~{row}"))
    }
}

impl FromStr for SearchCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (session, row) = match text.split_once('~') {
            Some((session, row)) => (session, Some(row.parse()?)),
            None => (text, None),
        };
        Ok(Self { session: session.parse()?, row })
    }
}

/// A search on its way.
struct Search {
    /// In lower case.
    text: Option<String>,
    /// In lower case.
    label: Option<String>,
    content: Arc<dyn Content>,
    asker: Asker,
    hits: Vec<Hit>,
    limit: usize,
    rows_left: usize,
    bytes_left: usize,
    sessions_left: usize,
    /// The last session that was looked at to its end.
    done: Option<SearchCursor>,
    /// Where the next request goes on; `None` when everything was looked at.
    next: Option<SearchCursor>,
}

impl Search {
    async fn run(
        mut self,
        bridge: &Bridge,
        agent: Option<AgentId>,
        cursor: Option<SearchCursor>,
    ) -> Result<Self, Error> {
        let mut after = cursor.map(|cursor| cursor.session.0);
        if let Some(SearchCursor { session, row: Some(row) }) = cursor {
            // Gone meanwhile is no error: there is nothing left to read in it.
            if let Ok(view) = bridge.ask(GetSession::ById(session.0.session)).await
                && agent.is_none_or(|agent| agent == view.agent)
            {
                self = self.look_at(vec![view], Some(row)).await?;
            }
        }
        while self.next.is_none() {
            let page =
                bridge.ask(ListSessions { agent, after, limit: PAGE_SESSIONS, ..ListSessions::default() }).await?;
            let shown = page.items.len();
            self = self.look_at(page.items, None).await?;
            after = page.next;
            let Some(last) = after else { break };
            if shown < PAGE_SESSIONS && self.next.is_none() {
                self.pass_hidden(last, shown);
            }
        }
        Ok(self)
    }

    /// A page ended at `last` because it looked at so many sessions, of which it showed few: those that it did not show count, too.
    fn pass_hidden(&mut self, last: SessionPosition, shown: usize) {
        self.sessions_left = self.sessions_left.saturating_sub(PAGE_SCAN_MAX - shown);
        self.done = Some(SearchCursor { session: SessionCursor(last), row: None });
        if self.is_spent() {
            self.next = self.done;
        }
    }

    /// Looks at one session alone. A cursor into another one leads nowhere.
    async fn run_in(self, bridge: &Bridge, session: SessionId, cursor: Option<SearchCursor>) -> Result<Self, Error> {
        let row = match cursor {
            None => None,
            Some(SearchCursor { session: at, row: Some(row) }) if at.0.session == session => Some(row),
            Some(_) => return Ok(self),
        };
        let view = bridge.ask(GetSession::ById(session)).await?;
        self.look_at(vec![view], row).await
    }

    /// Looks at sessions that follow each other, off the async threads; the first from after `row` on.
    async fn look_at(mut self, sessions: Vec<SessionView>, row: Option<Place>) -> Result<Self, Error> {
        let looked = cpu::run(self.asker, move || {
            self.look(sessions, row)?;
            Ok::<_, ContentError>(self)
        });
        Ok(looked.await.map_err(|_| Error::internal("the search was interrupted"))??)
    }

    fn look(&mut self, sessions: Vec<SessionView>, mut row: Option<Place>) -> Result<(), ContentError> {
        for session in sessions {
            if self.is_spent() {
                self.next = self.done;
                return Ok(());
            }
            self.sessions_left -= 1;
            let place = SessionCursor(session.position());
            if let Some(reason) = self.reason(&session, row.take())? {
                let Reason { matched, excerpt } = reason;
                self.hits.push(Hit { session, matched, excerpt });
            }
            if self.next.is_some() {
                return Ok(());
            }
            self.done = Some(SearchCursor { session: place, row: None });
        }
        Ok(())
    }

    const fn is_spent(&self) -> bool {
        self.hits.len() >= self.limit || self.sessions_left == 0 || self.rows_left == 0 || self.bytes_left == 0
    }

    /// Why a session is a hit, if it is one. Sets `next` when the session could not be read to its end.
    fn reason(&mut self, session: &SessionView, row: Option<Place>) -> Result<Option<Reason>, ContentError> {
        let label = session.label.as_ref().map(|label| label.to_lowercase()).unwrap_or_default();
        if self.label.as_ref().is_some_and(|part| !label.contains(part)) {
            return Ok(None);
        }
        let Some(text) = &self.text else { return Ok(Some(Reason { matched: None, excerpt: None })) };
        if row.is_none() {
            let matched = match (label.contains(text), session.agent_name.to_lowercase().contains(text)) {
                (true, _) => Some("label"),
                (false, true) => Some("agent_name"),
                (false, false) => None,
            };
            if matched.is_some() {
                return Ok(Some(Reason { matched, excerpt: None }));
            }
        }
        if session.message_count == 0 { Ok(None) } else { self.read(session, row) }
    }

    /// Reads the messages of a session from after `row` on, until one holds the text.
    fn read(&mut self, session: &SessionView, mut row: Option<Place>) -> Result<Option<Reason>, ContentError> {
        let text = self.text.clone().unwrap_or_default();
        let mut rows = transcript::FIRST_ROWS;
        loop {
            let (limit, bytes) = (rows.min(self.rows_left), transcript::CHUNK_BYTES);
            let after = row.map(|Place(ordinal, index)| (ordinal, index));
            let chunk = self.content.messages(session.log, MessageRange::Chunk { after, limit, bytes })?;
            let (count, mut bytes) = (chunk.len(), 0);
            self.rows_left -= count;
            for message in chunk {
                row = Some(Place(message.ordinal, message.index));
                let Some((_, said)) = transcript::shown(&message.record, |_| None) else { continue };
                bytes += said.len();
                if let Some(excerpt) = excerpt(&said, &text) {
                    return Ok(Some(Reason { matched: Some("message"), excerpt: Some(excerpt) }));
                }
            }
            self.bytes_left = self.bytes_left.saturating_sub(bytes);
            if count == 0 {
                return Ok(None);
            }
            if self.rows_left == 0 || self.bytes_left == 0 {
                self.next = Some(SearchCursor { session: SessionCursor(session.position()), row });
                return Ok(None);
            }
            rows = transcript::ROWS_MAX;
        }
    }
}

/// Why a session is a hit.
struct Reason {
    matched: Option<&'static str>,
    excerpt: Option<String>,
}

/// The surroundings of `text`, which is in lower case, in `said`; `None` when it is not there.
fn excerpt(said: &str, text: &str) -> Option<String> {
    let lower = said.to_lowercase();
    let at = lower.find(text)?;
    // Lower case may have another number of characters for a few letters; the excerpt is then off by as many.
    let before = lower[..at].chars().count().saturating_sub(EXCERPT_CHARS);
    Some(said.chars().skip(before).take(2 * EXCERPT_CHARS + text.chars().count()).collect())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::testing::NoContent;

    #[test]
    fn sessions_that_a_page_does_not_show_are_looked_at_too() {
        let mut search = Search {
            text: None,
            label: None,
            content: Arc::new(NoContent),
            asker: Asker::daemon("test"),
            hits: Vec::new(),
            limit: 1,
            rows_left: ROWS_MAX,
            bytes_left: BYTES_MAX,
            sessions_left: SESSIONS_MAX,
            done: None,
            next: None,
        };
        let last = |page: u64| SessionPosition { owner: page, session: SessionId(Uuid::from_u128(page.into())) };
        let mut pages = 0;
        while search.next.is_none() {
            pages += 1;
            search.pass_hidden(last(pages), 0);
        }
        assert_eq!(pages as usize, SESSIONS_MAX.div_ceil(PAGE_SCAN_MAX));
        assert_eq!(search.next.map(|cursor| cursor.session.0), Some(last(pages)), "the next search goes on there");
    }
}
