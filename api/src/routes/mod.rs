//! The route table: one line per family.

use crate::route::Route;

mod system;

/// Every family of routes.
pub(crate) const FAMILIES: &[&[Route]] = &[system::ROUTES];
