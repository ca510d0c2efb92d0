//! Following: a standby applies the entries of the journal as they come.

use agentsvc_api::cluster::NodeRole;

use super::join::{is_alone, tail_of};
use super::members::SILENCE_MS;
use super::moment::boot_time;
use super::nats::Tail;
use super::node::{Event, Followed, LOOK, Node, PAUSE, refuse};
use super::synced::Synced;
use super::watch::Watch;
use crate::kernel::store::journal::entry::{Body, Entry};
use crate::kernel::store::{Error, Store};

impl Node {
    /// Applies entries as they come, until something else is to be done.
    pub(super) fn follow(&self, store: &Store, watch: &mut Watch) -> Result<Followed, Error> {
        let Self { wire, members, .. } = self;
        store.watch_marks(self.marked.clone());
        let mut synced = Synced::new(store, members, self.is_eager)?;
        members.standing.note(&store.position()?);
        members.set_role(NodeRole::Standby);
        // A world of a daemon that was alone stays as it is until the journal goes on from it.
        let mut is_alone = is_alone(store)?;
        let (began, mut tail) = (boot_time(), None);
        loop {
            if self.is_stopping() {
                return Ok(Followed::Stopped);
            }
            if let Some(text) = members.must_give_way() {
                return Ok(Followed::Ends(text));
            }
            while let Ok(event) = self.events.try_recv() {
                if let Event::Panicked(text) = event {
                    return Ok(Followed::Ends(text));
                }
                refuse(event);
            }
            let mut is_left = false;
            match self.next(store, &mut tail) {
                Ok(Some(entry)) => {
                    is_left = true;
                    if let Some(lost) = take(store, &entry, &mut is_alone)? {
                        return Ok(lost);
                    }
                    members.standing.note(&entry.position);
                    watch.note(&entry, boot_time());
                    self.tries.set(0);
                    members.set_problem("reading", None);
                    members.lacks_nothing();
                }
                Ok(None) => {}
                Err(error @ Error::Journal(_)) => {
                    members.set_problem("reading", Some(error.to_string()));
                    std::thread::sleep(PAUSE);
                }
                Err(Error::Lost { index }) if tail.is_some() => {
                    return Ok(Followed::Hole(index.max(store.position()?.index + 1)));
                }
                // Joining says what is to be done.
                Err(Error::Lost { .. } | Error::Diverged { .. } | Error::Trimmed { .. }) => {
                    return Ok(Followed::Lost(None));
                }
                Err(error) => return Err(error),
            }
            synced.look(store, wire, members)?;
            // One that has not read yet who opened the world last would take it from whoever is bringing it to life.
            let is_current = tail.as_ref().is_none_or(Tail::has_caught_up) || boot_time() - began >= SILENCE_MS;
            if is_current && watch.is_due(members) {
                match self.can_open(watch, is_left) {
                    Ok(can) if can && tail.is_some() => return Ok(Followed::Due),
                    Ok(_) => {}
                    Err(text) => return Ok(Followed::Ends(text)),
                }
            }
        }
    }

    /// The next entry, if there is one soon. Begins to read behind `store` where it was not begun.
    fn next(&self, store: &Store, tail: &mut Option<Tail>) -> Result<Option<Entry>, Error> {
        let tail = match tail {
            Some(tail) => tail,
            None => tail.insert(tail_of(store, &self.wire)?),
        };
        tail.next_within(LOOK)
    }
}

/// Applies an entry. Gives why this store cannot follow it, if it cannot.
fn take(store: &Store, entry: &Entry, is_alone: &mut bool) -> Result<Option<Followed>, Error> {
    match &entry.body {
        Body::Open { .. } | Body::Close if *is_alone => {}
        // Joining refuses it: two worlds cannot be joined.
        Body::Step { .. } if *is_alone => return Ok(Some(Followed::Lost(None))),
        _ => {
            match store.apply(entry) {
                Err(Error::Rebased { snapshot }) => {
                    return Ok(Some(Followed::Lost(Some((snapshot, entry.position)))));
                }
                applied => applied?,
            }
            *is_alone = false;
        }
    }
    Ok(None)
}
