//! Events that clients and agents publish themselves (spec 1, Trigger event kinds, `custom`).

mod publish;

use crate::kernel::domain::Domain;
use crate::kernel::inputs::table::CommandDef;
pub use publish::PublishEvent;

/// What this domain brings.
pub(crate) const DOMAIN: Domain =
    Domain { uses: &[], commands: &[CommandDef::of::<PublishEvent>()], ..Domain::named("event") };

#[cfg(test)]
mod tests;
