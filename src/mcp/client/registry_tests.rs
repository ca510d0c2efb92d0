//! The registry beside a world that answers when the test says so.

use std::time::Duration;

use agentsvc_api::http::bridge::{Arrival, Intake, bridge};
use agentsvc_api::http::settings::ApiSettings;
use agentsvc_api::http::shutdown::Shutdown;
use agentsvc_api::mcp::servers::service::ManagedServers;
use agentsvc_api::{Api, DOMAINS};
use agentsvc_components::{Actor, Timestamp};
use agentsvc_systems::mcp::{CreateMcpServer, McpServerFields};
use agentsvc_systems::{Engine, ReplySlot, Settings as WorldSettings};
use futures_util::FutureExt;
use futures_util::future::join;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::kernel::egress::Web;
use crate::kernel::sandbox::Commands;
use crate::kernel::vault::KeySource;
use crate::mcp::client::review::judge;
use crate::mcp::client::session::Described;

/// A world without a thread of its own.
struct World {
    engine: Engine,
    intake: Intake,
}

impl World {
    /// Carries out the command that waits. Gives its name.
    fn answer(&mut self) -> Option<&'static str> {
        let Ok(Arrival::Command(envelope)) = self.intake.arrivals.try_recv() else { return None };
        self.intake.took_command();
        let name = envelope.name();
        envelope.run(&mut self.engine);
        self.step();
        Some(name)
    }

    fn step(&mut self) {
        self.engine.step().releases.into_iter().for_each(|release| release());
    }

    /// A client adds a server that cannot be reached.
    fn add(&mut self, name: &str) {
        let fields = McpServerFields { transport: Some(transport().to_string()), ..McpServerFields::default() };
        let create = CreateMcpServer { name: name.to_owned(), template_id: None, fields };
        self.engine.command(Actor::Api, create, ReplySlot::new(|reply| assert!(reply.is_ok())));
        self.step();
    }

    /// Answers whatever comes, for as long as the test runs.
    async fn answer_all(&mut self) {
        loop {
            self.answer();
            tokio::task::yield_now().await;
        }
    }
}

fn transport() -> serde_json::Value {
    json!({ "type": "http", "url": "http://127.0.0.1:1/mcp" })
}

fn registry() -> (Arc<Registry>, World, TempDir) {
    let (bridge, intake) = bridge();
    let home = tempfile::tempdir().unwrap();
    let mut engine = Engine::new(WorldSettings::default(), [9; 32]);
    engine.set_now(Timestamp(1_000_000));
    let registry = Registry::new(Parts {
        means: Means { commands: Commands::new(ExecPolicy::default(), Vec::new(), Vec::new()), web: Web::default() },
        catalog: Catalog::new(home.path().join("catalog")),
        vault: Vault::new(home.path().join("vault"), KeySource::File),
        api: Api::new(&DOMAINS, ApiSettings::default(), bridge, Shutdown::new()),
        set: ToolSet::built_in(),
        settings: Settings::default(),
        handle: Handle::current(),
        injection: InjectionPolicy::default(),
        directories: home.path().join("servers"),
        sampler: Sampler::new(Arc::default(), Settings::default()),
    });
    (registry, World { engine, intake }, home)
}

fn names(registry: &Registry) -> Vec<String> {
    registry.servers().iter().map(|server| server.name().to_owned()).collect()
}

#[tokio::test]
async fn an_older_list_is_not_applied_after_a_newer_one() {
    let (registry, mut world, _home) = registry();
    world.intake.open();
    let (mut one, mut other) = (Box::pin(registry.resync()), Box::pin(registry.resync()));
    assert!((&mut one).now_or_never().is_none());
    assert_eq!(world.answer(), Some("list_mcp_servers"), "without the server that comes now");
    world.add("s");
    // Were the world asked for the newer list now, the older one could be applied after it.
    assert!((&mut other).now_or_never().is_none());
    assert_eq!(world.answer(), None);
    tokio::select! {
        _ = join(&mut one, &mut other) => {}
        () = world.answer_all() => {}
    }
    assert_eq!(names(&registry), ["s"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_a_busy_world_did_not_name_is_started_later() {
    let (registry, mut world, _home) = registry();
    world.add("s");
    // A world that takes no commands.
    assert!(registry.resync().await.is_empty());
    world.intake.open();
    let (_starts, starts) = watch::channel(());
    let began = std::time::Instant::now();
    tokio::select! {
        () = Arc::clone(&registry).follow(starts) => {}
        () = world.answer_all() => {}
        () = async {
            while names(&registry).is_empty() {
                assert!(began.elapsed() < Duration::from_secs(60), "it is not started");
                tokio::task::yield_now().await;
            }
        } => {}
    }
    assert_eq!(names(&registry), ["s"]);
}

#[tokio::test(start_paused = true)]
async fn accepted_tools_are_offered_when_the_world_answers_again() {
    let (registry, mut world, _home) = registry();
    world.add("s");
    let server =
        McpServer { name: "s".into(), transport: Some(transport().to_string().into()), ..McpServer::default() };
    *registry.stored.lock() = vec![server];
    registry.apply(&registry.turn.lock().await).await;
    let server = registry.server("s").unwrap();
    let tool = Described { name: "t".to_owned(), input_schema: json!({ "type": "object" }), ..Described::default() };
    server.set_listing(judge("s", vec![tool], InjectionPolicy::default()));
    let mut settling = Arc::clone(&registry).settle("s".to_owned());
    assert!((&mut settling).now_or_never().is_none(), "the world takes no commands");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!((&mut settling).now_or_never().is_none());
    world.intake.open();
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::select! {
        () = &mut settling => {}
        () = world.answer_all() => {}
    }
    let offered: Vec<String> = server.offer().tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(offered, ["t"]);
}
