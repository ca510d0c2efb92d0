//! Shares of a pool: so that no user and no family of agents takes the room of all others, each has a part of it. The index of a
//! kind keeps the sums beside those of its [`Quota`]; nothing looks at all entities, or at all agents of a user.

use std::collections::BTreeMap;

use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::limit::POOL_SHARES;
use agentsvc_components::{ErrorCode, Refusal};

use super::quota::{Quota, Used};

/// The agents that take the share of a holder, for people.
pub(crate) const fn whose(holder: Holder) -> &'static str {
    match holder {
        Holder::Family(_) => "an agent and those spawned below it",
        Holder::User(_) => "a user and the agents of the user",
    }
}

/// The refusal of a holder who has all it may have, so many of something.
pub(crate) fn full(holder: Holder, most: impl std::fmt::Display, what: &str, code: ErrorCode) -> Refusal {
    Refusal::full(format!("{} may have at most {most} {what} together; delete some first", whose(holder)), code)
}

/// How many of so many places a holder may have at once: a user with a limited role one in [`POOL_SHARES`], at least one; a family of
/// agents leaves as many to the others, where there are enough.
pub(crate) fn places_of(all: usize, holder: Option<Holder>) -> usize {
    match holder {
        None => all,
        Some(Holder::User(_)) => (all / POOL_SHARES).max(1),
        Some(Holder::Family(_)) => all - all / POOL_SHARES,
    }
}

/// What each holder takes of a pool. Those who take nothing have no entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares(BTreeMap<Holder, Used>);

impl Shares {
    /// What a holder takes.
    fn of(&self, holder: Holder) -> Used {
        self.0.get(&holder).copied().unwrap_or_default()
    }

    /// A holder takes so much more. What nobody holds is bounded with all others alone.
    pub(crate) fn add(&mut self, holder: Option<Holder>, count: usize, bytes: usize) {
        let Some(holder) = holder.filter(|_| (count, bytes) != (0, 0)) else { return };
        let used = self.0.entry(holder).or_default();
        (used.count, used.bytes) = (used.count + count, used.bytes + bytes);
    }

    /// A holder takes so much less.
    pub(crate) fn remove(&mut self, holder: Option<Holder>, count: usize, bytes: usize) {
        let Some(holder) = holder else { return };
        let Some(used) = self.0.get_mut(&holder) else { return };
        (used.count, used.bytes) = (used.count.saturating_sub(count), used.bytes.saturating_sub(bytes));
        if *used == Used::default() {
            self.0.remove(&holder);
        }
    }

    /// A holder takes so much more, or so much less.
    pub(crate) fn put(&mut self, holder: Option<Holder>, count: usize, bytes: usize, is_in: bool) {
        if is_in {
            self.add(holder, count, bytes);
        } else {
            self.remove(holder, count, bytes);
        }
    }

    /// Has a holder room for one more of a pool of so many?
    pub(crate) fn has_place(&self, pool: usize, holder: Option<Holder>) -> bool {
        self.has_room(Used { count: pool, bytes: 0 }, holder, 1, 0)
    }

    /// Has a holder room for so many more, with so many bytes more, in a pool of so many with so many bytes? There always is for none,
    /// and for texts that are not longer.
    pub(crate) fn has_room(&self, pool: Used, holder: Option<Holder>, more: usize, bytes: usize) -> bool {
        let Some(holder) = holder else { return true };
        let used = self.of(holder);
        (more == 0 || used.count.saturating_add(more) <= pool.count / POOL_SHARES)
            && (bytes == 0 || used.bytes.saturating_add(bytes) <= pool.bytes / POOL_SHARES)
    }

    /// Refuses `more` of them, with so many bytes more, where the holder has no room for that.
    pub(crate) fn admit(
        &self,
        quota: &Quota,
        holder: Option<Holder>,
        more: usize,
        bytes: usize,
    ) -> Result<(), Refusal> {
        let Some(holder) = holder else { return Ok(()) };
        let (used, most, most_bytes) = (self.of(holder), quota.count / POOL_SHARES, quota.bytes / POOL_SHARES);
        if more > 0 && used.count.saturating_add(more) > most {
            return Err(full(holder, most, quota.what, quota.code));
        }
        if bytes > 0 && used.bytes.saturating_add(bytes) > most_bytes {
            return Err(full(holder, format!("{most_bytes} bytes of"), quota.what, quota.code));
        }
        Ok(())
    }

    /// Whose share something takes when `by` makes it `longer` than `now`: as before, but what nobody held is then held by whoever
    /// made it longer. Refused where there is no room for that.
    pub(crate) fn grown(
        &self,
        quota: &Quota,
        (was, by): (Option<Holder>, Option<Holder>),
        (now, longer): (usize, usize),
    ) -> Result<Option<Holder>, Refusal> {
        if longer == 0 || by.is_none() {
            return Ok(was);
        }
        match was {
            Some(_) => self.admit(quota, was, 0, longer).map(|()| was),
            None => self.admit(quota, by, 1, now + longer).map(|()| by),
        }
    }

    /// Does a holder take more bytes than its share?
    pub(crate) fn is_over(&self, quota: &Quota, holder: Holder) -> bool {
        self.of(holder).bytes > quota.bytes / POOL_SHARES
    }
}
