//! Browsers of agents: what they may take. They run beside the daemon.

pub mod limits;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { limits: limits::ALL, ..Domain::named("browser") };
