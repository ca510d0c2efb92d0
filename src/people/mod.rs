//! The keys of the API: made from the randomness of the system, and put in force when a world starts.

mod cli;
pub mod config;
pub(crate) mod password;

use std::sync::Arc;

use agentsvc_api::Api;
use agentsvc_api::people::keys::{self, KeyMaker};
use tokio::runtime::Handle;

use self::config::ConfiguredUsers;
use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::exchange::Exchange;
use crate::kernel::settings::Settings;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "people",
    uses: &["config"],
    open: |opening| {
        opening.api.access.keys.expect();
        opening.provide::<dyn KeyMaker>(Arc::new(Maker));
        Ok(())
    },
    commands: &[
        Subcommand::group::<cli::Key>(36, "key", "List, create and revoke API keys")
            .examples(&[
                Example::new("key list", "List the keys and when they were used"),
                Example::new("key revoke laptop", "Revoke a key"),
                Example::of("create", "key create laptop --role admin", "A key of the installation"),
                Example::of(
                    "create",
                    "key create ci --user ann --scope read --expires-in 86400",
                    "A key of a user, which may only read, for a day",
                ),
            ])
            .under(Group::Access),
        Subcommand::group::<cli::User>(37, "user", "List, add and remove users")
            .examples(&[Example::new("user create ann --role user", "Add a user; `key create` makes keys for them")])
            .under(Group::Access),
    ],
    ..Domain::EMPTY
};

struct Maker;

impl KeyMaker for Maker {
    fn random(&self) -> Result<[u8; 32], String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }
}

/// Puts the users of the configuration and the keys of each world in force, in the background.
pub(crate) fn start(api: &Arc<Api>, settings: &Settings, exchange: &Exchange, handle: &Handle) {
    let (of, changes) = (settings.clone(), settings.changes());
    let users = move || of.get::<ConfiguredUsers>().listed();
    handle.spawn(keys::follow(Arc::clone(api), exchange.starts(), users, changes));
}
