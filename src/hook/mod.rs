//! Hooks: what the daemon gives their routes, and the answers that go to channels (spec 3, Webhooks).

pub mod config;
mod deliver;
mod host;

use std::sync::Arc;

use agentsvc_api::hook::host::HookHost;
use agentsvc_systems::hook;

use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::tool::toolset::ToolParts;
use deliver::ApiSlot;
use host::Host;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "hook",
    uses: &["tool"],
    performers,
    open: |opening| {
        opening.settings.set(ApiSlot(Some(Arc::downgrade(opening.api))));
        opening.provide::<dyn HookHost>(Arc::new(Host::new(opening.settings.clone())));
        Ok(())
    },
    ..Domain::EMPTY
};

fn performers(performers: &mut Performers) {
    let ToolParts { settings, .. } = performers.part();
    performers.on_job(hook::DELIVER, move |job| {
        let slot = settings.get::<ApiSlot>();
        async move { deliver::deliver(&slot, job).await }
    });
}
