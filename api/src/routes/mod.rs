//! The route table: one line per family.

use crate::route::Route;

mod system;

/// Every family of routes.
const FAMILIES: &[&[Route]] = &[system::ROUTES];

/// Every route of the daemon.
pub(crate) fn all() -> Vec<Route> {
    FAMILIES.concat()
}
