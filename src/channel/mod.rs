//! Channels: adapters of chat platforms that run as processes beside the daemon (spec 3, Channels). The adapters of the
//! community run as they are.
//!
//! ```text
//! config.rs, secrets.rs, definition.rs   what runs, with which values
//! registry.rs -> instance.rs -> run.rs   one task per channel: started, talked with, started again
//! wire/, ledger.rs, stderr.rs            lines both ways, and what became of sends
//! ```

pub mod auto_reply;
mod chat_command;
pub(crate) mod cli;
pub mod config;
mod convert;
mod daemon_command;
mod definition;
mod describe;
mod embed;
mod entry;
mod file_out;
pub(crate) mod fuzzing;
mod gallery;
mod inbound;
mod instance;
mod ledger;
mod media;
mod out;
mod registry;
pub mod role_mapping;
pub mod routing;
mod rules;
mod run;
mod secrets;
mod send;
mod service;
mod show;
mod shown;
mod status;
mod stderr;
mod takes;
pub(crate) mod tool;
mod values;
pub mod web_chat;
mod web_show;
pub(crate) mod wire;

use std::sync::Arc;

use agentsvc_api::Api;
use agentsvc_api::channel::service::Channels;
use agentsvc_api::delivery::channel_out::ChannelOut;
use agentsvc_api::widget::service::WebChats;
use agentsvc_components::channel::signal::ChatSignal;
use agentsvc_systems::channel::SEND;
use tokio::runtime::Handle;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::exchange::Exchange;
use crate::kernel::home::Home;
use crate::tool::toolset::ToolParts;
use registry::{Current, Parts, Registry};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "channel",
    uses: &[
        "a2a",
        "agent",
        "approval",
        "budget",
        "chat",
        "delivery",
        "hand",
        "injection",
        "manifest",
        "peer",
        "schedule",
        "second_factor",
        "session",
        "skill",
        "tool",
        "trigger",
        "turn",
        "upload",
        "usage",
        "widget",
        "workflow",
    ],
    brings: |brought| brought.add([tool::CHANNEL_SEND]),
    performers,
    commands: &[Subcommand::group::<cli::Channel>(
        33,
        "channel",
        "List, set up, test and remove channels; allow chats",
    )
    .examples(&[
        Example::new("channel list --available", "List the platforms, such as Telegram and Slack"),
        Example::new("channel add telegram --fields", "List the values that a channel needs"),
        Example::new(
            "channel add telegram --set TELEGRAM_BOT_TOKEN --agent assistant",
            "Take a value from the environment",
        ),
        Example::of("add", "channel add telegram --fields", "List the values that it needs"),
        Example::of(
            "add",
            "channel add telegram --set TELEGRAM_BOT_TOKEN --agent assistant",
            "Take the token from the environment, so that no shell history has it",
        ),
        Example::of("add", "channel add telegram --agent scout", "Let another agent answer"),
        Example::new("channel test telegram --to 123456", "Send a test message"),
    ])
    .under(Group::Connections)],
    ..Domain::EMPTY
};

fn performers(performers: &mut Performers) {
    let ToolParts { settings, .. } = performers.part();
    let of = settings.clone();
    performers.on_job(SEND, move |job| {
        let registry = of.get::<Current>().0.upgrade();
        async move { send::deliver(registry, job).await }
    });
    performers.on(move |signal: Box<ChatSignal>| {
        if let Some(registry) = settings.get::<Current>().0.upgrade() {
            show::show(&registry, *signal);
        }
    });
}

/// Starts the adapters in the background, and lets the API show and change them. They end with the daemon's stop.
/// `reload` reads the configuration again and puts it in force; it blocks on the disk.
pub(crate) fn start(
    (api, parts): (&Arc<Api>, &ToolParts),
    home: &Home,
    exchange: &Exchange,
    reload: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    handle: &Handle,
) {
    let registry = Registry::new(Parts {
        api: Arc::clone(api),
        commands: parts.commands.clone(),
        web: parts.web.clone(),
        settings: parts.settings.clone(),
        home: home.root().to_owned(),
        reload: Box::new(reload),
        handle: handle.clone(),
    });
    parts.settings.set(Current(Arc::downgrade(&registry)));
    api.add_probe(Arc::new(status::DroppedProbe));
    api.services.provide::<dyn Channels>(Arc::clone(&registry) as _);
    api.services.provide::<dyn WebChats>(Arc::clone(&registry.sites) as _);
    api.services.provide::<dyn ChannelOut>(Arc::clone(&registry) as _);
    handle.spawn(registry.follow((exchange.starts(), exchange.is_given_away())));
}
