//! Keys that the node that answers has found right, as one that passes requests on remembers them: it knows then whose requests they
//! come with. What such a request may do is decided over there, each time.

use std::collections::HashMap;
use std::time::Duration;

use agentsvc_components::kernel::limit;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::peer::Holder;
use crate::http::shutdown::Shutdown;

/// SHA-256 of a key or of a session's token.
pub(crate) type KeyHash = [u8; 32];

/// How long one is remembered that is shown no more: the other node may have revoked it since.
const REMEMBERED: Duration = Duration::from_secs(60 * 60);

/// The keys.
#[derive(Default)]
pub(crate) struct Proven(Mutex<HashMap<KeyHash, Key>>);

struct Key {
    /// Whose it is.
    holder: Holder,
    /// Triggered when it is not remembered any more.
    ended: Shutdown,
    /// When it was found right last.
    at: Instant,
}

impl Key {
    fn is_of(&self, holder: Holder) -> bool {
        // The key of the configuration is the same from every address.
        self.holder == holder || matches!((self.holder, holder), (Holder::Owner(_), Holder::Owner(_)))
    }
}

impl Proven {
    /// Whose key it is, and what is triggered when that is not known any more; `None` for one that was not found right yet.
    pub(crate) fn find(&self, key: &KeyHash) -> Option<(Holder, Shutdown)> {
        self.0.lock().get(key).map(|key| (key.holder, key.ended.clone()))
    }

    /// The other node found it right, as the key of `holder`. Gives what is triggered when that is not known any more.
    pub(crate) fn learn(&self, key: KeyHash, holder: Holder) -> Shutdown {
        let (mut keys, at) = (self.0.lock(), Instant::now());
        if let Some(known) = keys.get_mut(&key).filter(|known| known.is_of(holder)) {
            known.at = at;
            return known.ended.clone();
        }
        if keys.len() >= limit::KEYS_PROVEN_MAX {
            let oldest = keys.iter().min_by_key(|(_, key)| key.at).map(|(key, _)| *key);
            oldest.and_then(|oldest| keys.remove(&oldest)).iter().for_each(|key| key.ended.trigger());
        }
        let ended = Shutdown::new();
        let before = keys.insert(key, Key { holder, ended: ended.clone(), at });
        before.iter().for_each(|before| before.ended.trigger());
        ended
    }

    /// The other node refused it.
    pub(crate) fn forget(&self, key: &KeyHash) {
        if let Some(key) = self.0.lock().remove(key) {
            key.ended.trigger();
        }
    }

    /// Forgets those that were not shown for long.
    pub(crate) fn sweep(&self) {
        self.0.lock().retain(|_, key| {
            let is_remembered = key.at.elapsed() < REMEMBERED;
            if !is_remembered {
                key.ended.trigger();
            }
            is_remembered
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;
    use uuid::Uuid;

    use super::*;
    use crate::http::rate::ClientKey;

    const NAMED: Holder = Holder::Named(Uuid::from_u128(1));
    const LIMITED: Holder = Holder::Limited(Uuid::from_u128(1));

    #[test]
    fn a_key_is_known_until_it_is_refused_or_becomes_another_ones() {
        let proven = Proven::default();
        assert!(proven.find(&[1; 32]).is_none());
        let ended = proven.learn([1; 32], NAMED);
        proven.learn([2; 32], Holder::Owner(ClientKey::V4(1)));
        proven.learn([1; 32], NAMED);
        let (holder, same) = proven.find(&[1; 32]).unwrap();
        assert!(holder == NAMED && !ended.is_triggered());
        let other = proven.learn([1; 32], LIMITED);
        assert!(ended.is_triggered() && same.is_triggered() && !other.is_triggered());
        proven.forget(&[1; 32]);
        proven.forget(&[3; 32]);
        assert!(other.is_triggered() && proven.find(&[1; 32]).is_none());
        let (_, owner) = proven.find(&[2; 32]).unwrap();
        proven.learn([2; 32], Holder::Owner(ClientKey::V4(2)));
        assert!(!owner.is_triggered());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_shown_for_long_is_forgotten_and_no_more_than_so_many_are_remembered() {
        let proven = Proven::default();
        let mut all = vec![proven.learn([0; 32], NAMED)];
        advance(REMEMBERED / 2).await;
        let key = |at: usize| {
            let mut key = [1; 32];
            key[..8].copy_from_slice(&at.to_le_bytes());
            key
        };
        all.extend((1..limit::KEYS_PROVEN_MAX).map(|at| proven.learn(key(at), NAMED)));
        assert!(!all.iter().any(Shutdown::is_triggered));
        all.push(proven.learn(key(0), NAMED));
        let triggered = |all: &[Shutdown]| all.iter().filter(|ended| ended.is_triggered()).count();
        assert!(triggered(&all) == 1 && all[0].is_triggered(), "that of the oldest");
        advance(REMEMBERED / 2).await;
        proven.learn(key(0), NAMED);
        proven.sweep();
        assert_eq!(triggered(&all), 1);
        advance(REMEMBERED / 2).await;
        proven.sweep();
        assert_eq!((triggered(&all), all.last().unwrap().is_triggered()), (limit::KEYS_PROVEN_MAX, false));
    }
}
