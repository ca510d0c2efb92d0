//! Backups and restores of a home that no daemon has: the command line does them itself.

use std::path::{Path, PathBuf};

use agentsvc_api::backup::store::BackupMade;
use agentsvc_api::http::timestamp::timestamp_now;

use super::component::{CONFIG, Selection};
use super::error::{Error, io};
use super::files::Places;
use super::manifest::Manifest;
use super::progress::Progress;
use super::restore::{Job, Prepared, prepare};
use super::{create, place};
use crate::backup::config::Backup as Config;
use crate::kernel::home::{Home, Lock, create_private_dir};
use crate::kernel::settings::{DataDir, ReadConfig, Settings};
use crate::kernel::store::{Store, exchange};
use crate::kernel::vault::{KeySource, Vault};

/// A home that belongs to this process.
pub struct Offline {
    places: Places,
    vault: Vault,
    /// Keeps it so.
    _lock: Lock,
}

impl Offline {
    /// Takes the home, which has `settings`. For a restore into an empty home the data directory is that of the archive.
    ///
    /// # Errors
    /// [`Error`]: the disk failed, or a restore that was cut off could not be completed.
    pub fn new(
        home: &Home,
        settings: &Settings,
        lock: Lock,
        archive: Option<(&Manifest, &Selection)>,
    ) -> Result<Self, Error> {
        place::complete(home)?;
        let (config, read) = (settings.get::<Config>(), *settings.get::<ReadConfig>());
        let DataDir(mut configured) = (*settings.get::<DataDir>()).clone();
        if let Some((manifest, selection)) = archive
            && !home.config_file().exists()
            && selection.takes(CONFIG)
        {
            configured.clone_from(&manifest.data_dir);
        }
        let data = home.data_dir(configured.as_deref());
        let backups = home.backups_dir(config.directory.as_deref());
        let vault = Vault::new(home.vault_dir(), KeySource::from_environment());
        let (home, workspaces) = (home.clone(), config.workspaces);
        let places = Places { home, data, backups, workspaces, data_dir: configured, read };
        Ok(Self { places, vault, _lock: lock })
    }

    fn store(&self) -> Result<Option<Store>, Error> {
        let path = self.places.data.join("world");
        exchange::recover(&path).map_err(io("recover", &path))?;
        if path.join("version").exists() { Ok(Some(Store::open(path)?)) } else { Ok(None) }
    }

    /// Makes a backup.
    pub fn create(&self, progress: &Progress) -> Result<BackupMade, Error> {
        let unfit = || Error::Unfit("there is no world to back up".to_owned());
        let store = self.store()?.ok_or_else(unfit)?;
        create::create(&store.view(), &self.places, timestamp_now(), progress, || Ok(store.view()))
    }

    /// Restores an archive, or says what would change.
    ///
    /// # Errors
    /// [`Error`]; nothing was changed, or the next start completes it.
    pub fn restore(
        &self,
        archive: &Path,
        selection: &Selection,
        dry_run: bool,
        progress: &Progress,
    ) -> Result<Prepared, Error> {
        let (home, data) = (self.places.home.root(), &self.places.data);
        for dir in [home, data.as_path()] {
            create_private_dir(dir).map_err(|error| io("create", dir)(std::io::Error::other(error)))?;
        }
        let store = self.store()?;
        let view = store.as_ref().map(Store::view);
        let job = Job {
            archive,
            places: &self.places,
            vault: &self.vault,
            selection,
            keeps_protected: false,
            now: timestamp_now(),
        };
        let prepared = prepare(&job, view.as_ref(), progress)?;
        if dry_run {
            prepared.discard();
            return Ok(prepared);
        }
        if prepared.changes_world() {
            let built = prepared.build(view.as_ref(), progress).and_then(|_| match &store {
                Some(store) => {
                    prepared.keep_taint(&store.view())?;
                    Ok(Store::open(prepared.next_world())?.carry_over(store).map(drop)?)
                }
                None => Ok(()),
            });
            built.inspect_err(|_| prepared.discard())?;
        }
        drop(view);
        drop(store);
        progress.begin("exchanging", 0);
        let decided = prepared.decide()?;
        decided.exchange_world()?;
        decided.exchange_files()?;
        decided.finish()?;
        Ok(prepared)
    }
}

/// The archive that a command line names: a path, or the name of a backup in `dir`.
pub fn archive_of(text: &str, dir: &Path) -> PathBuf {
    let path = PathBuf::from(text);
    let is_name = super::name::check_filename(text).is_ok();
    if is_name && !path.exists() { dir.join(text) } else { path }
}
