//! The audit trail (spec 3, Audit and security).

use crate::kernel::domain::Domain;
pub mod record;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "audit", uses: &[] };
