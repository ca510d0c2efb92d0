//! What can happen in a run.

use super::rng::Rng;
use super::scene::NODES;

/// A kind of action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// An owner is given a group.
    Commit,
    /// An owner erases rows.
    Erase,
    /// A message arrives at the leader.
    Arrive,
    /// A message arrives and is still on its way.
    ArriveTwice,
    /// A message is lost.
    LoseMessage,
    /// The leader's entries reach a majority.
    Replicate,
    /// Another leader, with a part of what was on no majority.
    Elect,
    /// A node gets the answer that it waits for, if there is one.
    Answer,
    /// It waits no longer.
    LoseAnswer,
    /// A standby tries to take over.
    Open,
    /// A standby applies what it lacks.
    CatchUp,
    /// Everything goes well for a node until it waits for nothing.
    Calm,
    /// A node's disk is synced.
    Sync,
    /// A node's process is killed and starts again.
    Kill,
    /// The machine of a node loses what was not synced.
    PowerLoss,
    /// The home of a node is wiped.
    Wipe,
    /// The servers lose what they acknowledged.
    Lie,
}

/// How often each kind is drawn.
const WEIGHTS: [(What, usize); 17] = [
    (What::Commit, 22),
    (What::Erase, 3),
    (What::Arrive, 18),
    (What::ArriveTwice, 2),
    (What::LoseMessage, 2),
    (What::Replicate, 14),
    (What::Elect, 3),
    (What::Answer, 16),
    (What::LoseAnswer, 4),
    (What::Open, 5),
    (What::CatchUp, 6),
    (What::Calm, 8),
    (What::Sync, 2),
    (What::Kill, 1),
    (What::PowerLoss, 1),
    (What::Wipe, 1),
    (What::Lie, 2),
];

/// One action.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Action {
    pub(crate) what: What,
    pub(crate) node: usize,
    /// Whatever else it depends on follows from this.
    pub(crate) with: u64,
}

/// The actions of a seed. They begin with a takeover, so that there is an owner.
pub(crate) fn draw(seed: u64, count: usize) -> Vec<Action> {
    let mut rng = Rng(seed ^ 0xc105_7e12);
    let total: usize = WEIGHTS.iter().map(|(_, weight)| weight).sum();
    let begin = [What::Open, What::Calm].map(|what| Action { what, node: 0, with: 0 });
    let drawn = (0..count).map(|_| {
        let mut at = rng.below(total);
        let kind = WEIGHTS.iter().find(|(_, weight)| {
            let is_it = at < *weight;
            at = at.wrapping_sub(*weight);
            is_it
        });
        let what = kind.map_or(What::Calm, |(what, _)| *what);
        Action { what, node: rng.below(NODES), with: rng.roll() }
    });
    begin.into_iter().chain(drawn).collect()
}
