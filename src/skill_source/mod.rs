//! Where skills come from (spec 2, Skills and marketplaces): paths, archives, Git repositories, hubs and registries.

pub(crate) mod entry;
pub(crate) mod folders;
pub(crate) mod staging;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain { name: "skill_source", ..Domain::EMPTY };
