//! The route table: one line per family.

use crate::route::Route;

mod page;
mod system;

/// Every family of routes.
const FAMILIES: &[&[Route]] = &[system::ROUTES];

/// Every route of the daemon.
pub(crate) fn all() -> Vec<Route> {
    FAMILIES.iter().copied().flatten().copied().chain(page::routes()).collect()
}
