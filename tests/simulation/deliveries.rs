//! The client sets where answers of schedules, triggers and workflows go.

use agentsvc_components::delivery::{SourceKind, Target};
use agentsvc_components::kernel::job::TryEnd;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_systems::delivery::{SetTargets, Source};

use super::harness::Harness;

/// One request.
pub(crate) fn act(harness: &mut Harness) {
    let source = match harness.rng.below(3) {
        0 => {
            let known = harness.known.schedules.clone();
            harness.rng.any(&known).map(|(_, kind, id)| {
                let kind = if kind == ScheduleKind::Cron { SourceKind::Cron } else { SourceKind::Schedule };
                Source::new(kind, id.0)
            })
        }
        1 => {
            let known = harness.known.triggers.clone();
            harness.rng.any(&known).map(|(_, id)| Source::new(SourceKind::Trigger, id.0))
        }
        _ => {
            let known = harness.known.workflows.clone();
            harness.rng.any(&known).map(|id| Source::new(SourceKind::Workflow, id.0))
        }
    };
    let Some(source) = source else { return };
    let count = harness.rng.below(4);
    let targets = (0..count).map(|_| target(harness, source.kind)).collect();
    harness.ask(SetTargets { source, targets }, |_, _| {});
}

fn target(harness: &mut Harness, kind: SourceKind) -> Target {
    let has_agent = kind != SourceKind::Workflow;
    match harness.rng.below(5) {
        0 if has_agent => Target::LastChannel,
        1 if has_agent => Target::LocalFile { path: "notes/log.md".into(), append: harness.rng.chance(50) },
        2 => {
            let instance = harness.rng.pick(&["open", "slow", "closed"]).into();
            Target::Channel { instance, recipient: Some("c1".into()), thread: None }
        }
        _ => Target::Webhook { url: "https://hooks.example/".into(), secret: None, auth_header: None },
    }
}

/// What becomes of a try.
pub(crate) fn answer(harness: &mut Harness) -> TryEnd {
    match harness.rng.below(10) {
        0 => TryEnd::Failed("410".to_owned()),
        1 => TryEnd::Lost("it took too long".to_owned()),
        2 | 3 => TryEnd::Retry { after_ms: None, reason: "503".to_owned() },
        _ => TryEnd::Done(String::new()),
    }
}
