//! Taking the world over. Nothing is begun before the servers that it needs answer: while they choose who leads, a takeover would fail,
//! and take longer to be tried again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agentsvc_api::cluster::NodeRole;

use super::moment::boot_time;
use super::node::{Event, LOOK, Node, PAUSE, refuse};
use super::watch::{AGAIN_MS, Watch};
use crate::kernel::exchange;
use crate::kernel::store::{Error, Store};

/// Servers that answer within this time have not been waited for.
const AT_ONCE: Duration = Duration::from_millis(500);
/// How long it is waited for them before it is looked whether the world is still for this node.
const WAIT: Duration = Duration::from_secs(1);
/// How long they may take from then on.
const SLOWLY: Duration = Duration::from_secs(3);
/// Milliseconds before a takeover that failed because the servers did not answer is tried again.
const OUTAGE_MS: u64 = 250;

/// Milliseconds for which a node whose takeover failed like this leaves the world to others. That servers do not answer is nothing that
/// others could do better; but a node that fails `again` may be the only one for which they do not.
fn rest_after(error: &exchange::Error, again: bool) -> u64 {
    match error.downcast_ref::<Error>() {
        Some(Error::Journal(_)) if !again => OUTAGE_MS,
        _ => AGAIN_MS,
    }
}

impl Node {
    /// Has made, beside everything else, what the first takeover needs of the servers.
    pub(super) fn prepare(&self) {
        let wire = Arc::clone(&self.wire);
        self.wire.spawn(async move { while wire.can_open_within(WAIT).await.is_err() {} });
    }

    /// Can a node that is due open the world now? If the servers do not answer at once, waits until they do, or until it is due no
    /// more, and says no: what other nodes have done meanwhile is read first, until nothing more `is_left` to be read.
    ///
    /// # Errors
    /// This node must end.
    pub(super) fn can_open(&self, watch: &mut Watch, is_left: bool) -> Result<bool, String> {
        let Self { wire, members, .. } = self;
        if watch.has_answers() {
            return Ok(!is_left);
        }
        let (limit, began) = (if watch.has_waited() { SLOWLY } else { AT_ONCE }, boot_time());
        if wire.wait(wire.can_open_within(limit)).is_ok() {
            if boot_time() - began <= LOOK.as_millis() as u64 {
                return Ok(true);
            }
            watch.note_answers();
            return Ok(false);
        }
        tracing::info!("there is no owner, and the NATS servers do not answer at once: they may be choosing a leader");
        while !self.is_stopping() && members.must_give_way().is_none() && watch.is_due(members) {
            while let Ok(event) = self.events.try_recv() {
                if let Event::Panicked(text) = event {
                    return Err(text);
                }
                refuse(event);
            }
            match wire.wait(wire.can_open_within(WAIT)) {
                Ok(()) => break,
                Err(error) => members.set_problem("takeover", members.unless_new(began, error.to_string())),
            }
        }
        members.set_problem("takeover", None);
        watch.rank_anew();
        Ok(false)
    }

    /// Opens the world and brings it to life. When that did not succeed, gives the store back, and how many milliseconds the world is
    /// left to others for; `again` where it did not succeed the last time, either.
    pub(super) fn take_over(&mut self, store: Store, again: bool) -> Result<Option<(Store, u64)>, String> {
        let began = boot_time();
        self.members.set_role(NodeRole::Moving);
        let watch = store.watch();
        let taken = self.exchange.take_over(store, self.intake.take(), (self.entry)(), self.is_first_run);
        match taken {
            Ok(()) => {
                self.is_first_run = false;
                self.members.set_next(None);
                self.members.set_problem("reading", None);
                self.members.set_role(NodeRole::Owner);
                // Standbys refuse requests until they know where to send them.
                if let Err(error) = self.wire.wait(super::talk::say(&self.wire, &self.members)) {
                    tracing::debug!(%error, "the other nodes will be told soon that this one owns the world");
                }
                let epoch = self.members.standing.epoch.load(Ordering::Acquire);
                tracing::info!(epoch, ms = boot_time() - began, "this node owns the world");
                Ok(None)
            }
            Err(error) => {
                match error.downcast_ref::<Error>() {
                    Some(Error::Fenced { .. }) => tracing::info!("another node has just taken the world over"),
                    _ => tracing::warn!(%error, "this node could not take the world over"),
                }
                while !watch.is_closed_within(PAUSE) {
                    if self.is_stopping() {
                        return Err("the daemon stops while its store is being read".to_owned());
                    }
                }
                let store = Store::open(&*self.world_dir).map_err(|error| error.to_string())?;
                Ok(Some((store, rest_after(&error, again))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_do_not_answer_are_no_reason_to_leave_the_world_to_others() {
        let of = |error: Error| rest_after(&error.into(), false);
        assert_eq!(of(Error::Journal("no answer".to_owned())), OUTAGE_MS);
        let again = rest_after(&Error::Journal("no answer".to_owned()).into(), true);
        assert_eq!(again, AGAIN_MS, "it may be the only node for which they do not answer");
        assert_eq!([of(Error::Fenced { epoch: 2 }), of(Error::Poisoned)], [AGAIN_MS; 2]);
        assert_eq!(rest_after(&"the world contradicts itself".into(), false), AGAIN_MS);
    }
}
