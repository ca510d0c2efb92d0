//! A2A: what the daemon gives the protocol's routes, and the notifications that it posts (spec 3, A2A).

pub mod config;
mod host;
mod push;

use std::sync::Arc;

use agentsvc_api::a2a::host::A2aHost;
use agentsvc_systems::a2a;

use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::tool::toolset::ToolParts;
use host::Host;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "a2a",
    uses: &["tool", "usage"],
    performers,
    open: |opening| {
        let (settings, web, vault) = (opening.settings.clone(), opening.web.clone(), opening.vault.clone());
        opening.provide::<dyn A2aHost>(Arc::new(Host { settings, web, vault }));
        Ok(())
    },
    ..Domain::EMPTY
};

fn performers(performers: &mut Performers) {
    let ToolParts { web, bridge, .. } = performers.part();
    let notifier = Arc::new(push::Notifier { web, vault: performers.part() });
    performers.on_job(a2a::PUSH, move |job| {
        let (notifier, bridge) = (Arc::clone(&notifier), bridge.clone());
        async move { notifier.notify(&bridge, job).await }
    });
}
