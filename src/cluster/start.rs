//! Puts the parts of a node together.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentsvc_api::Api;
use agentsvc_api::http::bridge::Intake;
use crossbeam_channel::{Receiver, Sender};
use tokio::runtime::Handle;

use super::config::{Acks, ClusterConfig};
use super::files::NodeFiles;
use super::join::journal_of;
use super::members::Members;
use super::moment::boot_time;
use super::nats::Wire;
use super::node::{Event, Node, Running};
use super::panics::watched;
use super::seals::Seals;
use super::service::{Service, Shown};
use super::talk::{listen, speak};
use super::trim::Trimming;
use super::verify;
use crate::kernel::exchange::{Entry, Exchange};
use crate::kernel::shared_files::SharedFiles;
use crate::kernel::store::deferred::DeferredStore;
use crate::kernel::store::journal::Journal;
use crate::kernel::store::{Error, Store};
use crate::kernel::vault::{KeySource, VARIABLE};

/// How often it is looked at how the servers are.
const SERVERS_PERIOD: Duration = Duration::from_secs(5);
/// The same while they do not answer.
const SERVERS_PAUSE: Duration = Duration::from_millis(500);

/// A node of a cluster, from the start on.
#[derive(Clone)]
pub(crate) struct Clustered {
    wire: Arc<Wire>,
    members: Arc<Members>,
    shown: Arc<Shown>,
    api: Arc<Api>,
    /// The present world, once it is known.
    exchange: Arc<OnceLock<Arc<Exchange>>>,
    /// Stores are compared every hour.
    is_checking: bool,
    /// Bytes of the journal from which on it is cut.
    journal_bytes: u64,
    /// What a change waits for.
    acks: Acks,
    files: Arc<NodeFiles>,
    tell: Sender<Event>,
    events: Receiver<Event>,
}

/// What the rest of the daemon gives a node.
pub(crate) struct Parts {
    /// Where the store is.
    pub(crate) world_dir: PathBuf,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) store: Arc<DeferredStore>,
    /// The way into the first world.
    pub(crate) intake: Intake,
    /// What goes on the audit trail when this node takes the world over.
    pub(crate) entry: Box<dyn Fn() -> Entry + Send>,
    pub(crate) is_first_run: bool,
    /// Ends the process with a cause.
    pub(crate) fatal: Box<dyn Fn(String) + Send>,
}

impl Clustered {
    /// The node that `config` says; `None` when the daemon is alone. Lets the API ask it, and begins to speak with the others.
    ///
    /// # Errors
    /// What is missing for it, for people.
    pub(crate) fn open(config: &ClusterConfig, api: &Arc<Api>, handle: &Handle) -> Result<Option<Self>, String> {
        if !config.is_on() {
            return Ok(None);
        }
        let secret = secret(&config.name)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        let (node, url) = (config.node.as_deref().unwrap_or_default(), config.url.as_deref().unwrap_or_default());
        let wire =
            handle.block_on(Wire::connect(config, Seals::new(&secret, u64::from_ne_bytes(random)), handle.clone()))?;
        let members = Arc::new(Members::new(node, url, u64::from_ne_bytes(random)));
        let (tell, events) = crossbeam_channel::unbounded();
        let (shown, exchange) = (Arc::default(), Arc::default());
        let files = Arc::new(NodeFiles::new(&wire, &members));
        let (is_checking, journal_bytes, acks) = (config.check, config.journal_mb << 20, config.acks);
        let api = Arc::clone(api);
        let clustered =
            Self { wire, members, shown, api, exchange, is_checking, journal_bytes, acks, files, tell, events };
        let Self { wire, members, shown, api, exchange, tell, .. } = &clustered;
        let (wake, of) = (tell.clone(), || (Arc::clone(wire), Arc::clone(members)));
        let ((to, me), (from, heard), (servers, problems)) = (of(), of(), of());
        let ends = || {
            let tell = tell.clone();
            move |text| drop(tell.send(Event::Panicked(text)))
        };
        handle.spawn(watched("telling the other nodes", ends(), speak(to, me)));
        let hearing = listen(from, heard, move || drop(wake.send(Event::Look)));
        handle.spawn(watched("hearing of the other nodes", ends(), hearing));
        handle.spawn(watched("looking at the servers", ends(), look_at_servers(servers, problems, Arc::clone(shown))));
        let service = Service::new(config.name.to_string(), secret, (wire, members, shown), exchange, tell.clone());
        api.bridge.share();
        agentsvc_api::cluster::join(api, Arc::new(service));
        Ok(Some(clustered))
    }

    /// The name of this node.
    pub(crate) fn node(&self) -> String {
        self.members.node().to_owned()
    }

    /// The journal of the world in a store.
    ///
    /// # Errors
    /// Those of the store and of the servers.
    pub(crate) fn journal(&self, store: &Store) -> Result<Box<dyn Journal>, Error> {
        let journal = journal_of(store, &self.wire, &self.members)?;
        if self.acks == Acks::Journal {
            return Ok(Box::new(journal));
        }
        let members = Arc::clone(&self.members);
        Ok(Box::new(journal.waiting_for(move |index| members.is_synced_elsewhere(index))))
    }

    /// What is kept for all nodes under `name`; where nothing is, `first` says what is from then on. Asked by owners alone.
    ///
    /// # Errors
    /// Those of `first` and of the servers.
    pub(crate) fn shared(&self, name: &str, first: impl FnOnce() -> Result<String, String>) -> Result<String, Error> {
        if let Some(there) = self.wire.wait(self.wire.shared(name))? {
            return Ok(there);
        }
        let text = first().map_err(Error::Journal)?;
        self.wire.wait(self.wire.share(name, &text))?;
        Ok(text)
    }

    /// The files that all nodes have together.
    pub(crate) fn files(&self) -> Arc<dyn SharedFiles> {
        Arc::clone(&self.files) as _
    }

    /// This node has opened the world: what is shared is for it to change.
    pub(crate) fn note_opened(&self) {
        self.files.note_opened();
    }

    /// Another node owns the world since `epoch`.
    pub(crate) fn fenced(&self, epoch: u64) {
        self.members.standing.hear(epoch);
        let _ended = self.tell.send(Event::Look);
    }

    /// Joins, follows, and takes over when it is due.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(&self, parts: Parts) -> std::io::Result<Running> {
        let stopping: Arc<AtomicBool> = Arc::default();
        let Parts { world_dir, exchange, store, intake, entry, is_first_run, fatal } = parts;
        let _only_once = self.exchange.set(Arc::clone(&exchange));
        let marked = verify::start(&self.wire, &self.members)?;
        let tell = self.tell.clone();
        self.wire.spawn(async move {
            loop {
                store.until_stuck().await;
                let _ended = tell.send(Event::Stuck);
            }
        });
        let node = Node {
            wire: Arc::clone(&self.wire),
            members: Arc::clone(&self.members),
            exchange,
            api: Arc::clone(&self.api),
            tries: Cell::default(),
            trimming: Trimming::new(world_dir.clone(), self.journal_bytes),
            world_dir,
            marked,
            is_eager: self.acks == Acks::Standby,
            checking: self.is_checking.then(boot_time),
            entry,
            intake: Some(intake),
            is_first_run,
            events: self.events.clone(),
            stopping: Arc::clone(&stopping),
            fatal,
        };
        let thread = std::thread::Builder::new().name("cluster".to_owned()).spawn(move || node.run())?;
        Ok(Running { events: self.tell.clone(), stopping, members: Arc::clone(&self.members), thread })
    }
}

/// The key by which nodes recognise one another, made of that of the vault.
fn secret(cluster: &str) -> Result<[u8; 32], String> {
    let source = KeySource::from_environment();
    source.check().map_err(|error| error.to_string())?;
    let KeySource::Variable(key) = source else {
        return Err(format!("a node of a cluster needs {VARIABLE}, with the same value on all nodes"));
    };
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.trim().as_bytes());
    let tag = ring::hmac::sign(&key, format!("agentsvc cluster {cluster}").as_bytes());
    tag.as_ref().try_into().map_err(|_| "a key of another length".to_owned())
}

/// Looks now and then how the stream and its servers are.
async fn look_at_servers(wire: Arc<Wire>, members: Arc<Members>, shown: Arc<Shown>) {
    let began = members.now();
    loop {
        let found = wire.shown().await;
        let problem = match &found {
            Err(error) => members.unless_new(began, error.to_string()),
            Ok((_, servers)) => {
                let away: Vec<_> = servers.iter().filter(|it| it.is_offline).map(|it| it.name.as_str()).collect();
                (!away.is_empty()).then(|| format!("NATS servers are away: {}", away.join(", ")))
            }
        };
        members.set_problem("servers", problem);
        members.set_problem("foreign", wire.seals.problem());
        let pause = if found.is_ok() { SERVERS_PERIOD } else { SERVERS_PAUSE };
        shown.set(found.ok());
        tokio::time::sleep(pause).await;
    }
}
