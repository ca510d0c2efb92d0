//! What hooks of events hear: what is on disk, each thing once, and of a thing nothing more once it has ended. A kill may keep
//! something from them; then they miss it, and hear of nothing twice.

use std::collections::BTreeSet;

use agentsvc_components::event::Event;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::{SessionId, TurnId};
use agentsvc_systems::event::told::events_of;
use agentsvc_systems::kernel::engine::Told;
use agentsvc_systems::session::{SessionChange, SessionEvent, changes_of};

use super::harness::Harness;

/// One who listens from the beginning of the world on.
#[derive(Debug, Default)]
pub(crate) struct Ears {
    /// Sessions that began and have not ended.
    open: BTreeSet<SessionId>,
    ended: BTreeSet<SessionId>,
    /// Turns that have ended.
    turns: BTreeSet<TurnId>,
    /// A kill kept something from them.
    is_missed: bool,
}

impl Ears {
    /// What a step told that is on disk.
    pub(crate) fn hear(&mut self, told: Vec<Told>) -> Result<(), String> {
        for told in told {
            match changes_of(told) {
                Ok(changes) => changes.into_iter().try_for_each(|change| self.session(change))?,
                Err(told) => events_of(told).iter().try_for_each(|happened| self.turn(&happened.event))?,
            }
        }
        Ok(())
    }

    /// The process dies.
    pub(crate) fn die(&mut self, is_missed: bool) {
        self.is_missed |= is_missed;
        // An end may not have reached the disk.
        self.ended.clear();
    }

    fn session(&mut self, SessionChange { session, event, .. }: SessionChange) -> Result<(), String> {
        let is_known = self.open.contains(&session) || self.is_missed;
        let wrong = |what: &str| Err(format!("hooks hear that session {session} {what}"));
        match event {
            SessionEvent::Started if !self.open.insert(session) => wrong("begins twice"),
            // A client may give a new session the id of one that is gone.
            SessionEvent::Started => {
                self.ended.remove(&session);
                Ok(())
            }
            _ if self.ended.contains(&session) => wrong("does something after its end"),
            SessionEvent::Ended { .. } | SessionEvent::Reset { .. } if !is_known => wrong("ends and never began"),
            SessionEvent::Ended { .. } => {
                self.open.remove(&session);
                self.ended.insert(session);
                Ok(())
            }
            SessionEvent::Reset { .. } => Ok(()),
        }
    }

    fn turn(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::TurnStarted { turn, .. } if self.turns.contains(turn) => {
                Err(format!("hooks hear that turn {turn} begins after its end"))
            }
            Event::TurnCompleted { turn, .. } | Event::TurnFailed { turn, .. } if !self.turns.insert(*turn) => {
                Err(format!("hooks hear twice that turn {turn} ended"))
            }
            _ => Ok(()),
        }
    }
}

/// At the end of a run they know of every session that there is, and of no other.
pub(crate) fn at_end(harness: &Harness) -> Result<(), String> {
    if harness.ears.is_missed {
        return Ok(());
    }
    let records = harness.disk.records().map_err(|error| error.to_string())?;
    let there = records.iter::<SessionRecord>().filter(|session| !session.ephemeral);
    let there: BTreeSet<SessionId> = there.map(|session| session.id).collect();
    match there.symmetric_difference(&harness.ears.open).next() {
        None => Ok(()),
        Some(session) if there.contains(session) => Err(format!("no hook heard of session {session}")),
        Some(session) => Err(format!("hooks heard of session {session}, and it is not there")),
    }
}
