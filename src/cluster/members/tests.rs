//! What nodes know of one another, by a clock that the tests set.

use super::*;

/// The node `b` at a time that a test sets.
pub(in super::super) fn at(now: &Arc<AtomicU64>) -> Members {
    let clock = Arc::clone(now);
    let clock: Box<dyn Fn() -> u64 + Send + Sync> = Box::new(move || clock.load(Ordering::Relaxed));
    Members { clock, ..Members::new("b", "http://b", 1) }
}

/// What another node says.
pub(in super::super) fn beat(node: &str, role: NodeRole, epoch: u64, index: u64) -> Beat {
    Beat { node: node.to_owned(), epoch, index, ..as_of(role) }
}

/// What an owner says that hands the world to `next`.
pub(in super::super) fn naming(node: &str, next: &str) -> Beat {
    Beat { next: Some(next.to_owned()), ..beat(node, NodeRole::Moving, 1, 5) }
}

fn as_of(role: NodeRole) -> Beat {
    let members = Members::new("x", "http://x", 2);
    members.set_role(role);
    members.beat()
}

#[test]
fn a_standby_knows_the_owner_for_as_long_as_it_is_heard() {
    let now = Arc::new(AtomicU64::new(10_000));
    let members = at(&now);
    members.set_role(NodeRole::Standby);
    assert_eq!(members.role(), Role::Standby { owner: None });
    members.hear(beat("old", NodeRole::Owner, 3, 9));
    members.hear(Beat { url: "http://a".to_owned(), ..beat("a", NodeRole::Owner, 4, 9) });
    let owner = Some("http://a".into());
    assert_eq!(members.role(), Role::Standby { owner: owner.clone() });
    now.fetch_add(SILENCE_MS - 1, Ordering::Relaxed);
    assert_eq!(members.role(), Role::Standby { owner });
    now.fetch_add(1, Ordering::Relaxed);
    assert_eq!(members.role(), Role::Standby { owner: None });
}

#[test]
fn that_a_node_does_not_know_the_servers_yet_is_no_problem_when_it_starts() {
    let now = Arc::new(AtomicU64::new(10_000));
    let members = at(&now);
    let problem = || members.unless_new(10_000, "no server answers".to_owned());
    assert_eq!(problem(), None);
    now.fetch_add(NEW_MS - 1, Ordering::Relaxed);
    assert_eq!(problem(), None);
    now.fetch_add(1, Ordering::Relaxed);
    assert_eq!(problem().as_deref(), Some("no server answers"));
}

#[test]
fn an_owner_that_hears_nobody_answers_no_more_until_it_does() {
    let now = Arc::new(AtomicU64::new(10_000));
    let members = at(&now);
    members.set_role(NodeRole::Owner);
    assert_eq!(members.role(), Role::Moving, "it has never heard of anybody");
    members.hear(members.beat());
    assert_eq!(members.role(), Role::Owner, "a server is there");
    now.fetch_add(ALONE_MS, Ordering::Relaxed);
    assert_eq!(members.role(), Role::Owner);
    now.fetch_add(1, Ordering::Relaxed);
    assert_eq!(members.role(), Role::Moving);
    // Of another node with the name of this one it learns nothing.
    members.hear(Beat { instance: 7, ..members.beat() });
    assert_eq!(members.role(), Role::Moving);
    members.hear(beat("a", NodeRole::Standby, 0, 0));
    assert_eq!(members.role(), Role::Owner);
}

#[test]
fn a_newer_epoch_that_others_have_learned_of_is_noticed_and_not_believed() {
    let members = at(&Arc::new(AtomicU64::new(10_000)));
    assert!(!members.standing.is_claimed());
    members.hear(beat("a", NodeRole::Standby, 5, 9));
    members.hear(beat("c", NodeRole::Owner, 4, 8));
    assert!(members.standing.is_claimed());
    assert_eq!(members.standing.newer(), None, "the journal shows none");
    members.standing.epoch.store(5, Ordering::Relaxed);
    assert!(!members.standing.is_claimed());
}

#[test]
fn the_best_standby_is_the_one_that_is_named_and_then_the_one_that_is_furthest() {
    let now = Arc::new(AtomicU64::new(10_000));
    let members = at(&now);
    members.standing.index.store(7, Ordering::Relaxed);
    members.hear(beat("silent", NodeRole::Standby, 1, 99));
    now.fetch_add(SILENCE_MS, Ordering::Relaxed);
    members.hear(beat("d", NodeRole::Standby, 1, 8));
    members.hear(beat("a", NodeRole::Standby, 1, 7));
    members.hear(beat("new", NodeRole::Joining, 1, 9));
    members.hear(Beat { draining: true, ..beat("leaves", NodeRole::Standby, 1, 9) });
    assert_eq!(members.candidates(None), ["d", "a", "b"]);
    assert_eq!(members.candidates(Some("b")), ["b", "d", "a"]);
    members.drain();
    assert_eq!(members.candidates(Some("b")), ["d", "a"]);
}
