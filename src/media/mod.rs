//! Media of providers: images, speech, videos, music and transcripts (spec 2, Media generation).
//!
//! ```text
//! route or tool -> choose -> CreateMedia -> job media_make -> wire -> provider     reserved before, settled with the result
//!                                              |-> files ------------> uploads
//!                                              |-> links -> media_fetch -> egress -> uploads
//!                                              `-> task  -> media_poll  -> media_fetch
//! ```
//!
//! To add a provider, write a file in [`wire`].

mod choose;
pub mod config;
mod failed;
mod header;
mod http;
#[cfg(test)]
#[path = "../../tests/support/model_server.rs"]
mod model_server;
mod sweeper;
mod tools;
mod webm;
mod wire;
mod worker;

use std::sync::Arc;

use agentsvc_api::media::host::MediaHost;
use agentsvc_api::upload::files::Files;
use agentsvc_components::media::DropUpload;
use agentsvc_systems::media::{FETCH, MAKE, POLL};
use arc_swap::ArcSwap;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::model::provider::Providers;
use crate::tool::toolset::ToolParts;
use choose::{Chooser, Known};
use http::Http;
use worker::Worker;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "media",
    uses: &["manifest", "model", "tool", "turn", "upload", "usage"],
    brings: |brought| brought.add(tools::ALL),
    performers,
    open: |opening| {
        opening.provide::<dyn MediaHost>(Arc::new(Chooser(opening.settings.clone())));
        opening.settings.set(Opened(opening.api.services.get::<dyn Files>()));
        sweeper::start(Arc::downgrade(opening.api), opening.settings.clone())
    },
    commands: &[Subcommand::of(
        62,
        "media",
        "List media tasks and what they cost",
        &[Resource::at("/api/media/tasks").without_names().called("media tasks").columns(&[
            ("ID", "/id"),
            ("KIND", "/kind"),
            ("STATUS", "/status"),
            ("AGENT", "/agent"),
            ("MODEL", "/model"),
            ("COST", "/cost_usd"),
            ("CREATED", "/created_at"),
        ])],
    )
    .examples(&[Example::new("media list --status failed", "List the tasks that failed")])
    .under(Group::Abilities)],
};

/// Where results are kept.
#[derive(Clone, Default)]
struct Opened(Option<Arc<dyn Files>>);

fn performers(performers: &mut Performers) {
    let ToolParts { bridge, web, settings, .. } = performers.part();
    let providers: Arc<ArcSwap<Providers>> = performers.part();
    settings.set(Known(Some(Arc::clone(&providers))));
    let Some(files) = settings.get::<Opened>().0.clone() else { return };
    let (uploads, http) = (performers.part(), Http::new());
    let worker = Arc::new(Worker { bridge, web, providers, files, uploads, http });
    let (poller, fetcher, remover) = (Arc::clone(&worker), Arc::clone(&worker), Arc::clone(&worker));
    let calls = performers.calls();
    performers.on(move |upload: Box<DropUpload>| {
        let worker = Arc::clone(&remover);
        drop(calls.handle.spawn(async move { worker.forget(vec![upload.0]).await }));
    });
    performers.on_job(MAKE, move |job| {
        let worker = Arc::clone(&worker);
        async move { worker.make(job).await }
    });
    performers.on_job(POLL, move |job| {
        let worker = Arc::clone(&poller);
        async move { worker.poll(job).await }
    });
    performers.on_job(FETCH, move |job| {
        let worker = Arc::clone(&fetcher);
        async move { worker.fetch(job).await }
    });
}
