//! The route table: one line per family.

use crate::http::call::Call;
use crate::http::route::Route;

// What several families share.

pub(crate) use crate::agent::change::model_patch;
pub(crate) use crate::world::system::health_keys;

/// Every family of routes.
const FAMILIES: &[&[Route]] = &[
    crate::world::system::ROUTES,
    crate::agent::routes::ROUTES,
    crate::agent::change::ROUTES,
    crate::agent::lists::ROUTES,
    crate::agent::bulk::ROUTES,
    crate::session::agent::ROUTES,
    crate::turn::routes::ROUTES,
    crate::migration::routes::ROUTES,
    crate::chat::routes::ROUTES,
    crate::session::routes::ROUTES,
    crate::session::search_routes::ROUTES,
    crate::snapshot::routes::ROUTES,
    crate::session::trajectory::ROUTES,
    crate::upload::routes::ROUTES,
    crate::upload::workspace::ROUTES,
    crate::memory::routes::ROUTES,
    crate::schedule::cron_jobs::ROUTES,
    crate::event::routes::ROUTES,
    crate::goal::routes::ROUTES,
    crate::schedule::routes::ROUTES,
    crate::task::routes::ROUTES,
    crate::trigger::routes::ROUTES,
    crate::turn::traces::ROUTES,
    crate::turn::metrics::ROUTES,
    crate::log::agent::ROUTES,
    crate::usage::routes::ROUTES,
    crate::usage::export::ROUTES,
    crate::budget::routes::ROUTES,
    crate::model::routes::ROUTES,
    crate::model::catalog_routes::ROUTES,
    crate::config::routes::ROUTES,
    crate::audit::routes::ROUTES,
    crate::backup::routes::ROUTES,
    crate::security::routes::ROUTES,
    crate::approval::routes::ROUTES,
    crate::approval::lists::ROUTES,
    crate::second_factor::routes::ROUTES,
    crate::provider::routes::ROUTES,
    crate::provider::login::ROUTES,
    crate::openai::routes::ROUTES,
    crate::workflow::routes::ROUTES,
    crate::workflow::runs::ROUTES,
    crate::rehearsal::routes::ROUTES,
    crate::rehearsal::fires::ROUTES,
    crate::tool::routes::ROUTES,
    crate::template::routes::ROUTES,
    crate::tool::profile_routes::ROUTES,
    crate::chat::binding_routes::ROUTES,
    crate::chat::commands::ROUTES,
    crate::ui::routes::ROUTES,
    crate::session::messages::ROUTES,
    crate::chat::agent_command::ROUTES,
    crate::agent::check::ROUTES,
    crate::world::routes::ROUTES,
    crate::world::events::ROUTES,
    crate::query::routes::ROUTES,
    crate::query::stream::ROUTES,
];

/// Every route of the daemon.
pub(crate) fn all() -> Vec<Route> {
    FAMILIES.iter().copied().flatten().copied().collect()
}

/// Is the body a bare array, which the list routes take in place of an object with one key?
pub(crate) fn is_array(call: &Call) -> bool {
    call.body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

#[cfg(test)]
mod tests;
