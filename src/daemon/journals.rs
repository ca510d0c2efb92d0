//! Where the entries of worlds go, and how the first world begins.

use std::sync::Arc;

use agentsvc_api::http::bridge::Intake;
use agentsvc_components::kernel::step::StepMark;

use super::launch::Launch;
use super::{ApiAdapter, Error as Failed, audit, system};
use crate::cluster::{self, Clustered, Running};
use crate::kernel::exchange::Exchange;
use crate::kernel::store::journal::{Journal, Local};
use crate::kernel::store::{Error, Store};

type JournalOf = dyn Fn(&Store) -> Result<Box<dyn Journal>, Error> + Send + Sync;

/// Where the entries of worlds go, and what is done when another node takes one.
pub(crate) struct Journals {
    /// Other nodes have the same world.
    pub(super) is_shared: bool,
    /// The name of this node.
    node: String,
    /// The journal of the world in a store.
    of: Box<JournalOf>,
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
        Self { is_shared: false, node: String::new(), of: Box::new(of), fenced: Arc::new(|_| ()) }
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
        Ok((journal, store.view().step()? == StepMark::default()))
    }

    /// Those of a node of a cluster.
    pub(crate) fn of_cluster(clustered: &Clustered) -> Self {
        let (of, fenced) = (clustered.clone(), clustered.clone());
        Self {
            is_shared: true,
            node: clustered.node(),
            of: Box::new(move |store| of.journal(store)),
            fenced: Arc::new(move |epoch| fenced.fenced(epoch)),
        }
    }
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
