//! Where sessions are found: by user, and by their end.

use std::collections::BTreeSet;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::sign_in::{SignInId, SignInSession};
use bevy_ecs::prelude::World;
use uuid::Uuid;

use super::{error_codes, limits};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Mirrored, Own, Put, indexed};
use crate::kernel::quota::Quota;
use crate::people;

/// Every session.
pub(super) type SignIns = Entities<SignInSession>;

/// What sessions may take.
pub(super) const SIGN_INS: Quota = Quota {
    count: limits::SIGN_INS_MAX,
    bytes: limits::SIGN_INS_BYTES_MAX,
    what: "sessions of people",
    code: error_codes::SIGN_INS_FULL,
};

indexed!(SignInSession: SignInPlaces, "sign-in session", is_narrowed => is_reached, own);

/// Users with a limited role know of their own sessions.
fn is_narrowed(world: &World) -> bool {
    people::limit(world).is_some()
}

fn is_reached(world: &World, it: &SignInSession) -> bool {
    people::limit(world).is_none_or(|user| it.user == Some(user))
}

fn own(world: &World, after: Option<SignInId>) -> Option<Own<'_, SignInId>> {
    let own = world.resource::<SignIns>().of(people::limit(world)?);
    Some(Box::new(own.into_iter().filter(move |id| Some(*id) > after)))
}

/// Sessions by their users, and by their ends.
#[derive(Debug, Default, PartialEq)]
pub struct SignInPlaces {
    of: BTreeSet<(UserId, SignInId)>,
    ends: BTreeSet<(Timestamp, SignInId)>,
}

impl SignInPlaces {
    /// Those of a user, the oldest first.
    pub(super) fn of(&self, user: UserId) -> Vec<SignInId> {
        let all = (user, SignInId(Uuid::nil()))..=(user, SignInId(Uuid::max()));
        self.of.range(all).map(|(_, id)| *id).collect()
    }

    /// The one that ends first, and when.
    pub(super) fn first_end(&self) -> Option<(Timestamp, SignInId)> {
        self.ends.first().copied()
    }
}

impl Mirrored<SignInSession> for SignInPlaces {
    fn place(&mut self, id: SignInId, it: &SignInSession, is_in: bool) {
        if let Some(user) = it.user {
            self.of.put((user, id), is_in);
        }
        self.ends.put((it.expires_at, id), is_in);
    }
}

/// Says which index is wrong, and which session lacks its user ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<SignInSession>(world, faults, |world, id, it, faults| {
        let has_user = it.user.is_some_and(|user| people::lives(world, user));
        faults.that(has_user, || format!("sign-in session {id}: its user does not exist"));
    });
    SIGN_INS.check(world.resource::<SignIns>().used, faults);
}
