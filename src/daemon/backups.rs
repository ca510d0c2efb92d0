//! Backups' place in the daemon, and what a restore has the rest of it read again.

use std::path::PathBuf;
use std::sync::Arc;

use agentsvc_api::config::configuration::{ConfigError, ConfigReloaded, Configuration as _};
use agentsvc_api::snapshot::store::SnapshotService;
use agentsvc_components::Actor;
use tokio::runtime::Handle;

use super::ApiAdapter;
use super::launch::Launch;
use super::live::Live;
use crate::backup::live::{HomeBackups, Parts, Restorable};
use crate::kernel::exchange::Exchange;
use crate::kernel::vault::Vault;
use crate::model::catalog::CatalogStore;
use crate::provider::Credentials;
use crate::upload::LocalFiles;

/// Those who read files of the home at the start.
pub(super) struct Readers {
    pub(super) live: Arc<Live>,
    pub(super) accounts: Arc<Credentials>,
    pub(super) keeper: CatalogStore,
    pub(super) files: Arc<LocalFiles>,
    pub(super) handle: Handle,
}

impl Restorable for Readers {
    fn gather(&self) -> Result<(), String> {
        self.files.gather().map_err(|error| error.to_string())
    }

    fn alone(&self, work: &mut dyn FnMut()) {
        self.live.alone(work);
    }

    fn read_again(&self, reload: bool) -> Option<Result<ConfigReloaded, ConfigError>> {
        self.accounts.read_again();
        let reloaded = reload.then(|| self.live.reload(Actor::System));
        self.handle.block_on(self.accounts.keys_changed());
        self.handle.block_on(self.keeper.reload());
        self.files.recount();
        reloaded
    }
}

/// Lets clients make backups and restore them.
pub(super) fn open(
    launch: &Launch,
    front: &ApiAdapter,
    exchange: &Arc<Exchange>,
    worlds: Arc<dyn SnapshotService>,
    vault: Vault,
    readers: Readers,
) -> Arc<HomeBackups> {
    let data_dir: Option<PathBuf> = launch.config.data_dir.clone();
    let handle = readers.handle.clone();
    let backups = HomeBackups::new(Parts {
        home: launch.home.clone(),
        data: launch.home.data_dir(data_dir.as_deref()),
        data_dir,
        api: Arc::clone(&front.api),
        settings: front.settings.clone(),
        exchange: Arc::clone(exchange),
        worlds,
        restorable: Box::new(readers),
        vault,
        handle,
    });
    front.api.services.provide::<dyn agentsvc_api::backup::store::Backups>(Arc::clone(&backups) as _);
    backups
}
