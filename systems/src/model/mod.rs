//! Models as the world knows them: aliases, prices and contexts.

pub mod alias;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { uses: &[], ..Domain::named("model") };
