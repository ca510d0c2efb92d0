//! Paired devices: each has an API key of its own, and is notified with the others.
//!
//! | rule | why |
//! |---|---|
//! | a device and its key are made in one step, and one goes with the other | no key outlives its device, and no device is without one |
//! | a device is paired for whoever asked for its code, while they still may | a revoked key pairs nothing any more |
//! | a notification is a job: tried again over a restart until it was taken or its time is over | none is lost, and none comes hours later |

pub mod audit_kinds;
pub mod error_codes;
mod index;
pub mod limits;
mod list;
mod notify;
mod pair;
#[cfg(test)]
mod tests;

use agentsvc_components::pairing::{Device, DeviceId};

pub use list::DeviceView;
pub use notify::{NAME, NotifyDevices};
pub use pair::{PairDevice, RemoveDevice};

use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::on;
use crate::kernel::record::{Kind, restore_components};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit", "people"],
    kinds: &[Kind::component::<Device>()],
    restore: &[(Phase::Owned, restore_components::<Device>)],
    install: |world| {
        entities::install::<Device>(world);
        on(world, pair::key_gone);
    },
    measures: &[Measure::of::<DeviceId>("devices", |world, at| of(world, at, Device::bytes), entries(32, 2))],
    check: index::check,
    jobs: &[notify::JOB],
    commands: &[CommandDef::of::<PairDevice>(), CommandDef::of::<RemoveDevice>(), CommandDef::of::<NotifyDevices>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    ..Domain::named("pairing")
};
