//! The protocols of agentsvc: the HTTP server, its route table, streams and the web page.
//!
//! This crate turns a request into a command and a reply into a response. It knows nothing of the store, of providers
//! or of the configuration file.

pub mod a2a;
pub mod agent;
pub mod approval;
pub mod audit;
pub mod auto_dream;
pub mod backup;
pub mod browser;
pub mod budget;
pub mod channel;
pub mod chat;
pub mod checkpoint;
pub mod cluster;
pub mod comms;
pub mod config;
pub mod delivery;
pub mod event;
pub mod event_hook;
pub mod extension;
pub mod goal;
pub mod hand;
pub mod history;
pub mod hook;
pub mod http;
pub mod inbox;
pub mod injection;
pub mod knowledge;
pub mod log;
pub mod mcp;
pub mod media;
pub mod memory;
pub mod migration;
pub mod model;
pub mod openai;
pub mod pairing;
pub mod peer;
pub mod people;
pub mod plugin;
pub mod proactive_memory;
pub mod prompt;
pub mod provider;
pub mod query;
pub mod rehearsal;
pub mod schedule;
pub mod second_factor;
pub mod security;
pub mod session;
pub mod sign_in;
pub mod skill;
pub mod skill_evolution;
pub mod skill_source;
pub mod snapshot;
pub mod task;
pub mod template;
pub mod terminal;
pub mod tool;
pub mod trigger;
pub mod turn;
pub mod ui;
pub mod upload;
pub mod usage;
pub mod webhook;
pub mod widget;
pub mod workflow;
pub mod world;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use crate::http::access::Access;
pub use crate::http::api::{Api, Health};
use crate::http::domain::{Domains, HttpDomain};
pub use crate::http::server::serve;
pub use crate::http::settings::ApiSettings;
pub use crate::http::trace::TraceContext;

/// Every domain. OpenAPI numbers schemas of one name in this order, and queues are shown in it.
const LIST: &[HttpDomain] = &[
    world::DOMAIN,
    agent::DOMAIN,
    session::DOMAIN,
    turn::DOMAIN,
    migration::DOMAIN,
    snapshot::DOMAIN,
    upload::DOMAIN,
    memory::DOMAIN,
    schedule::DOMAIN,
    event::DOMAIN,
    goal::DOMAIN,
    task::DOMAIN,
    trigger::DOMAIN,
    log::DOMAIN,
    usage::DOMAIN,
    budget::DOMAIN,
    model::DOMAIN,
    config::DOMAIN,
    audit::DOMAIN,
    backup::DOMAIN,
    security::DOMAIN,
    approval::DOMAIN,
    second_factor::DOMAIN,
    provider::DOMAIN,
    openai::DOMAIN,
    workflow::DOMAIN,
    webhook::DOMAIN,
    rehearsal::DOMAIN,
    tool::DOMAIN,
    template::DOMAIN,
    chat::DOMAIN,
    ui::DOMAIN,
    query::DOMAIN,
    mcp::DOMAIN,
    a2a::DOMAIN,
    comms::DOMAIN,
    peer::DOMAIN,
    knowledge::DOMAIN,
    proactive_memory::DOMAIN,
    checkpoint::DOMAIN,
    auto_dream::DOMAIN,
    hand::DOMAIN,
    skill::DOMAIN,
    skill_source::DOMAIN,
    plugin::DOMAIN,
    skill_evolution::DOMAIN,
    extension::DOMAIN,
    browser::DOMAIN,
    delivery::DOMAIN,
    hook::DOMAIN,
    inbox::DOMAIN,
    injection::DOMAIN,
    event_hook::DOMAIN,
    channel::DOMAIN,
    people::DOMAIN,
    widget::DOMAIN,
    media::DOMAIN,
    prompt::DOMAIN,
    sign_in::DOMAIN,
    pairing::DOMAIN,
    history::DOMAIN,
    terminal::DOMAIN,
    cluster::DOMAIN,
];

/// Every domain of the daemon, and the table of their routes.
pub static DOMAINS: Domains = Domains::new(LIST);
