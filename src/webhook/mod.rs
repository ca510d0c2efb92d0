//! Posts events to the receivers of webhooks (spec 3, Webhooks).
//!
//! A delivery asks the world for the address and the sealed secret when it is tried, so that a change of either counts for
//! what waits already. The signature is over the bytes of the body, which are the same for all tries.

mod post;
pub(crate) mod sender;

use std::sync::Arc;

use agentsvc_api::webhook::sender::WebhookSender;
use agentsvc_systems::webhook;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::tool::toolset::ToolParts;
use sender::Sender;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "webhook",
    uses: &["tool"],
    performers,
    open: |opening| {
        let (web, vault) = (opening.web.clone(), opening.vault.clone());
        opening.provide::<dyn WebhookSender>(Arc::new(Sender { web, vault }));
        Ok(())
    },
    commands: &[Subcommand::of(
        55,
        "webhook",
        "Post events to your own services",
        &[Resource::at("/api/webhooks").columns(&[
            ("ID", "/id"),
            ("NAME", "/name"),
            ("URL", "/url"),
            ("EVENTS", "/events"),
            ("ENABLED", "/enabled"),
            ("FAILING SINCE", "/failing_since"),
        ])],
    )
    .examples(&[
        Example::new(
            "webhook create --name ci --url https://ci.example/hook --events task_failed",
            "Post each failed task to a URL",
        ),
        Example::new("webhook test ci", "Send a test event"),
    ])
    .under(Group::Connections)],
    ..Domain::EMPTY
};

fn performers(performers: &mut Performers) {
    let ToolParts { web, bridge, .. } = performers.part();
    let sender = Arc::new(Sender { web, vault: performers.part() });
    performers.on_job(webhook::NAME, move |job| {
        let (sender, bridge) = (Arc::clone(&sender), bridge.clone());
        async move { post::deliver(&sender, &bridge, job).await }
    });
}
