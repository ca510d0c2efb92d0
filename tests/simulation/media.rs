//! Media are asked for, and providers answer, fail and hang.

use agentsvc_components::kernel::job::{JobOutcome, RunJob, TryEnd};
use agentsvc_components::media::{MediaFault, MediaFile, MediaRequest, MediaState};
use agentsvc_components::{Actor, FileId, Micros};
use agentsvc_systems::media::{CreateMedia, FETCH, MAKE, MakeOrder, MediaReport, MediaSource, POLL, ReserveMedia};
use uuid::Uuid;

use super::client::agent;
use super::harness::{CONTEXT, Harness};
use super::outside::deliver;

/// One request.
pub(crate) fn act(harness: &mut Harness) {
    let agent = if harness.rng.chance(70) { agent(harness) } else { None };
    let prompt = harness.text("a picture").into();
    let request = match harness.rng.below(2) {
        0 => MediaRequest::Image { prompt, count: 1, size: None },
        _ => MediaRequest::Video { prompt, duration_secs: None },
    };
    let key = if harness.rng.chance(30) { format!("k{}", harness.rng.below(20)) } else { String::new() };
    let (provider, model, turn) = ("openai".to_owned(), "image".to_owned(), None);
    let most = Micros(harness.rng.pick(&[0, 1, CONTEXT]));
    let is_priced = harness.rng.chance(90);
    harness.ask(CreateMedia { agent, turn, key, provider, model, request, most, is_priced }, |_, _| {});
}

/// Is the try one of these jobs?
pub(crate) fn is_media(run: &RunJob) -> bool {
    [MAKE, POLL, FETCH].contains(&run.kind)
}

/// What becomes of a try. What is paid is reserved before.
pub(crate) fn answer(harness: &mut Harness, run: &RunJob) {
    let attempt = run.attempt;
    if run.kind != MAKE {
        let end = free(harness, run.kind == POLL);
        return deliver(harness, JobOutcome(attempt, end));
    }
    let order: MakeOrder = serde_json::from_str(&run.input).expect("what the world wrote");
    harness.ask_as(Actor::System, ReserveMedia { task: order.task, attempt }, move |harness, reserved| {
        let end = match reserved {
            Ok(()) => paid(harness, &order.request),
            Err(_) => TryEnd::Failed(failed(MediaFault::Budget)),
        };
        deliver(harness, JobOutcome(attempt, end));
    });
}

fn report(report: &MediaReport) -> String {
    serde_json::to_string(report).expect("plain data")
}

fn failed(fault: MediaFault) -> String {
    report(&MediaReport { fault: Some(fault), error: Some("it failed".to_owned()), ..MediaReport::default() })
}

fn result() -> MediaReport {
    let (file, content_type) = (FileId(Uuid::from_u128(1)), "image/png".into());
    let file = MediaFile { file, content_type, bytes: 1, duration_ms: None, sample_rate: None, size: None };
    MediaReport { files: vec![file], ..MediaReport::default() }
}

fn paid(harness: &mut Harness, request: &MediaRequest) -> TryEnd {
    match harness.rng.below(10) {
        0 => TryEnd::Failed(failed(MediaFault::Filtered)),
        1 => TryEnd::Lost("it took too long".to_owned()),
        2 | 3 => TryEnd::Retry { after_ms: None, reason: failed(MediaFault::RateLimited) },
        4 => TryEnd::Failed("it is no answer".to_owned()),
        5 => TryEnd::Done(report(&MediaReport {
            from: Some(MediaSource::Links(vec!["https://p.example/x".to_owned()])),
            ..MediaReport::default()
        })),
        _ if matches!(request, MediaRequest::Video { .. }) => {
            TryEnd::Done(report(&MediaReport { remote: Some("remote".to_owned()), ..MediaReport::default() }))
        }
        _ => TryEnd::Done(report(&MediaReport { cost: Some(Micros(harness.rng.below(9) as u64)), ..result() })),
    }
}

fn free(harness: &mut Harness, is_poll: bool) -> TryEnd {
    let open = || report(&MediaReport { state: Some(MediaState::Processing), ..MediaReport::default() });
    match harness.rng.below(8) {
        0 => TryEnd::Failed(failed(MediaFault::Provider)),
        1 => TryEnd::Lost("it took too long".to_owned()),
        2 | 3 => TryEnd::Retry { after_ms: None, reason: open() },
        _ if is_poll => TryEnd::Done(report(&MediaReport {
            from: Some(MediaSource::File("file".to_owned())),
            ..MediaReport::default()
        })),
        _ => TryEnd::Done(report(&result())),
    }
}
