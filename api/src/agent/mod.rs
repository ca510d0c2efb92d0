//! The routes of agents and their JSON shapes.

pub mod audit_kinds;
pub(crate) mod bulk;
pub(crate) mod change;
pub(crate) mod check;
pub mod frozen_skills;
pub(crate) mod lists;
pub(crate) mod model_field;
pub(crate) mod routes;
pub(crate) mod shape;
pub mod signatures;
#[cfg(test)]
mod tests;
pub mod texts;

use std::sync::Arc;

use agentsvc_components::Refusal;
use agentsvc_components::kernel::id::UserId;
use agentsvc_systems::agent::OwnsAgent;

use crate::http::api::Api;
use crate::http::domain::HttpDomain;
use crate::http::error::Error;

/// What the domain brings to the API.
pub const DOMAIN: HttpDomain = HttpDomain::new("agent")
    .audit_kinds(audit_kinds::ALL)
    .owns(|api, user, agent| Box::pin(check_owner(api, user, agent)))
    .uses(&["provider", "snapshot"])
    .routes(&[routes::ROUTES, change::ROUTES, lists::ROUTES, bulk::ROUTES, check::ROUTES]);

/// Refuses an agent that does not belong to the user as one that does not exist.
async fn check_owner(api: Arc<Api>, user: UserId, agent: String) -> Result<(), Error> {
    // What is no id is told so by the route.
    let Ok(agent) = agent.parse() else { return Ok(()) };
    if api.bridge.ask(OwnsAgent { agent, user }).await? {
        Ok(())
    } else {
        Err(Refusal::not_found("agent", agent).into())
    }
}
