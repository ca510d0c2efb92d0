//! Media tasks in virtual time.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::media::{MediaFault, MediaFile, MediaRequest, MediaState, MediaTask, MediaTaskId};
use agentsvc_components::usage::{CallEnd, Limits, Scope};
use agentsvc_components::{AgentId, FileId, Micros, Refusal, RefusalKind};
use uuid::Uuid;

use super::*;
use crate::agent::RemoveAgents;
use crate::budget::{GetBudget, SetBudget};
use crate::kernel::entities::{Get, List};
use crate::testing::TestWorld;
use crate::usage::events_for_tests;

/// The most that a request of these tests can cost.
pub(super) const MOST: Micros = Micros(100);

pub(super) fn image(agent: Option<AgentId>) -> CreateMedia {
    let request = MediaRequest::Image { prompt: "a cat".into(), count: 1, size: None };
    let (provider, model) = ("openai".to_owned(), "m".to_owned());
    CreateMedia { agent, turn: None, key: String::new(), provider, model, request, most: MOST, is_priced: true }
}

pub(super) fn video() -> CreateMedia {
    CreateMedia { request: MediaRequest::Video { prompt: "a cat".into(), duration_secs: None }, ..image(None) }
}

/// The tries that went out since this was asked last.
pub(super) fn tries(world: &mut TestWorld) -> Vec<RunJob> {
    world.effects.drain(..).filter_map(|effect| effect.take::<RunJob>().ok().map(|run| *run)).collect()
}

pub(super) fn the_try(world: &mut TestWorld, kind: &str) -> RunJob {
    let mut all = tries(world);
    assert_eq!(all.iter().map(|run| run.kind).collect::<Vec<_>>(), [kind]);
    all.remove(0)
}

pub(super) fn task(world: &mut TestWorld, id: MediaTaskId) -> MediaTask {
    world.ask(Get::<MediaTaskView>(id)).unwrap().task
}

pub(super) fn wait(world: &mut TestWorld, ms: i64) {
    world.now = world.now.plus_ms(ms);
    world.engine.set_now(world.now);
    world.engine.beat();
    world.step();
}

pub(super) fn done(world: &mut TestWorld, attempt: Attempt, report: &MediaReport) {
    world.outcome(JobOutcome(attempt, TryEnd::Done(serde_json::to_string(report).unwrap())));
}

fn file() -> MediaFile {
    let (file, content_type) = (FileId(Uuid::from_u128(9)), "image/png".into());
    MediaFile { file, content_type, bytes: 3, duration_ms: None, sample_rate: None, size: Some((1, 1)) }
}

pub(super) fn result() -> MediaReport {
    MediaReport { files: vec![file()], cost: Some(Micros(40)), ..MediaReport::default() }
}

pub(super) fn spent(world: &mut TestWorld, scope: Scope) -> (Micros, Micros) {
    let view = world.ask(GetBudget(scope)).unwrap();
    (view.today, view.reserved)
}

pub(super) fn sound(world: &mut TestWorld) {
    assert_eq!(world.engine.check(), Vec::<String>::new());
}

#[test]
fn a_request_is_reserved_made_and_booked() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let id = world.ask(image(Some(agent))).unwrap().id;
    let run = the_try(&mut world, MAKE);
    let order: MakeOrder = serde_json::from_str(&run.input).unwrap();
    assert_eq!((order.task, order.request.kind().as_str(), run.owner), (id, "image", Some(agent)));
    assert_eq!(spent(&mut world, Scope::Global), (Micros::ZERO, Micros::ZERO), "nothing is reserved before");
    world.ask(ReserveMedia { task: id, attempt: run.attempt }).unwrap();
    for scope in [Scope::Agent(agent), Scope::Global] {
        assert_eq!(spent(&mut world, scope), (Micros::ZERO, MOST));
    }
    let again = world.ask(ReserveMedia { task: id, attempt: run.attempt }).unwrap_err();
    assert_eq!(again.kind, RefusalKind::Conflict, "a try reserves once");
    let waiting = world.begin(AwaitMedia(id));
    done(&mut world, run.attempt, &result());
    let ended = waiting.take().unwrap().unwrap().task;
    assert_eq!((ended.state, ended.cost, ended.files.len()), (MediaState::Completed, Micros(40), 1));
    for scope in [Scope::Agent(agent), Scope::Global] {
        assert_eq!(spent(&mut world, scope), (Micros(40), Micros::ZERO));
    }
    let event = events_for_tests(&world).pop().unwrap();
    assert_eq!((&*event.channel, event.agent, &*event.call.model), (CHANNEL, agent, "m"));
    sound(&mut world);
}

#[test]
fn a_video_is_asked_for_until_it_ends_and_downloaded() {
    let mut world = TestWorld::new();
    let id = world.ask(video()).unwrap().id;
    let make = the_try(&mut world, MAKE);
    world.ask(ReserveMedia { task: id, attempt: make.attempt }).unwrap();
    let taken = MediaReport { remote: Some("r1".to_owned()), ..MediaReport::default() };
    done(&mut world, make.attempt, &taken);
    let queued = task(&mut world, id);
    assert_eq!((queued.state, queued.remote.as_deref(), queued.cost), (MediaState::Queued, Some("r1"), MOST));
    let poll = the_try(&mut world, POLL);
    let working = MediaReport { state: Some(MediaState::Processing), ..MediaReport::default() };
    let reason = serde_json::to_string(&working).unwrap();
    world.outcome(JobOutcome(poll.attempt, TryEnd::Retry { after_ms: None, reason }));
    assert_eq!(task(&mut world, id).state, MediaState::Processing);
    wait(&mut world, 60_000);
    let poll = the_try(&mut world, POLL);
    let ready = MediaReport { from: Some(MediaSource::File("f1".to_owned())), ..MediaReport::default() };
    done(&mut world, poll.attempt, &ready);
    let fetch = the_try(&mut world, FETCH);
    let order: FetchOrder = serde_json::from_str(&fetch.input).unwrap();
    assert_eq!(order, FetchOrder { task: id, from: MediaSource::File("f1".to_owned()) });
    done(&mut world, fetch.attempt, &result());
    let ended = task(&mut world, id);
    assert_eq!((ended.state, ended.cost, ended.files), (MediaState::Completed, MOST, vec![file()]));
    sound(&mut world);
}

#[test]
fn a_kill_while_the_provider_is_asked_repeats_nothing_and_costs_what_was_reserved() {
    let mut world = TestWorld::new();
    let id = world.ask(image(None)).unwrap().id;
    let run = the_try(&mut world, MAKE);
    world.ask(ReserveMedia { task: id, attempt: run.attempt }).unwrap();
    world.restart();
    wait(&mut world, 60_000);
    assert!(tries(&mut world).is_empty(), "it was repeated");
    let ended = task(&mut world, id);
    assert_eq!((ended.state, ended.fault, ended.cost), (MediaState::Failed, Some(MediaFault::Unknown), MOST));
    assert_eq!(spent(&mut world, Scope::Global), (MOST, Micros::ZERO));
    assert_eq!(events_for_tests(&world).len(), 1);
    sound(&mut world);
}

#[test]
fn a_kill_before_the_provider_was_asked_begins_again_a_few_times() {
    let mut world = TestWorld::new();
    let (first, second) = (world.ask(image(None)).unwrap().id, world.ask(video()).unwrap().id);
    assert_eq!(tries(&mut world).len(), 2);
    world.restart();
    wait(&mut world, 0);
    let (made, left): (Vec<_>, Vec<_>) = tries(&mut world).into_iter().partition(|run| run.input.contains("image"));
    assert_eq!((made.len(), left.len()), (1, 1), "the provider was not asked");
    world.ask(ReserveMedia { task: first, attempt: made[0].attempt }).unwrap();
    done(&mut world, made[0].attempt, &result());
    assert_eq!(task(&mut world, first).state, MediaState::Completed);
    assert_eq!(spent(&mut world, Scope::Global), (Micros(40), Micros::ZERO), "it is paid once");
    for _ in 0..limits::MEDIA_RESTARTS_MAX {
        assert!(task(&mut world, second).state.is_open());
        world.restart();
        wait(&mut world, 0);
    }
    let lost = task(&mut world, second);
    assert_eq!((lost.fault, lost.cost), (Some(MediaFault::Unknown), Micros::ZERO));
    sound(&mut world);
}

#[test]
fn a_kill_while_a_task_is_asked_for_or_downloaded_goes_on_without_paying_again() {
    let mut world = TestWorld::new();
    let id = world.ask(video()).unwrap().id;
    let make = the_try(&mut world, MAKE);
    world.ask(ReserveMedia { task: id, attempt: make.attempt }).unwrap();
    done(&mut world, make.attempt, &MediaReport { remote: Some("r".to_owned()), ..MediaReport::default() });
    drop(the_try(&mut world, POLL));
    world.restart();
    wait(&mut world, 0);
    let poll = the_try(&mut world, POLL);
    let links = MediaSource::Links(vec!["https://x.example/v".to_owned()]);
    done(&mut world, poll.attempt, &MediaReport { from: Some(links.clone()), ..MediaReport::default() });
    drop(the_try(&mut world, FETCH));
    world.restart();
    wait(&mut world, 0);
    let fetch = the_try(&mut world, FETCH);
    assert_eq!(serde_json::from_str::<FetchOrder>(&fetch.input).unwrap().from, links);
    done(&mut world, fetch.attempt, &result());
    let ended = task(&mut world, id);
    assert_eq!((ended.state, ended.cost, spent(&mut world, Scope::Global).0), (MediaState::Completed, MOST, MOST));
    sound(&mut world);
}

#[test]
fn what_was_not_charged_is_given_back_and_tried_again() {
    let mut world = TestWorld::new();
    let id = world.ask(image(None)).unwrap().id;
    for _ in 0..limits::MEDIA_MAKE_TRIES_MAX {
        let run = the_try(&mut world, MAKE);
        world.ask(ReserveMedia { task: id, attempt: run.attempt }).unwrap();
        let report =
            MediaReport { fault: Some(MediaFault::RateLimited), error: Some("e".to_owned()), ..MediaReport::default() };
        let reason = serde_json::to_string(&report).unwrap();
        world.outcome(JobOutcome(run.attempt, TryEnd::Retry { after_ms: None, reason }));
        assert_eq!(spent(&mut world, Scope::Global), (Micros::ZERO, Micros::ZERO));
        wait(&mut world, 60_000);
    }
    let ended = task(&mut world, id);
    assert_eq!((ended.state, ended.fault), (MediaState::Failed, Some(MediaFault::RateLimited)));
    sound(&mut world);
}

#[test]
fn a_task_that_never_ends_fails() {
    let mut world = TestWorld::new();
    let id = world.ask(video()).unwrap().id;
    let make = the_try(&mut world, MAKE);
    world.ask(ReserveMedia { task: id, attempt: make.attempt }).unwrap();
    done(&mut world, make.attempt, &MediaReport { remote: Some("r".to_owned()), ..MediaReport::default() });
    let mut asked = 0;
    while task(&mut world, id).state.is_open() {
        for run in tries(&mut world) {
            asked += 1;
            world.outcome(JobOutcome(run.attempt, TryEnd::Retry { after_ms: None, reason: "{}".to_owned() }));
        }
        wait(&mut world, limits::MEDIA_POLL_BACKOFF_MS_MAX);
    }
    let ended = task(&mut world, id);
    assert_eq!((ended.state, ended.fault), (MediaState::Failed, Some(MediaFault::Timeout)));
    assert!((100..limits::MEDIA_POLL_TRIES_MAX).contains(&asked), "{asked}");
    sound(&mut world);
}

#[test]
fn budgets_refuse_before_anything_is_stored() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let limits = Limits { daily: Some(Micros(MOST.0 - 1)), ..Limits::default() };
    world.ask(SetBudget { scope: Scope::Agent(agent), limits }).unwrap();
    let refused = |world: &mut TestWorld, it: CreateMedia| -> Refusal {
        let before = world.store.clone();
        let refusal = world.ask(it).unwrap_err();
        assert!(world.store == before, "it changed something");
        refusal
    };
    let over = refused(&mut world, image(Some(agent)));
    assert_eq!((over.kind, over.code), (RefusalKind::TooMany, Some(crate::budget::EXCEEDED)));
    let unpriced = CreateMedia { is_priced: false, most: Micros::ZERO, ..image(Some(agent)) };
    assert_eq!(refused(&mut world, unpriced).code, Some(crate::budget::error_codes::PRICE_UNKNOWN));
    let gone = refused(&mut world, image(Some(AgentId(Uuid::from_u128(7)))));
    assert_eq!(gone.kind, RefusalKind::NotFound);
    world.ask(image(None)).unwrap();
}

#[test]
fn requests_out_of_bounds_name_the_field() {
    let mut world = TestWorld::new();
    let long = |chars: usize| -> Box<str> { "ä".repeat(chars).into() };
    let image_of = |prompt: Box<str>, count, size| MediaRequest::Image { prompt, count, size };
    let speech = |text: Box<str>, voice: Option<Box<str>>, speed_percent| MediaRequest::Speech {
        text,
        voice,
        format: None,
        speed_percent,
    };
    let music = |prompt, lyrics| MediaRequest::Music { prompt, lyrics, instrumental: false, format: None };
    for (request, field) in [
        (image_of(" ".into(), 1, None), "prompt"),
        (image_of(long(4_001), 1, None), "prompt"),
        (image_of("x".into(), 0, None), "count"),
        (image_of("x".into(), 5, None), "count"),
        (image_of("x".into(), 1, Some((0, 1))), "width"),
        (image_of("x".into(), 1, Some((1, 4_097))), "height"),
        (speech(long(10_001), None, None), "text"),
        (speech("x".into(), Some("a b".into()), None), "voice"),
        (speech("x".into(), None, Some(24)), "speed"),
        (speech("x".into(), None, Some(401)), "speed"),
        (MediaRequest::Video { prompt: "x".into(), duration_secs: Some(61) }, "duration_secs"),
        (MediaRequest::Video { prompt: long(2_001), duration_secs: None }, "prompt"),
        (music(None, None), "prompt"),
        (music(None, Some(long(3_501))), "lyrics"),
    ] {
        let refusal = world.ask(CreateMedia { request: request.clone(), ..image(None) }).unwrap_err();
        assert_eq!((refusal.kind, refusal.field.as_deref()), (RefusalKind::BadRequest, Some(field)), "{request:?}");
    }
    for request in [
        image_of(long(4_000), 4, Some((4_096, 1))),
        speech(long(10_000), None, Some(25)),
        music(None, Some("la".into())),
    ] {
        world.ask(CreateMedia { request, ..image(None) }).unwrap();
    }
}

#[test]
fn one_owner_does_not_take_all_and_a_key_names_one_task() {
    let mut world = TestWorld::new();
    let (one, other) = (world.spawn("a"), world.spawn("b"));
    let keyed = CreateMedia { key: "turn:1".to_owned(), ..image(Some(one)) };
    let first = world.ask(keyed.clone()).unwrap().id;
    assert_eq!(world.ask(keyed).unwrap().id, first);
    for _ in 1..limits::MEDIA_AGENT_OPEN_MAX {
        world.ask(image(Some(one))).unwrap();
    }
    let full = world.ask(image(Some(one))).unwrap_err();
    assert_eq!(full.code, Some(error_codes::MEDIA_TASKS_FULL));
    world.ask(image(Some(other))).unwrap();
    let list = |world: &mut TestWorld, agent| {
        let filter = MediaFilter { agent, ..MediaFilter::default() };
        world.ask(List::<MediaTaskView> { filter, after: None, limit: 500 }).unwrap()
    };
    assert_eq!(list(&mut world, Some(one)).items.len(), limits::MEDIA_AGENT_OPEN_MAX);
    assert_eq!(list(&mut world, None).items.len(), limits::MEDIA_AGENT_OPEN_MAX + 1);
    world.restart();
    let again = CreateMedia { key: "turn:1".to_owned(), ..image(Some(one)) };
    assert_eq!(world.ask(again).unwrap().id, first, "the key outlives a restart");
    sound(&mut world);
}

#[test]
fn an_agent_takes_its_tasks_with_it_and_what_was_out_is_booked() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let id = world.ask(image(Some(agent))).unwrap().id;
    let run = the_try(&mut world, MAKE);
    world.ask(ReserveMedia { task: id, attempt: run.attempt }).unwrap();
    let waiting = world.begin(AwaitMedia(id));
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(waiting.take().unwrap().unwrap_err().kind, RefusalKind::NotFound);
    assert_eq!(spent(&mut world, Scope::Global), (MOST, Micros::ZERO));
    assert_eq!(events_for_tests(&world).pop().unwrap().call.end, CallEnd::Aborted);
    done(&mut world, run.attempt, &result());
    assert_eq!(spent(&mut world, Scope::Global), (MOST, Micros::ZERO), "a late answer books nothing");
    sound(&mut world);
}

#[test]
fn ended_tasks_go_after_a_month() {
    let mut world = TestWorld::new();
    let id = world.ask(image(None)).unwrap().id;
    let run = the_try(&mut world, MAKE);
    let failed =
        MediaReport { fault: Some(MediaFault::Filtered), error: Some("no".to_owned()), ..MediaReport::default() };
    world.outcome(JobOutcome(run.attempt, TryEnd::Failed(serde_json::to_string(&failed).unwrap())));
    assert_eq!((task(&mut world, id).fault, task(&mut world, id).cost), (Some(MediaFault::Filtered), Micros::ZERO));
    wait(&mut world, limits::MEDIA_KEPT_MS - 60_000);
    assert!(world.ask(Get::<MediaTaskView>(id)).is_ok());
    wait(&mut world, 120_000);
    assert_eq!(world.ask(Get::<MediaTaskView>(id)).unwrap_err().kind, RefusalKind::NotFound);
    sound(&mut world);
}

/// Else it would be kept for as long as the clock was ahead.
#[test]
fn a_task_that_ended_ahead_of_the_clock_counts_from_the_start() {
    let mut world = TestWorld::new();
    let id = world.ask(image(None)).unwrap().id;
    let run = the_try(&mut world, MAKE);
    let report = serde_json::to_string(&MediaReport::default()).unwrap();
    world.outcome(JobOutcome(run.attempt, TryEnd::Failed(report)));
    let ended = task(&mut world, id).ended_at.unwrap();
    world.now = ended.plus_ms(-10 * limits::MEDIA_KEPT_MS);
    world.restart();
    assert!(task(&mut world, id).ended_at.unwrap() <= world.now, "{ended:?}");
    sound(&mut world);
}
