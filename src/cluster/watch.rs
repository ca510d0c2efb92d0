//! When a standby takes over: its owner has closed the world or is silent, and no better standby does it first.

use agentsvc_api::cluster::NodeRole;

use super::members::{BEAT_MS, Members, SILENCE_MS};
use crate::kernel::store::journal::entry::{Body, Entry};

/// Milliseconds by which each standby waits longer than the one before it.
const RANK_MS: u64 = 500;
/// Milliseconds in which a node that has opened the world says so.
const OPENING_MS: u64 = 1_000;
/// Milliseconds before a standby that failed to take over tries again.
pub(super) const AGAIN_MS: u64 = 2_000;

/// What a standby has seen of owners.
pub(super) struct Watch {
    /// Since when it looks.
    began: u64,
    /// Who opened the newest epoch, and when that was read; `None` before one was.
    opener: Option<(String, u64)>,
    /// The newest epoch was closed by its owner.
    is_closed: bool,
    /// Since when there is no owner.
    lost_since: Option<u64>,
    /// To whom the last owner handed the world.
    named: Option<String>,
    /// Not before this moment.
    not_before: u64,
    /// It was due, and had to wait until the servers answered.
    has_waited: bool,
    /// They have answered, and what was written until then is to be read.
    has_answers: bool,
}

impl Watch {
    /// Looks for owners, as it has since `began`, and is not due before `not_before`: one that gave the world up because it could not
    /// go on leaves it to others first.
    pub(super) fn new(began: u64, not_before: u64) -> Self {
        Self {
            began,
            opener: None,
            is_closed: false,
            lost_since: None,
            named: None,
            not_before,
            has_waited: false,
            has_answers: false,
        }
    }

    /// The servers did not answer while it was due, and do again: the best standby comes first once more, for another one may have
    /// had their answer sooner.
    pub(super) fn rank_anew(&mut self) {
        (self.lost_since, self.has_waited, self.has_answers) = (None, true, false);
    }

    /// Looks anew, not before `not_before`, and knows who opened the world last.
    pub(super) fn anew(self, began: u64, not_before: u64) -> Self {
        Self { opener: self.opener, ..Self::new(began, not_before) }
    }

    /// The servers have answered, but not at once.
    pub(super) fn note_answers(&mut self) {
        self.has_answers = true;
    }

    /// Have they, since it became due?
    pub(super) fn has_answers(&self) -> bool {
        self.has_answers
    }

    /// Did it wait for the servers, since there was an owner?
    pub(super) fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// An entry was applied, at `now`.
    pub(super) fn note(&mut self, entry: &Entry, now: u64) {
        match &entry.body {
            Body::Open { node } => {
                self.opener = Some((node.clone().into_owned(), now));
                (self.is_closed, self.lost_since, self.named) = (false, None, None);
                (self.has_waited, self.has_answers) = (false, false);
            }
            Body::Close => self.is_closed = true,
            _ => {}
        }
    }

    /// Is it for this node to take over now?
    pub(super) fn is_due(&mut self, members: &Members) -> bool {
        let now = members.now();
        if members.is_draining() || now < self.not_before || !members.hears_within(3 * BEAT_MS) {
            (self.lost_since, self.has_answers) = (None, false);
            return false;
        }
        if let Some(named) = members.named() {
            self.named = Some(named);
        }
        let is_owned = || members.owner().is_some() || members.is_being_finished() || self.is_opening(members, now);
        if !self.is_closed && is_owned() {
            (self.lost_since, self.has_waited, self.has_answers) = (None, false, false);
            return false;
        }
        if !self.is_closed && now - self.began < SILENCE_MS {
            return false;
        }
        let since = *self.lost_since.get_or_insert(now);
        let candidates = members.candidates(self.named.as_deref());
        let rank = candidates.iter().position(|node| node == members.node());
        rank.is_some_and(|rank| now - since >= rank as u64 * RANK_MS)
    }

    /// Has another node opened the world, and is it on its way to life?
    fn is_opening(&self, members: &Members, now: u64) -> bool {
        let Some((node, read)) = &self.opener else { return false };
        let Some(opener) = members.other(node).filter(|it| it.is_alive(now)) else { return false };
        opener.beat.role() == NodeRole::Moving || now - read < OPENING_MS
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::super::members::Beat;
    use super::super::members::tests::{at, beat};
    use super::*;
    use crate::kernel::store::journal::entry::Position;

    /// A standby `b` that hears of others, at a time that the test sets.
    struct Standby {
        now: Arc<AtomicU64>,
        members: Members,
        watch: Watch,
    }

    impl Standby {
        fn new() -> Self {
            let now = Arc::new(AtomicU64::new(10_000));
            let members = at(&now);
            members.set_role(NodeRole::Standby);
            Self { watch: Watch::new(10_000, 0), now, members }
        }

        /// After `ms` in which these say what they are, four times a second; is it due then?
        fn after(&mut self, ms: u64, others: &[(&str, NodeRole)]) -> bool {
            let until = self.now.load(Ordering::Relaxed) + ms;
            while self.now.load(Ordering::Relaxed) < until {
                assert!(!self.watch.is_due(&self.members), "too early");
                self.now.fetch_add(BEAT_MS.min(until - self.now.load(Ordering::Relaxed)), Ordering::Relaxed);
                self.members.hear(self.members.beat());
                others.iter().for_each(|(node, role)| self.members.hear(beat(node, *role, 1, 5)));
            }
            self.watch.is_due(&self.members)
        }

        fn read(&mut self, body: Body<'static>) {
            let entry = Entry { position: Position::default(), body };
            self.watch.note(&entry, self.now.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn it_takes_over_when_there_is_no_owner_or_the_owner_is_silent() {
        let mut alone = Standby::new();
        assert!(!alone.after(SILENCE_MS - 1, &[]));
        assert!(alone.after(1, &[]));

        let mut standby = Standby::new();
        assert!(!standby.after(20_000, &[("a", NodeRole::Owner)]));
        assert!(!standby.after(SILENCE_MS - 1, &[]));
        assert!(standby.after(1, &[]));
        standby.members.drain();
        assert!(!standby.watch.is_due(&standby.members));
    }

    #[test]
    fn it_takes_over_at_once_when_the_owner_closes_and_another_owner_keeps_it_from_that() {
        let mut standby = Standby::new();
        assert!(!standby.after(3_000, &[("a", NodeRole::Owner)]));
        standby.read(Body::Close);
        assert!(standby.watch.is_due(&standby.members));
        standby.read(Body::Open { node: "c".into() });
        assert!(!standby.after(OPENING_MS, &[("c", NodeRole::Standby)]));
        assert!(!standby.after(20_000, &[("c", NodeRole::Moving)]), "its world is being loaded");
        assert!(!standby.after(3_000, &[("c", NodeRole::Owner)]));
    }

    #[test]
    fn it_waits_until_an_owner_has_answered_what_it_has_begun() {
        let mut standby = Standby::new();
        assert!(!standby.after(3_000, &[("a", NodeRole::Owner)]));
        let finishing = || Beat { finishing: true, draining: true, ..beat("a", NodeRole::Moving, 1, 5) };
        for _ in 0..20 {
            standby.now.fetch_add(SILENCE_MS - 1, Ordering::Relaxed);
            standby.members.hear(standby.members.beat());
            standby.members.hear(finishing());
            assert!(!standby.watch.is_due(&standby.members));
        }
        standby.read(Body::Close);
        assert!(standby.watch.is_due(&standby.members), "it has");
    }

    #[test]
    fn a_better_standby_and_one_that_is_named_come_first() {
        let mut standby = Standby::new();
        let others = [("a", NodeRole::Standby), ("c", NodeRole::Standby)];
        assert!(!standby.after(SILENCE_MS + 2 * RANK_MS - BEAT_MS, &others), "both have higher indexes");
        assert!(standby.after(BEAT_MS, &others));

        let mut standby = Standby::new();
        standby.after(3_000, &[("a", NodeRole::Owner)]);
        standby.members.hear(super::super::members::tests::naming("a", "b"));
        standby.read(Body::Close);
        assert!(standby.watch.is_due(&standby.members), "it is named");
    }

    #[test]
    fn one_that_joins_anew_has_heard_the_others_all_along() {
        let mut standby = Standby::new();
        assert!(!standby.after(3_000, &[("a", NodeRole::Owner)]));
        assert!(!standby.after(SILENCE_MS - 1, &[]));
        standby.now.fetch_add(1, Ordering::Relaxed);
        standby.watch = Watch::new(10_000, 0);
        assert!(standby.watch.is_due(&standby.members), "it does not begin to listen now");
        let now = standby.now.load(Ordering::Relaxed);
        standby.watch = Watch::new(10_000, now + AGAIN_MS);
        assert!(!standby.after(AGAIN_MS - 1, &[]), "it leaves the world to others");
        assert!(standby.after(1, &[]));
    }

    #[test]
    fn when_the_servers_answer_again_the_best_standby_comes_first() {
        let mut standby = Standby::new();
        let others = [("a", NodeRole::Standby)];
        assert!(standby.after(SILENCE_MS + RANK_MS, &others) && !standby.watch.has_waited());
        standby.watch.rank_anew();
        assert!(!standby.after(RANK_MS - 1, &others) && standby.watch.has_waited());
        assert!(standby.after(1, &others), "the other one has not taken over");
        standby.read(Body::Open { node: "a".into() });
        assert!(!standby.watch.has_waited() && !standby.watch.is_due(&standby.members));
    }

    #[test]
    fn one_that_joins_anew_knows_who_is_bringing_the_world_to_life() {
        let mut standby = Standby::new();
        assert!(!standby.after(SILENCE_MS - 1, &[]));
        standby.read(Body::Open { node: "c".into() });
        assert!(!standby.after(2 * OPENING_MS, &[("c", NodeRole::Moving)]));
        standby.watch = standby.watch.anew(10_000, 0);
        assert!(!standby.after(20_000, &[("c", NodeRole::Moving)]), "its world is being loaded");
        assert!(standby.watch.anew(10_000, 0).opener.is_some());
    }

    #[test]
    fn answers_of_the_servers_hold_until_there_is_an_owner() {
        let mut standby = Standby::new();
        assert!(standby.after(SILENCE_MS, &[]));
        standby.watch.note_answers();
        assert!(standby.watch.is_due(&standby.members) && standby.watch.has_answers());
        standby.read(Body::Open { node: "a".into() });
        assert!(!standby.watch.has_answers());
        standby.watch.note_answers();
        standby.watch.rank_anew();
        assert!(!standby.watch.has_answers());
    }

    #[test]
    fn one_that_hears_no_server_does_not_try() {
        let mut standby = Standby::new();
        assert!(!standby.after(500, &[("a", NodeRole::Owner)]));
        standby.now.fetch_add(20_000, Ordering::Relaxed);
        assert!(!standby.watch.is_due(&standby.members));
        assert!(!standby.after(BEAT_MS, &[("a", NodeRole::Owner)]));
    }
}
