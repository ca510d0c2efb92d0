//! A daemon without its listener, whose world is exchanged and is not.

use agentsvc_api::config;
use agentsvc_api::http;
use agentsvc_api::snapshot;
use agentsvc_systems::agent;
use std::net::{Ipv4Addr, SocketAddr};

use agentsvc_api::http::bridge::bridge;
use agentsvc_api::http::metrics::{MetricsText, Probe};
use agentsvc_components::kernel::record::Space;
use agentsvc_systems::agent::{AgentFilter, ListAgents};
use serde_json::json;
use tokio::runtime::Runtime;

use super::*;
use crate::config::Config;
use crate::daemon::journals::Journals;
use crate::daemon::launch::Launch;
use crate::daemon::models;
use crate::daemon::world::WorldContext;
use crate::daemon::{ApiAdapter, audit, front};
use crate::kernel::home::Home;
use crate::kernel::logging;
use crate::kernel::store::rows::Row;
use crate::kernel::vault::{KeySource, Vault};
use crate::model::provider::overrides::Overrides;

/// A started daemon on a home of its own.
struct Harness {
    exchange: Exchange,
    front: ApiAdapter,
    runtime: Runtime,
    _launch: Launch,
    _dir: tempfile::TempDir,
}

impl Harness {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        home.create(None).unwrap();
        let logging = logging::nowhere();
        let lock = home.lock().unwrap();
        let config = Config::default();
        let launch = Launch {
            home,
            config,
            listen: None,
            warnings: vec![],
            logging,
            first_run: true,
            greets: false,
            detached: false,
            lock,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let vault = Vault::new(launch.home.vault_dir(), KeySource::from_environment());
        let models = models::open(&launch, &Arc::new(Overrides::new(vault.clone()))).unwrap();
        let (bridge, intake) = bridge();
        let front = front(&launch, SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), &models, 0, bridge, vault);
        let exchange = WorldContext::exchange(&launch, &front, runtime.handle().clone(), Journals::local());
        exchange.start(intake, audit::start_entry(&front), true).unwrap();
        exchange.wait_until_open();
        Self { exchange, front, runtime, _launch: launch, _dir: dir }
    }

    fn agents(&self) -> usize {
        let list = ListAgents { filter: AgentFilter::default(), after: None, limit: 10 };
        self.runtime.block_on(self.front.api.bridge.ask(list)).unwrap().total
    }

    /// Builds the store that is to take the world's place: the present world's rows that `stays` takes.
    fn build(&self, stays: impl Fn(&Row) -> bool) {
        let view = self.exchange.view().unwrap();
        self.exchange.clear_next().unwrap();
        let rows = view.all().filter(|row| row.as_ref().is_ok_and(&stays));
        Store::build(&self.exchange.next_dir(), rows).unwrap();
    }

    fn replace(&self, before_open: impl FnOnce() -> Result<(), String>) -> Result<Duration, Refusal> {
        let entry = Entry { actor: Actor::Api, kind: snapshot::audit_kinds::SNAPSHOT_RESTORED, details: json!({}) };
        let replace = || self.exchange.replace(entry, |_| Ok(()), before_open);
        self.exchange.counted("snapshot", replace)
    }

    /// Entries of a kind on the trail of the present world.
    fn entries(&self, kind: AuditKind) -> usize {
        // Answered when it is on the disk, and with it everything before it.
        self.exchange.note(Actor::System, config::audit_kinds::CONFIG_RELOADED, json!({}));
        self.stored_entries(kind)
    }

    /// Is this sample on the metrics page?
    fn tells(&self, sample: &str) -> bool {
        let mut metrics = MetricsText::default();
        self.exchange.stats.gather(&mut metrics);
        metrics.as_str().lines().any(|line| line == sample)
    }

    /// Those that are on the disk by now.
    fn stored_entries(&self, kind: AuditKind) -> usize {
        let view = self.exchange.view().unwrap();
        let decoded =
            view.prefix(Space::Content, b"z").filter_map(|row| agentsvc_systems::audit::decode(&row.unwrap().1));
        decoded.filter(|entry| *entry.event_type == *kind.as_str()).count()
    }
}

#[test]
fn whatever_goes_wrong_brings_the_old_world_back() {
    let harness = Harness::start();
    assert_eq!(harness.agents(), 1);

    // Nothing to put in its place.
    assert_eq!(harness.replace(|| Ok(())).unwrap_err().kind, RefusalKind::Failed);

    // Somebody reads the whole world.
    harness.build(|_| true);
    let view = harness.exchange.view().unwrap();
    assert_eq!(harness.replace(|| Ok(())).unwrap_err().kind, RefusalKind::Conflict);
    let (view, reader) = view.into_parts();
    drop(view);
    assert_eq!(harness.replace(|| Ok(())).unwrap_err().kind, RefusalKind::Conflict, "whoever has this is not done");
    drop(reader);
    assert_eq!(harness.entries(http::audit_kinds::WORLD_EXCHANGE_FAILED), 0, "the world never stopped");

    // Who has something to do in between cannot.
    let refused = harness.replace(|| Err("the other files are not there".to_owned())).unwrap_err();
    assert_eq!(refused.message, "the other files are not there");
    assert_eq!((harness.agents(), harness.entries(http::audit_kinds::WORLD_EXCHANGE_FAILED)), (1, 1));

    // The other world contradicts itself: its agent has no manifest.
    harness.build(|row| row.key[0] != b'm');
    let refused = harness.replace(|| Ok(())).unwrap_err();
    assert!(refused.message.contains("cannot be loaded"), "{refused}");
    assert_eq!((harness.agents(), harness.entries(http::audit_kinds::WORLD_EXCHANGE_FAILED)), (1, 2));

    // Nobody has built what is to take its place, and nobody else may meanwhile.
    harness.exchange.clear_next().unwrap();
    let claimed = harness.exchange.claim_next().unwrap();
    assert_eq!(harness.exchange.claim_next().unwrap_err().kind, RefusalKind::Conflict);
    let entry = Entry { actor: Actor::Api, kind: snapshot::audit_kinds::SNAPSHOT_RESTORED, details: json!({}) };
    let refused = harness.exchange.replace_with(entry, |_| Ok(()), || Ok(())).unwrap_err();
    drop(claimed);
    assert_eq!(refused.kind, RefusalKind::Failed);
    assert_eq!((harness.agents(), harness.entries(http::audit_kinds::WORLD_EXCHANGE_FAILED)), (1, 3));

    // All is well: another world, in which nobody is.
    let of_the_old_one = harness.front.api.bridge.of_this_world();
    let nobody = |row: &Row| row.space == Space::World && row.key[0] == b'z';
    harness.build(nobody);
    harness.replace(|| Ok(())).unwrap();
    assert_eq!(
        harness.stored_entries(snapshot::audit_kinds::SNAPSHOT_RESTORED),
        1,
        "who is answered can rely on the entry"
    );
    assert_eq!((harness.agents(), harness.entries(snapshot::audit_kinds::SNAPSHOT_RESTORED)), (0, 1));
    assert!(!of_the_old_one.is_open());
    let trail = harness.entries(agent::audit_kinds::AGENT_SPAWNED);
    assert_eq!(trail, 1, "the trail of the old one goes on");
    assert!(harness.tells("agentsvc_world_exchanges_total{outcome=\"done\"} 1"));
    assert!(harness.tells("agentsvc_world_exchanges_total{outcome=\"brought_back\"} 3"));
    assert!(
        harness.tells("agentsvc_restores_refused_total{source=\"snapshot\"} 3"),
        "those before the world was ended"
    );

    // And after the stop there is none to be exchanged.
    harness.build(|_| true);
    harness.exchange.stop();
    assert_eq!(harness.replace(|| Ok(())).unwrap_err().kind, RefusalKind::Busy);
    assert!(harness.front.fatal.get().is_none());
}

#[test]
fn a_store_that_is_opened_anew_has_all_that_was_stored() {
    let harness = Harness::start();
    let of_the_old_one = harness.front.api.bridge.of_this_world();
    for times in 1..=2 {
        harness.exchange.reopen();
        assert!(!of_the_old_one.is_open());
        assert_eq!((harness.agents(), harness.entries(http::audit_kinds::STORE_REOPENED)), (1, times));
        assert_eq!(harness.entries(agent::audit_kinds::AGENT_SPAWNED), 1);
    }
    assert!(harness.front.fatal.get().is_none());
    harness.exchange.stop();
    harness.exchange.reopen();
    assert!(harness.exchange.current.lock().is_none(), "there is none behind the stop");
}
