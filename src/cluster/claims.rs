//! What is believed of what other nodes say: names and addresses of a sensible length, and no epoch that the journal does not show.

use std::sync::atomic::Ordering;

use super::members::Beat;
use super::moment::boot_time;
use super::nats::NatsJournal;
use super::node::Node;
use crate::kernel::store::Error;
use crate::kernel::store::journal::Journal;

/// Bytes of a name and of an address.
const NAME_BYTES_MAX: usize = 128;
const URL_BYTES_MAX: usize = 2_048;

impl Beat {
    /// Is it one that a node says?
    pub(super) fn is_fit(&self) -> bool {
        let is_name = |name: &str| (1..=NAME_BYTES_MAX).contains(&name.len());
        is_name(&self.node) && self.url.len() <= URL_BYTES_MAX && self.next.as_deref().is_none_or(is_name)
    }
}

impl Node {
    /// Looks in the journal whether another node has opened the world, if one says so.
    pub(super) fn look_for_newer(&self) {
        let standing = &self.members.standing;
        let Some(newest) = standing.claim_to_check(boot_time()) else { return };
        let journal = NatsJournal::new(&self.wire, standing, &newest, None);
        let found = journal.read(&newest).and_then(|mut entries| {
            entries.try_fold(newest.epoch, |epoch, entry| Ok(epoch.max(entry?.position.epoch)))
        });
        match found {
            Ok(epoch) => standing.hear(epoch),
            // Others have gone on.
            Err(Error::Trimmed { .. } | Error::Diverged { .. }) => standing.hear(newest.epoch + 1),
            Err(error) => tracing::debug!(%error, "it is not known whether another node owns the world"),
        }
        let own = standing.epoch.load(Ordering::Acquire);
        tracing::debug!(own, newer = standing.newer(), "another node says that there is a newer epoch");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use agentsvc_api::cluster::NodeRole;

    use super::super::members::NODES_MAX;
    use super::super::members::tests::{at, beat};
    use super::super::nats::Standing;
    use super::*;
    use crate::kernel::store::journal::entry::Position;

    #[test]
    fn names_and_addresses_are_bounded() {
        let of = |node: &str| beat(node, NodeRole::Standby, 1, 1);
        assert!(of("a").is_fit() && of(&"a".repeat(NAME_BYTES_MAX)).is_fit());
        assert!(!of("").is_fit() && !of(&"a".repeat(NAME_BYTES_MAX + 1)).is_fit());
        assert!(!Beat { url: "u".repeat(URL_BYTES_MAX + 1), ..of("a") }.is_fit());
        assert!(!Beat { next: Some("a".repeat(NAME_BYTES_MAX + 1)), ..of("a") }.is_fit());
    }

    #[test]
    fn a_few_nodes_are_kept_in_mind_and_those_that_speak_stay() {
        let now = Arc::new(AtomicU64::new(10_000));
        let members = at(&now);
        for other in 0..200 {
            now.fetch_add(1, Ordering::Relaxed);
            members.hear(beat("alive", NodeRole::Standby, 1, 1));
            members.hear(beat(&format!("n{other}"), NodeRole::Standby, 1, 1));
        }
        assert_eq!(members.others.lock().len(), NODES_MAX);
        assert!(members.other("alive").is_some() && members.other("n199").is_some() && members.other("n0").is_none());
    }

    #[test]
    fn an_epoch_that_a_node_says_is_looked_for_and_not_believed() {
        let standing = Standing::default();
        let newest = Position { epoch: 3, index: 9, ..Position::default() };
        standing.note(&newest);
        assert_eq!(standing.claim_to_check(10_000), None);
        standing.claim(3);
        assert!(!standing.is_claimed());
        standing.claim(u64::MAX);
        assert!(standing.is_claimed());
        assert_eq!(standing.newer(), None);
        assert_eq!(standing.claim_to_check(10_000), Some(newest));
        standing.claim(u64::MAX);
        assert_eq!(standing.claim_to_check(10_001), None, "it was looked just now");
        assert_eq!(standing.claim_to_check(11_000), Some(newest));
        standing.hear(4);
        assert_eq!(standing.newer(), Some(4), "the journal says so");
    }
}
