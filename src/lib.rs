//! The daemon: the kernel, the domains over it, and what wires both.

/// Tests of this crate and those beside it share code, which names the crate alike.
#[cfg(test)]
extern crate self as agentsvc;

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
pub mod compaction;
pub mod config;
pub mod daemon;
pub mod delivery;
pub mod doctor;
pub mod event;
pub mod event_hook;
pub mod extension;
pub mod goal;
pub mod hand;
pub mod history;
pub mod hook;
pub mod inbox;
pub mod kernel;
pub mod knowledge;
pub mod log;
pub mod mcp;
pub mod media;
pub mod memorize;
pub mod memory;
pub mod memory_index;
pub mod migration;
pub mod model;
pub mod pairing;
pub mod peer;
pub mod people;
pub mod plugin;
pub mod proactive_memory;
pub mod prompt;
pub mod provider;
pub mod query;
pub mod rehearsal;
pub mod replay;
pub mod schedule;
pub mod second_factor;
pub mod security;
pub mod session;
pub mod sign_in;
pub mod skill;
pub mod skill_evolution;
pub mod skill_scan;
pub mod skill_source;
pub mod snapshot;
pub mod task;
pub mod template;
pub mod terminal;
pub mod tool;
pub mod trigger;
pub mod turn;
pub mod upload;
pub mod usage;
pub mod wasm;
pub mod web;
pub mod webhook;
pub mod workflow;
pub mod world;

use kernel::domain::{Brought, Domain};

/// Every domain, one line each. A domain is a folder that no other names unless its `uses` says so.
pub const DOMAINS: &[Domain] = &[
    agent::DOMAIN,
    session::DOMAIN,
    usage::DOMAIN,
    history::DOMAIN,
    turn::DOMAIN,
    model::DOMAIN,
    provider::DOMAIN,
    compaction::DOMAIN,
    budget::DOMAIN,
    audit::DOMAIN,
    approval::DOMAIN,
    template::DOMAIN,
    second_factor::DOMAIN,
    security::DOMAIN,
    event::DOMAIN,
    trigger::DOMAIN,
    schedule::DOMAIN,
    goal::DOMAIN,
    prompt::DOMAIN,
    auto_dream::DOMAIN,
    task::DOMAIN,
    workflow::DOMAIN,
    webhook::DOMAIN,
    delivery::DOMAIN,
    hook::DOMAIN,
    inbox::DOMAIN,
    event_hook::DOMAIN,
    memory::DOMAIN,
    knowledge::DOMAIN,
    proactive_memory::DOMAIN,
    memory_index::DOMAIN,
    memorize::DOMAIN,
    upload::DOMAIN,
    checkpoint::DOMAIN,
    skill::DOMAIN,
    skill_scan::DOMAIN,
    skill_source::DOMAIN,
    skill_evolution::DOMAIN,
    tool::DOMAIN,
    browser::DOMAIN,
    media::DOMAIN,
    hand::DOMAIN,
    mcp::DOMAIN,
    extension::DOMAIN,
    wasm::DOMAIN,
    a2a::DOMAIN,
    peer::DOMAIN,
    people::DOMAIN,
    plugin::DOMAIN,
    sign_in::DOMAIN,
    pairing::DOMAIN,
    terminal::DOMAIN,
    web::DOMAIN,
    chat::DOMAIN,
    channel::DOMAIN,
    config::DOMAIN,
    log::DOMAIN,
    query::DOMAIN,
    world::DOMAIN,
    snapshot::DOMAIN,
    backup::DOMAIN,
    rehearsal::DOMAIN,
    replay::DOMAIN,
    migration::DOMAIN,
    doctor::DOMAIN,
    cluster::DOMAIN,
];

/// Makes what the domains bring known to the kernel. Safe to call twice.
pub fn install() {
    let mut brought = Brought::default();
    DOMAINS.iter().for_each(|domain| (domain.brings)(&mut brought));
    tool::toolset::install(brought.take());
}

#[doc(hidden)]
pub mod fuzzing {
    //! Ways in for fuzz targets (`fuzz/`): what reads bytes of others here and has no other door. Nobody else uses them.

    use agentsvc_components::kernel::attempt::Attempt;
    use agentsvc_components::kernel::id::JobId;
    use agentsvc_components::turn::outcome::ModelAnswer;

    use crate::model::draft::Draft;
    use crate::model::error::CallError;
    use crate::model::provider::{DriverKind, Target};
    use crate::model::{Drivers, ModelSettings};
    use crate::tool;

    /// What the driver of `kind` makes of an answer to a call that asked for a stream or not.
    pub async fn model_answer(
        kind: DriverKind,
        streaming: bool,
        response: reqwest::Response,
    ) -> Result<ModelAnswer, CallError> {
        let target = Target { driver: kind, provider: "p".into(), model: "m".into(), ..Target::default() };
        let mut draft = Draft::default();
        Drivers::new(&ModelSettings::default()).read(&target, response, streaming, &mut draft).await?;
        Ok(draft.into_answer(Attempt { job: JobId(uuid::Uuid::nil()), number: 1 }, 5, &target))
    }

    /// What an MCP server sends, a line for each request: how many tools it has.
    pub async fn mcp_server(script: &[u8]) -> usize {
        crate::mcp::client::fuzzing::converse(script).await
    }

    /// What is said of a sign-in at an MCP server: how many of challenge, resource and issuer can be used.
    pub fn mcp_sign_in(url: &str, challenge: &str, metadata: &[u8]) -> usize {
        crate::mcp::oauth::fuzzing::read(url, challenge, metadata)
    }

    /// What an external agent sends: whether it is a card, and in how many dialects it is a task.
    pub fn external_agent(body: &[u8]) -> (bool, usize) {
        (crate::a2a::outbound::fuzzing::card(body), crate::a2a::outbound::fuzzing::answer(body))
    }

    /// What an adapter of a chat platform writes, line by line: how many messages are in it.
    pub fn adapter(bytes: &[u8]) -> usize {
        crate::channel::fuzzing::lines(bytes)
    }

    /// A `HOOK.yaml`: how many events its hook wants.
    pub fn event_hook(text: &str) -> usize {
        crate::event_hook::fuzzing::file(text)
    }

    /// What a peer sends, as it comes: how many messages are in it.
    pub fn peer_frames(bytes: &[u8]) -> usize {
        crate::peer::fuzzing::frames(bytes)
    }

    /// The texts that become of `file` by each change of a file in `patch`, one after the other.
    pub fn patched(file: &str, patch: &str) -> Result<String, String> {
        tool::patched(file, patch)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn domains_have_names_of_their_own() {
        let names: HashSet<&str> = DOMAINS.iter().map(|domain| domain.name).collect();
        assert_eq!(names.len(), DOMAINS.len());
        assert!(DOMAINS.iter().all(|domain| !domain.uses.contains(&domain.name)));
    }

    #[test]
    fn subcommands_have_names_and_places_of_their_own() {
        let commands: Vec<_> = DOMAINS.iter().flat_map(|domain| domain.commands).collect();
        let (names, places): (HashSet<_>, HashSet<_>) =
            commands.iter().map(|command| (command.name, command.order)).unzip();
        assert_eq!((names.len(), places.len()), (commands.len(), commands.len()));
    }
}
