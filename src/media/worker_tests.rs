//! Tries of jobs against a scripted provider over real HTTP, in a world whose time the test moves: what never ends.

use std::thread::JoinHandle;

use agentsvc_api::http::bridge::{Arrival, bridge};
use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::job::JobOutcome;
use agentsvc_components::media::MediaState;
use agentsvc_components::usage::Scope;
use agentsvc_components::{Micros, Timestamp};
use agentsvc_systems::budget::GetBudget;
use agentsvc_systems::media::limits::{
    MEDIA_FETCH_TRIES_MAX, MEDIA_POLL_BACKOFF_MS_MAX, MEDIA_POLL_DEADLINE_MS, MEDIA_POLL_TRIES_MAX,
};
use agentsvc_systems::media::{CreateMedia, FETCH, MAKE, POLL};
use agentsvc_systems::{Command, Engine, Records};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::kernel::egress::{AllowedHosts, WebSettings};
use crate::kernel::retention::RetentionClock;
use crate::kernel::sandbox::Workspaces;
use crate::kernel::settings::Settings;
use crate::media::model_server::{ModelServer, Reply};
use crate::model::http::Timeouts;
use crate::model::provider::ProviderSettings;
use crate::upload::LocalFiles;

/// The most that a request of these tests can cost.
const MOST: Micros = Micros(100);
/// What no request of these tests takes, unless its provider hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A world without a disk, and what it sends out.
struct TestWorld {
    engine: Arc<Mutex<Engine>>,
    effects: Arc<Mutex<Vec<AnyEffect>>>,
    bridge: Bridge,
    now: Timestamp,
    thread: Option<JoinHandle<()>>,
}

impl Drop for TestWorld {
    fn drop(&mut self) {
        self.bridge.stop();
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}

fn step(engine: &mut Engine, effects: &Mutex<Vec<AnyEffect>>) {
    let commit = engine.step();
    effects.lock().extend(commit.effects);
    commit.releases.into_iter().for_each(|release| release());
}

impl TestWorld {
    fn open() -> Self {
        let (bridge, intake) = bridge();
        let now = Timestamp(1_800_000_000_000);
        let mut engine = Engine::new(agentsvc_systems::Settings::default(), [1; 32]);
        engine.restore(Records::default(), now).unwrap();
        let engine = Arc::new(Mutex::new(engine));
        let effects = Arc::<Mutex<Vec<AnyEffect>>>::default();
        let (of_thread, sent) = (Arc::clone(&engine), Arc::clone(&effects));
        intake.open();
        let thread = std::thread::spawn(move || {
            while let Ok(Arrival::Command(command)) = intake.arrivals.recv() {
                intake.took_command();
                let mut engine = of_thread.lock();
                command.run(&mut engine);
                step(&mut engine, &sent);
            }
        });
        Self { engine, effects, bridge, now, thread: Some(thread) }
    }

    async fn ask<C: Command>(&self, command: C) -> C::Reply {
        self.bridge.ask(command).await.unwrap()
    }

    fn wait(&mut self, ms: i64) {
        self.now = self.now.plus_ms(ms);
        let mut engine = self.engine.lock();
        engine.set_now(self.now);
        engine.beat();
        step(&mut engine, &self.effects);
    }

    /// Carries out the tries that are out, and those that follow at once.
    async fn perform(&self, worker: &Worker) {
        loop {
            let sent: Vec<AnyEffect> = self.effects.lock().drain(..).collect();
            let tries: Vec<_> = sent.into_iter().filter_map(|effect| effect.take::<RunJob>().ok()).collect();
            if tries.is_empty() {
                return;
            }
            for job in tries {
                let attempt = job.attempt;
                let end = match job.kind {
                    MAKE => worker.make(*job).await,
                    POLL => worker.poll(*job).await,
                    FETCH => worker.fetch(*job).await,
                    kind => panic!("a try of {kind}"),
                };
                let mut engine = self.engine.lock();
                engine.outcome(JobOutcome(attempt, end));
                step(&mut engine, &self.effects);
            }
        }
    }

    async fn money(&self) -> (Micros, Micros) {
        let view = self.ask(GetBudget(Scope::Global)).await;
        (view.today, view.reserved)
    }

    /// Lets time pass until the task has ended; gives it with the time that this took.
    async fn end_of(&mut self, worker: &Worker, id: MediaTaskId) -> (MediaTask, i64) {
        let began = self.now;
        loop {
            self.perform(worker).await;
            let task = self.ask(Get::<MediaTaskView>(id)).await.task;
            if !task.state.is_open() {
                return (task, self.now.0 - began.0);
            }
            self.wait(MEDIA_POLL_BACKOFF_MS_MAX);
        }
    }
}

/// A world, MiniMax at a scripted server, and what asks it.
struct Harness {
    world: TestWorld,
    server: ModelServer,
    worker: Worker,
    _dir: tempfile::TempDir,
}

fn harness(patience: Duration) -> Harness {
    let (world, server, dir) = (TestWorld::open(), ModelServer::start(), tempfile::tempdir().unwrap());
    let minimax = ProviderSettings {
        name: "minimax".to_owned(),
        base_url: Some(server.base_url()),
        api_key_env: Some("KEY".to_owned()),
        ..ProviderSettings::default()
    };
    let environment: fn(&str) -> Option<String> = |_| Some("key-of-the-test".to_owned());
    let providers = Providers::new(vec![minimax]).unwrap().with_environment(environment);
    let workspaces = Workspaces::limited(dir.path().join("workspaces"), Settings::default());
    let uploads = crate::upload::config::Uploads::default();
    let (place, bridge) = (dir.path().join("uploads"), world.bridge.clone());
    let files = Arc::new(LocalFiles::new(place, uploads, workspaces, RetentionClock::default(), bridge));
    let read = Arc::clone(&files);
    let allowed = AllowedHosts::parse(&[server.address().to_string()]).unwrap();
    let worker = Worker {
        bridge: world.bridge.clone(),
        web: Web::new(WebSettings { allowed, ..WebSettings::default() }),
        providers: Arc::new(ArcSwap::from_pointee(providers)),
        files,
        uploads: Arc::new(move |file, bytes_max| read.read(file, bytes_max)),
        http: Http::within(Timeouts { connect: PATIENCE, read: patience, total: patience }),
    };
    Harness { world, server, worker, _dir: dir }
}

impl Harness {
    async fn create(&self, request: MediaRequest) -> MediaTaskId {
        let (provider, model) = ("minimax".to_owned(), "m".to_owned());
        let (key, most) = (String::new(), MOST);
        self.world
            .ask(CreateMedia { agent: None, turn: None, key, provider, model, request, most, is_priced: true })
            .await
            .id
    }

    fn asked(&self, path: &str) -> usize {
        self.server.requests().iter().filter(|request| request.path == path).count()
    }

    /// Nothing is asked for again, however long it is waited, and nothing stays reserved.
    async fn is_over(&mut self, cost: Micros) {
        let before = self.server.requests().len();
        for _ in 0..10 {
            self.world.wait(MEDIA_POLL_DEADLINE_MS / 4);
            self.world.perform(&self.worker).await;
        }
        assert_eq!(self.server.requests().len(), before, "it is asked for again");
        // The day has ended meanwhile.
        assert_eq!(self.world.money().await.1, Micros::ZERO);
        assert!(self.world.money().await.0 <= cost);
    }
}

fn answered(mut body: Value) -> Reply {
    body["base_resp"] = json!({ "status_code": 0 });
    Reply::raw(200, &[("content-type", "application/json")], &body.to_string())
}

fn video() -> MediaRequest {
    MediaRequest::Video { prompt: "a cat".into(), duration_secs: None }
}

#[tokio::test]
async fn a_video_that_never_ends_fails_at_its_deadline_and_is_paid_once() {
    let mut harness = harness(PATIENCE);
    harness.server.respond(|request| match request.path.as_str() {
        "/v1/video_generation" => answered(json!({ "task_id": "t" })),
        "/v1/query/video_generation" => answered(json!({ "status": "Processing" })),
        path => panic!("{path} is asked"),
    });
    let id = harness.create(video()).await;
    harness.world.perform(&harness.worker).await;
    assert_eq!(harness.world.money().await, (MOST, Micros::ZERO), "the provider took it");
    let Harness { world, worker, .. } = &mut harness;
    let (task, took) = world.end_of(worker, id).await;
    assert_eq!((task.state, task.fault, task.cost), (MediaState::Failed, Some(MediaFault::Timeout), MOST));
    assert!(task.files.is_empty());
    let late = MEDIA_POLL_DEADLINE_MS - MEDIA_POLL_BACKOFF_MS_MAX..=MEDIA_POLL_DEADLINE_MS + MEDIA_POLL_BACKOFF_MS_MAX;
    assert!(late.contains(&took), "after {took} ms");
    assert_eq!(world.money().await, (MOST, Micros::ZERO));
    let polls = harness.asked("/v1/query/video_generation");
    assert!((100..MEDIA_POLL_TRIES_MAX as usize).contains(&polls), "{polls}");
    assert_eq!(harness.asked("/v1/video_generation"), 1);
    harness.is_over(MOST).await;
}

#[tokio::test]
async fn a_result_whose_links_have_all_expired_is_given_up_and_paid_once() {
    let mut harness = harness(PATIENCE);
    let link = format!("http://{}/result", harness.server.address());
    harness.server.respond(move |request| match request.path.as_str() {
        "/v1/video_generation" => answered(json!({ "task_id": "t" })),
        "/v1/query/video_generation" => answered(json!({ "status": "Success", "file_id": "f" })),
        "/v1/files/retrieve" => answered(json!({ "file": { "download_url": link } })),
        _ => Reply::raw(410, &[], "gone"),
    });
    let id = harness.create(video()).await;
    let Harness { world, worker, .. } = &mut harness;
    let (task, _) = world.end_of(worker, id).await;
    assert_eq!((task.state, task.cost), (MediaState::Failed, MOST), "{task:?}");
    let tries = MEDIA_FETCH_TRIES_MAX as usize;
    assert_eq!((harness.asked("/v1/files/retrieve"), harness.asked("/result")), (tries, tries), "each link is new");
    assert_eq!((harness.asked("/v1/video_generation"), harness.asked("/v1/query/video_generation")), (1, 1));
    harness.is_over(MOST).await;
}

#[tokio::test]
async fn music_that_never_comes_fails_and_is_not_asked_for_again() {
    let mut harness = harness(Duration::from_secs(2));
    harness.server.respond(|_| Reply::hang());
    let music = MediaRequest::Music { prompt: Some("a song".into()), lyrics: None, instrumental: true, format: None };
    let id = harness.create(music).await;
    let Harness { world, worker, .. } = &mut harness;
    let (task, _) = world.end_of(worker, id).await;
    // Nobody knows whether it was made.
    assert_eq!((task.state, task.fault, task.cost), (MediaState::Failed, Some(MediaFault::Timeout), MOST));
    assert_eq!(world.money().await, (MOST, Micros::ZERO));
    assert_eq!(harness.asked("/v1/music_generation"), 1);
    harness.is_over(MOST).await;
}
