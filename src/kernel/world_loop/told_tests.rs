//! What the loop tells a layer of `tracing`: how its spans stand to each other, and which system made a step slow.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use agentsvc_api::http::bridge::bridge;
use agentsvc_systems::world::GetStats;
use agentsvc_systems::{Records, Settings};
use futures_util::FutureExt;
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::*;
use crate::kernel::testing::Fields;

/// Keeps a line of each span, of what it follows from, and of each event.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for Told {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let line = match span.parent() {
            Some(parent) => format!("{} in {}", span.name(), parent.name()),
            None => span.name().to_owned(),
        };
        self.0.lock().push(line);
    }

    fn on_follows_from(&self, id: &Id, before: &Id, context: Context<'_, S>) {
        let name = |id: &Id| context.span(id).unwrap().name();
        self.0.lock().push(format!("{} after {}", name(id), name(before)));
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(event.metadata().level().to_string());
        event.record(&mut fields);
        self.0.lock().push(fields.0);
    }
}

/// Every line that `tell` leaves.
fn told(tell: impl FnOnce()) -> Vec<String> {
    let told = Told::default();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(told.clone()), tell);
    std::mem::take(&mut *told.0.lock())
}

fn engine() -> Engine {
    let mut engine = Engine::new(Settings::default(), [1; 32]);
    engine.restore(Records::default(), Timestamp(1)).unwrap();
    engine
}

#[test]
fn a_command_stands_within_its_request_and_follows_from_the_step_that_carries_it_out() {
    let (bridge, intake) = bridge();
    intake.open();
    let mut engine = engine();
    let lines = told(|| {
        let request = tracing::info_span!("request");
        let asked = request.in_scope(|| bridge.ask(GetStats).now_or_never());
        assert!(asked.is_none(), "the world has not looked yet");
        let _step = tracing::debug_span!("step").entered();
        let Ok(Arrival::Command(envelope)) = intake.arrivals.try_recv() else { panic!("the command has arrived") };
        envelope.run(&mut engine);
    });
    assert_eq!(lines, ["request", "step", "command in request", "command after step"]);
}

#[test]
fn a_slow_step_is_told_with_the_systems_that_took_the_time() {
    let mut engine = engine();
    // Each look at the clock is ten milliseconds later than the one before.
    let looks = AtomicU64::new(0);
    engine.time_systems(Arc::new(move || Duration::from_millis(10 * looks.fetch_add(1, Ordering::Relaxed))));
    engine.set_now(Timestamp(2));
    drop(engine.step());
    let names: Vec<&str> = engine.timings_of_step().iter().map(|(name, _)| *name).collect();
    assert!(names.len() > 4, "{names:?}");
    let lines = told(|| SlowSteps::new(20).note(&engine, Duration::from_millis(81), 3));
    let [line] = &lines[..] else { panic!("one line: {lines:?}") };
    for part in ["WARN", "a step of the world took longer than a tick", "took_ms=81", "arrivals=3", "slow_before=0"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    for name in &names[..4] {
        assert!(line.contains(&format!("{name} ")), "{name}: {line}");
    }
}

#[test]
fn that_work_is_held_is_told_when_it_begins_and_when_it_ends_and_not_every_time() {
    let (mut told_last, start) = (HoldTold::default(), Instant::now());
    let (none, fires) = (HoldWork::default(), HoldWork { fires: true, calls: false });
    let all = HoldWork { calls: true, ..fires };
    let mut at = |secs: u64, hold: HoldWork| told(|| told_last.note(hold, 7, start + Duration::from_secs(secs)));
    let begun = at(0, fires);
    assert!(begun.len() == 1 && begun[0].contains("WARN") && begun[0].contains("backlog_bytes=7"), "{begun:?}");
    assert!(at(1, all).is_empty() && at(2, fires).is_empty());
    let ended = at(3, none);
    assert!(ended.len() == 1 && ended[0].contains("INFO") && ended[0].contains("held_ms=3000"), "{ended:?}");
    for secs in 4..8 {
        assert!(at(secs, if secs % 2 == 0 { fires } else { none }).is_empty(), "it was said a moment ago");
    }
    let again = at(70, all);
    assert!(again.len() == 1 && again[0].contains("held_before=2"), "{again:?}");
}
