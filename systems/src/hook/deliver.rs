//! Answers that go to channels, as durable jobs.

use bevy_ecs::prelude::World;

use agentsvc_components::hook::{HookCall, HookCallId};
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;

use super::limits;
use crate::agent::holder_of;
use crate::kernel::entities::state;
use crate::kernel::index;
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};

/// The name of the kind of jobs.
pub const DELIVER: &str = "hook_delivery";
/// What a try may take beyond the channel's time.
const TIMEOUT_MARGIN_MS: u32 = 5_000;
/// Bytes of an answer and where it goes, as JSON: a byte of a text can be six there.
const INPUT_BYTES_MAX: usize = 6 * (limits::HOOK_RESULT_BYTES_MAX + 2 * limits::HOOK_CHANNEL_BYTES_MAX) + 256;

/// Answers. One that was under way when the daemon ended goes out again under the same id, by which channels know it.
pub(super) const DELIVERY: JobKind = JobKind {
    name: DELIVER,
    repeatable: true,
    tries_max: limits::HOOK_DELIVERY_TRIES_MAX,
    backoff_ms: limits::HOOK_DELIVERY_BACKOFF_MS,
    backoff_ms_max: limits::HOOK_DELIVERY_BACKOFF_MS_MAX,
    deadline_ms: limits::HOOK_DELIVERY_DEADLINE_MS,
    timeout_ms: limits::HOOK_DELIVERY_TIMEOUT_MS + TIMEOUT_MARGIN_MS,
    lane: limits::HOOK_DELIVERIES_OUT_MAX,
    subject_lane: 1,
    is_shared: false,
    is_ordered: false,
    count_max: limits::HOOK_DELIVERIES_OPEN_MAX,
    subject_count_max: 1,
    subject_bytes_max: INPUT_BYTES_MAX,
    input_bytes_max: INPUT_BYTES_MAX,
    bytes_max: limits::HOOK_CALLS_BYTES_MAX,
    settle,
};

/// How often answers reach no channel is in the metrics of jobs; the caller has its answer all the same.
fn settle(_: &mut World, _: JobId, _: &Job, _: JobEvent) {}

/// A call has its answer: it goes where the call says.
pub(super) fn answer(world: &mut World, id: HookCallId) {
    let Some(HookCall { agent, target: Some(target), result: Some(text), .. }) = state::<HookCall>(world, id) else {
        return;
    };
    let (owner, input) = (Some(*agent), serde_json::json!({ "target": target, "text": text }).to_string().into());
    let holder = index::agent(world, *agent).ok().map(|agent| holder_of(world, agent));
    // Where there is no room, the answer does not go out, which the metrics of jobs count.
    let _ = job::add(world, DELIVER, NewJob { subject: id.0, owner, holder, input });
}
