//! Other nodes (spec 3, Network peers). Their messages come in as any other message; the rest is outside the world.

pub mod limits;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { limits: limits::ALL, ..Domain::named("peer") };
