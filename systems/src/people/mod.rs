//! Users and API keys: who may do what.
//!
//! | rule | why |
//! |---|---|
//! | a key is stored as its SHA-256 | who reads the store, a backup or the input log has no key |
//! | a key of a user has the role that the user has now | a change of the role holds at once |
//! | a key without a user has the role `admin` or `owner` | the other roles reach what is their user's own |
//! | a key whose time was over once stays so | a clock that is set back brings none back |
//! | a user goes with all keys | no key outlives its person |
//! | a user of the configuration is changed by the configuration alone | what a client changes would be undone by the next start |

pub mod audit_kinds;
mod change;
mod configured;
pub mod error_codes;
mod expire;
mod identity;
mod index;
pub mod limits;
mod list;
mod owners;
mod reach;
#[cfg(test)]
mod tests;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::people::{ApiKey, User};

pub use change::{CreateKey, CreateUser, NoteKeyUse, UpdateUser, UserFields};
pub(crate) use change::{check_acting_key, create_key, revoke};
pub use configured::{ConfiguredUser, SetConfiguredUsers};
pub use identity::Identity;
pub(crate) use identity::{configured_user, user_of};
pub use list::{KeyGrant, KeyView, ListGrants, UserView};
pub(crate) use list::{bound_to, free_key_name, grant_also, seen_key, seen_user};
pub(crate) use owners::{Owners, own_agent_ids, own_agents};
pub(crate) use reach::{
    ancestors, family_of, holder, holder_of, is_at_rest, limit, limit_of, lives, reaches, reaches_of,
};

use crate::kernel::clock::Now;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities::{self, Remove};
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::stage::Stage;

/// A user goes. What others keep of that user goes too; the agents stay.
pub(crate) struct UserGone(pub(crate) UserId);

/// A key goes, by itself or with its user.
pub(crate) struct KeyGone(pub(crate) KeyId);

/// What lets someone in and is no key was used.
pub(crate) struct GrantUsed {
    pub(crate) key: KeyId,
    pub(crate) at: Timestamp,
}

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit"],
    kinds: &[Kind::component::<User>(), Kind::component::<ApiKey>()],
    restore: &[(Phase::Owned, restore_components::<User>), (Phase::Owned, restore_components::<ApiKey>)],
    install: |world| {
        entities::install::<User>(world);
        entities::install::<ApiKey>(world);
    },
    measures: &[
        Measure::of::<UserId>("users", |world, at| of(world, at, User::bytes), entries(32, 3)),
        Measure::of::<KeyId>("keys", |world, at| of(world, at, ApiKey::bytes), entries(32, 3)),
    ],
    systems: &[System {
        stage: Stage::Time,
        name: "people_beat",
        run: |world| expire::beat(world, world.resource::<Now>().0),
    }],
    next_due: expire::next_due,
    check: index::check,
    commands: &[
        CommandDef::of::<CreateKey>(),
        CommandDef::of::<Remove<ApiKey>>(),
        CommandDef::of::<NoteKeyUse>(),
        CommandDef::of::<CreateUser>(),
        CommandDef::of::<UpdateUser>(),
        CommandDef::of::<Remove<User>>(),
        CommandDef::of::<SetConfiguredUsers>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    ..Domain::named("people")
};
