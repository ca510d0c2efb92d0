//! The route table: one line per family.

use crate::call::Call;
use crate::route::Route;

mod agent_bulk;
mod agent_change;
mod agent_check;
mod agent_command;
mod agent_lists;
mod agent_logs;
mod agent_metrics;
mod agent_sessions;
mod agent_socket;
mod agents;
mod approval_lists;
mod approval_totp;
mod approvals;
mod audit;
mod backup;
mod bindings;
mod budget;
mod catalog;
mod commands;
mod configuration;
mod cron_jobs;
mod events;
mod files;
mod goals;
mod memory;
mod messages;
mod migrate;
mod models;
mod page;
mod profiles;
mod provider_login;
mod providers;
mod query;
mod query_stream;
mod rehearsal_fires;
mod rehearsals;
mod schedules;
mod security;
mod session_messages;
mod session_search;
mod sessions;
mod snapshots;
mod system;
mod tasks;
mod templates;
mod tools;
mod traces;
mod trajectory;
mod triggers;
mod uploads;
mod usage;
mod usage_export;
mod v1;
mod workflow_runs;
mod workflows;
mod world;
mod world_events;

// What several families share.
mod agent_shape;
mod goal_templates;
mod lists;
mod model_field;
mod moment;
mod query_shape;
mod schedule_family;
mod schedule_shape;
mod served;
pub(crate) mod session_shape;
mod template_shape;
pub(crate) mod transcript;
mod turn_stream;
mod usage_days;
mod world_shape;

pub(crate) use agent_change::model_patch;
pub(crate) use system::health_keys;

#[cfg(test)]
mod tests;

/// Every family of routes.
const FAMILIES: &[&[Route]] = &[
    system::ROUTES,
    agents::ROUTES,
    agent_change::ROUTES,
    agent_lists::ROUTES,
    agent_bulk::ROUTES,
    agent_sessions::ROUTES,
    messages::ROUTES,
    migrate::ROUTES,
    agent_socket::ROUTES,
    sessions::ROUTES,
    session_search::ROUTES,
    snapshots::ROUTES,
    trajectory::ROUTES,
    uploads::ROUTES,
    files::ROUTES,
    memory::ROUTES,
    cron_jobs::ROUTES,
    events::ROUTES,
    goals::ROUTES,
    schedules::ROUTES,
    tasks::ROUTES,
    triggers::ROUTES,
    traces::ROUTES,
    agent_metrics::ROUTES,
    agent_logs::ROUTES,
    usage::ROUTES,
    usage_export::ROUTES,
    budget::ROUTES,
    models::ROUTES,
    catalog::ROUTES,
    configuration::ROUTES,
    audit::ROUTES,
    backup::ROUTES,
    security::ROUTES,
    approvals::ROUTES,
    approval_lists::ROUTES,
    approval_totp::ROUTES,
    providers::ROUTES,
    provider_login::ROUTES,
    v1::ROUTES,
    workflows::ROUTES,
    workflow_runs::ROUTES,
    rehearsals::ROUTES,
    rehearsal_fires::ROUTES,
    tools::ROUTES,
    templates::ROUTES,
    profiles::ROUTES,
    bindings::ROUTES,
    commands::ROUTES,
    page::ROUTES,
    session_messages::ROUTES,
    agent_command::ROUTES,
    agent_check::ROUTES,
    world::ROUTES,
    world_events::ROUTES,
    query::ROUTES,
    query_stream::ROUTES,
];

/// Every route of the daemon.
pub(crate) fn all() -> Vec<Route> {
    FAMILIES.iter().copied().flatten().copied().collect()
}

/// Is the body a bare array, which the list routes take in place of an object with one key?
fn is_array(call: &Call) -> bool {
    call.body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}
