//! A2A: what the daemon gives the protocol's routes, the notifications that it posts, and what it sends to external agents
//! (spec 3, A2A).

mod cli;
pub mod config;
mod host;
pub(crate) mod outbound;
mod push;

use std::sync::Arc;

use agentsvc_api::a2a::host::A2aHost;
use agentsvc_api::a2a::outbound::host::A2aOutbound;
use agentsvc_systems::a2a;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::tool::toolset::ToolParts;
use host::Host;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "a2a",
    uses: &["tool", "usage"],
    performers,
    brings: |brought| brought.add(outbound::tools::ALL),
    commands: &[Subcommand::group::<cli::A2aCommand>(24, "a2a", "Discover and call external agents over A2A")
        .examples(&[
            Example::new("a2a discover https://agents.example", "Add an external agent"),
            Example::new("a2a send helper 'What is new?'", "Send it a message, and print the answer"),
        ])
        .under(Group::Connections)],
    open: |opening| {
        let (settings, web, vault) = (opening.settings.clone(), opening.web.clone(), opening.vault.clone());
        opening.provide::<dyn A2aHost>(Arc::new(Host { settings, web, vault }));
        let (settings, web, vault) = (opening.settings.clone(), opening.web.clone(), opening.vault.clone());
        let client = outbound::Client::new(web, vault, settings);
        opening.provide::<dyn A2aOutbound>(Arc::new(outbound::Outbound(client)));
        Ok(())
    },
};

fn performers(performers: &mut Performers) {
    let ToolParts { web, bridge, settings, .. } = performers.part();
    let client = outbound::Client::new(web.clone(), performers.part(), settings);
    let sender = Arc::new(outbound::Sender { client, bridge: bridge.clone() });
    let asker = Arc::clone(&sender);
    performers.on_job(a2a::outbound::SEND, move |job| {
        let sender = Arc::clone(&sender);
        async move { sender.send(job).await }
    });
    performers.on_job(a2a::outbound::ASK, move |job| {
        let sender = Arc::clone(&asker);
        async move { sender.ask(job).await }
    });
    let notifier = Arc::new(push::Notifier { web, vault: performers.part() });
    performers.on_job(a2a::PUSH, move |job| {
        let (notifier, bridge) = (Arc::clone(&notifier), bridge.clone());
        async move { notifier.notify(&bridge, job).await }
    });
}
