//! WebAssembly modules of skills: what they may take. They run in the daemon.

pub mod limits;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { limits: limits::ALL, ..Domain::named("wasm") };
