//! Paired devices: what the configuration says of them, their notifications, and the command line (spec 3, Pairing).

mod cli;
pub mod config;
mod push;

use std::sync::Arc;

use agentsvc_api::pairing::host::{PairingHost, PairingPolicy};
use agentsvc_systems::pairing;

use self::config::Pairing;
use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::settings::Settings;
use crate::tool::toolset::ToolParts;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "pairing",
    uses: &["tool", "webhook"],
    performers,
    open: |opening| {
        opening.provide::<dyn PairingHost>(Arc::new(Host(opening.settings.clone())));
        Ok(())
    },
    commands: &[Subcommand::group::<cli::Device>(38, "device", "List, pair and remove phones and other devices")
        .examples(&[Example::new("device pair --role owner", "Print a QR code that pairs a phone")])
        .under(Group::Access)],
    ..Domain::EMPTY
};

fn performers(performers: &mut Performers) {
    let ToolParts { web, settings, .. } = performers.part();
    performers.on_job(pairing::NAME, move |job| {
        let (web, pairing) = (web.clone(), settings.get::<Pairing>());
        async move { push::deliver(&web, &pairing, job).await }
    });
}

struct Host(Settings);

impl PairingHost for Host {
    fn policy(&self) -> PairingPolicy {
        self.0.get::<Pairing>().policy()
    }
}
