//! Where the entries of worlds go, and how the first world begins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agentsvc_api::http::bridge::Intake;
use agentsvc_components::kernel::step::StepMark;
use tokio::runtime::Handle;

use super::launch::Launch;
use super::world::WorldContext;
use super::{ApiAdapter, Error as Failed, audit, system};
use crate::audit::vault as audit_vault;
use crate::cluster::{self, Clustered, Running};
use crate::kernel::exchange::Exchange;
use crate::kernel::store::journal::{Journal, Local};
use crate::kernel::store::{Error, Store};
use crate::kernel::vault::Vault;
use crate::provider::Credentials;
use crate::upload::LocalFiles;

/// Under which name nodes share the key that signs the audit trail.
const AUDIT_KEY: &str = "audit-key";

type JournalOf = dyn Fn(&Store) -> Result<Box<dyn Journal>, Error> + Send + Sync;

/// Where the entries of worlds go, and what is done when another node takes one.
pub(crate) struct Journals {
    /// Other nodes have the same world.
    pub(super) is_shared: bool,
    /// The name of this node.
    node: String,
    /// The journal of the world in a store.
    of: Box<JournalOf>,
    /// What is done as soon as the world is this node's.
    opened: Box<dyn Fn() -> Result<(), Error> + Send + Sync>,
    /// Another node owns the world since this epoch.
    pub(crate) fenced: Arc<dyn Fn(u64) + Send + Sync>,
}

impl Journals {
    /// Those of a daemon that is alone. A store that was a node's is its own from then on.
    pub(crate) fn local() -> Self {
        let of = |store: &Store| {
            store.forget_position()?;
            Ok(Box::new(Local) as Box<dyn Journal>)
        };
        let (of, opened) = (Box::new(of), Box::new(|| Ok(())));
        Self { is_shared: false, node: String::new(), of, opened, fenced: Arc::new(|_| ()) }
    }

    /// Opens the journal of the world in `store`, which has all of it then. Gives also whether that world has never lived: the home
    /// of a node may be new, and its world not.
    ///
    /// # Errors
    /// Those of the journal and of the store.
    pub(super) fn open(&self, store: &Store) -> Result<(Box<dyn Journal>, bool), Error> {
        let mut journal = (self.of)(store)?;
        journal.open(&self.node)?;
        store.catch_up(&*journal)?;
        (self.opened)()?;
        Ok((journal, store.view().step()? == StepMark::default()))
    }

    /// Those of a node of a cluster.
    fn of_cluster(clustered: &Clustered, common: InCommon) -> Self {
        let (of, fenced, node) = (clustered.clone(), clustered.clone(), clustered.clone());
        common.files.share(clustered.files());
        common.vault.share(clustered.files());
        Self {
            is_shared: true,
            node: clustered.node(),
            of: Box::new(move |store| of.journal(store)),
            opened: Box::new(move || {
                node.note_opened();
                common.agree()?;
                share_audit_key(&node, &common.vault, &common.vault_dir)
            }),
            fenced: Arc::new(move |epoch| fenced.fenced(epoch)),
        }
    }
}

/// What all nodes have together beside the journal.
struct InCommon {
    vault: Vault,
    /// Where the vault is, and the key of the audit trail.
    vault_dir: PathBuf,
    files: Arc<LocalFiles>,
    /// Has the vault's files read again.
    read_again: Box<dyn Fn() + Send + Sync>,
}

impl InCommon {
    /// This node has just become the owner: it takes the secrets that the others changed. Files follow in the background.
    fn agree(&self) -> Result<(), Error> {
        let has_changed = self.vault.agree();
        if has_changed.map_err(|error| Error::Journal(format!("the secrets that nodes share: {error}")))? {
            tracing::info!("this node took secrets that other nodes changed");
            (self.read_again)();
        }
        self.files.agree();
        Ok(())
    }
}

/// All nodes sign checkpoints of the one trail with one key: that of the first owner. It is kept sealed with the key of the vault, which all
/// have.
fn share_audit_key(clustered: &Clustered, vault: &Vault, dir: &Path) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Journal(format!("the key of the audit log: {error}"));
    let sealed = clustered.shared(AUDIT_KEY, || {
        let seed = audit_vault::Vault::seed(dir).map_err(|error| error.to_string())?;
        vault.seal(AUDIT_KEY, seed.as_bytes()).map_err(|error| error.to_string())
    })?;
    let seed = vault.unseal(AUDIT_KEY, &sealed).map_err(|error| failed(&error))?;
    let seed = std::str::from_utf8(&seed).map_err(|error| failed(&error))?;
    if audit_vault::Vault::adopt(dir, seed).map_err(|error| failed(&error))? {
        tracing::info!("this node signs the audit log with the key of the cluster from here on");
    }
    Ok(())
}

/// What puts other worlds in the place of the present one; and the node, where several keep it.
pub(super) fn exchange_of(
    launch: &Launch,
    front: &ApiAdapter,
    accounts: Arc<Credentials>,
    handle: &Handle,
) -> Result<(Option<Clustered>, Arc<Exchange>), Failed> {
    let clustered = Clustered::open(&launch.config.cluster, &front.api, handle).map_err(Failed::Cluster)?;
    let shared = |of: &Clustered| {
        let (handle, bridge) = (handle.clone(), front.api.bridge.clone());
        let common = InCommon {
            vault: front.vault.clone(),
            vault_dir: launch.home.vault_dir(),
            files: Arc::clone(&front.files),
            read_again: Box::new(move || {
                accounts.read_again();
                drop(handle.spawn(super::providers::follow_keys(Arc::clone(&accounts), bridge.clone())));
            }),
        };
        Journals::of_cluster(of, common)
    };
    let journals = clustered.as_ref().map_or_else(Journals::local, shared);
    Ok((clustered, Arc::new(WorldContext::exchange(launch, front, handle.clone(), journals))))
}

/// Brings the world to life; or, where several nodes keep it, joins them. Gives the node.
pub(super) fn begin(
    launch: &Launch,
    front: &ApiAdapter,
    exchange: &Arc<Exchange>,
    intake: Intake,
    clustered: Option<Clustered>,
) -> Result<Option<Running>, Failed> {
    let Some(clustered) = clustered else {
        exchange.start(intake, audit::start_entry(front), launch.first_run).map_err(Failed::World)?;
        exchange.watch();
        return Ok(None);
    };
    let (of, fatal) = (front.clone(), front.fatal());
    let node = clustered.start(cluster::Parts {
        world_dir: launch.home.world_dir(launch.config.data_dir.as_deref()),
        exchange: Arc::clone(exchange),
        store: Arc::clone(&front.store),
        intake,
        entry: Box::new(move || audit::start_entry(&of)),
        is_first_run: launch.first_run,
        fatal: Box::new(move |cause| fatal(cause)),
    });
    node.map(Some).map_err(system("cannot start the thread of the cluster"))
}
