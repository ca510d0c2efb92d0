//! Uploads on their way in: so many at once, and fewer of one user.

use std::collections::HashMap;
use std::sync::Arc;

use agentsvc_api::http::files::FilesError;
use agentsvc_api::http::principal;
use agentsvc_components::kernel::limit::{UPLOADS_OPEN_MAX, UPLOADS_OPEN_OF_USER_MAX};
use parking_lot::Mutex;
use uuid::Uuid;

/// How many are on their way in.
#[derive(Default)]
pub(super) struct Slots(Mutex<Open>);

#[derive(Default)]
struct Open {
    all: usize,
    /// By user, or named key without one. No entry is 0.
    of: HashMap<Uuid, usize>,
}

/// One of the uploads that may be on their way in at once, until it is dropped.
pub(super) struct Slot {
    slots: Arc<Slots>,
    of: Option<Uuid>,
}

impl Slots {
    /// A slot for whoever acts.
    pub(super) fn take(self: &Arc<Self>) -> Result<Slot, FilesError> {
        let (of, mut open) = (principal::actor().user_or_key(), self.0.lock());
        let own = of.and_then(|of| open.of.get(&of).copied()).unwrap_or(0);
        if open.all >= UPLOADS_OPEN_MAX || own >= UPLOADS_OPEN_OF_USER_MAX {
            return Err(FilesError::Busy("too many concurrent uploads".to_owned()));
        }
        open.all += 1;
        if let Some(of) = of {
            open.of.insert(of, own + 1);
        }
        drop(open);
        Ok(Slot { slots: Arc::clone(self), of })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.slots.0.lock();
        open.all -= 1;
        let Some(of) = self.of else { return };
        let left = open.of.get(&of).map_or(0, |own| own - 1);
        if left == 0 {
            open.of.remove(&of);
        } else {
            open.of.insert(of, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Actor;
    use agentsvc_components::kernel::id::{KeyId, UserId};

    use super::*;

    #[test]
    fn one_user_leaves_uploads_to_others() {
        let slots = Arc::new(Slots::default());
        let by = |key: usize, user: Option<u128>| Actor::Key {
            key: KeyId(Uuid::from_u128(key as u128)),
            user: user.map(|user| UserId(Uuid::from_u128(user))),
        };
        let take = |actor| principal::acting_now(actor, || slots.take());
        // Whichever of the user's keys it is.
        let mut open: Vec<_> = (0..UPLOADS_OPEN_OF_USER_MAX).map(|at| take(by(at % 2, Some(7))).unwrap()).collect();
        assert!(matches!(take(by(0, Some(7))), Err(FilesError::Busy(_))));
        open.push(take(by(9, None)).unwrap());
        open.push(take(Actor::Api).unwrap());
        open.remove(0);
        open.push(take(by(1, Some(7))).unwrap());
        assert!(take(by(1, Some(7))).is_err());
        drop(open);
        let left = slots.0.lock();
        assert!(left.all == 0 && left.of.is_empty());
    }
}
