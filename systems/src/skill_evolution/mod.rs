//! Skills that change: what clients and agents write. Their files are outside the world; here are their limits.

pub mod limits;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { limits: limits::ALL, ..Domain::named("skill_evolution") };
