//! What an agent remembers under keys.

use crate::kernel::domain::Domain;
pub mod record;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "memory", uses: &[] };
