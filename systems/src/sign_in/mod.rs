//! Sessions of people who signed in at an identity provider or with a password.
//!
//! | rule | why |
//! |---|---|
//! | a token is stored as its SHA-256 | who reads the store, a backup or the input log has no session |
//! | a session may do what its user may do now | a change of the role holds at once |
//! | a session ends with its time, with its user, or when someone ends it | none outlives its person |
//! | a user has a bounded number of sessions, and the oldest ends first | nobody is kept out by sessions that were left open |

pub mod audit_kinds;
pub mod error_codes;
mod index;
mod keep;
pub mod limits;
mod list;
mod start;
#[cfg(test)]
mod tests;

use agentsvc_components::sign_in::{SignInId, SignInSession};

pub use list::SignInView;
pub use start::{SignIn, SignedIn, Who};

use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities::{self, Remove};
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::on;
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::stage::Stage;
use crate::people;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit", "people"],
    kinds: &[Kind::component::<SignInSession>()],
    restore: &[(Phase::Owned, restore_components::<SignInSession>), (Phase::Joined, keep::restored)],
    install: |world| {
        entities::install::<SignInSession>(world);
        people::grant_also(world, list::grants);
        on(world, keep::user_gone);
        on(world, keep::used);
    },
    measures: &[Measure::of::<SignInId>(
        "sign_in_sessions",
        |world, at| of(world, at, SignInSession::bytes),
        entries(40, 3),
    )],
    systems: &[System { stage: Stage::Time, name: "sign_in_beat", run: keep::beat }],
    next_due: keep::next_due,
    clock_set_back: keep::clock_set_back,
    check: index::check,
    commands: &[CommandDef::of::<SignIn>(), CommandDef::of::<Remove<SignInSession>>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    ..Domain::named("sign_in")
};
