//! Models as the world knows them: their aliases, and the lines of those that wait for a slot of a provider.

pub(crate) mod admission;
mod metrics;

pub use admission::Drain;
pub(crate) use metrics::ModelTotals;

use bevy_ecs::prelude::World;

use crate::config::SettingsChanged;
use crate::kernel::counters::Totals;
use crate::kernel::domain::Domain;
use crate::kernel::fires::Fires;
use crate::kernel::reaction::on;
use admission::Admission;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["config", "agent"],
    install,
    has_work: |world| world.resource::<Fires>().calls_may() && world.resource::<Admission>().can_admit(),
    is_quiet: |world| world.resource::<Admission>().out() == 0,
    check: |world, faults| world.resource::<Admission>().check(faults),
    totals: &[Totals::of::<metrics::ModelTotals>()],
    metrics: metrics::ALL,
    ..Domain::named("model")
};

/// Prepares a new world for models.
fn install(world: &mut World) {
    world.init_resource::<Admission>();
    on(world, |world, _: &SettingsChanged| world.resource_mut::<Admission>().look_again());
}
