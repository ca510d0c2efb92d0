//! What a turn did, step by step: gathered while it runs, stored when it ends.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::kernel::limit;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::trace::{StepKind, StepStatus, TraceRecord, TraceStep, TrimTraces};
use agentsvc_components::turn::{Journal, Turn};
use agentsvc_components::{SessionId, Timestamp};

use super::finish::End;
use super::stop;
use crate::kernel::clock::Now;
use crate::kernel::id_generator::is_drawn;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::kernel::record;
use crate::{proactive_memory, session};

/// Bytes of the error of a step that are kept.
const STEP_ERROR_BYTES_MAX: usize = 400;

/// A model or tool call that has ended.
pub(super) struct Ended<'a> {
    pub(super) kind: StepKind,
    pub(super) name: &'a str,
    /// When it went out.
    pub(super) started_at: Timestamp,
    /// Tokens; model calls only.
    pub(super) usage: Option<Usage>,
    pub(super) status: StepStatus,
    /// Why it failed.
    pub(super) error: Option<&'a str>,
}

impl<'a> Ended<'a> {
    /// A tool call.
    pub(super) const fn tool(name: &'a str, started_at: Timestamp, status: StepStatus) -> Self {
        Self { kind: StepKind::Tool, name, started_at, usage: None, status, error: None }
    }
}

/// Notes that a model or tool call has ended.
pub(super) fn step(world: &mut World, entity: Entity, ended: Ended<'_>) {
    let now = world.resource::<Now>().0;
    let Some(mut turn) = world.get_mut::<Turn>(entity) else { return };
    let Ended { kind, name, started_at, usage, status, error } = ended;
    let duration_ms = u32::try_from(now.ms_since(started_at)).unwrap_or(u32::MAX);
    let error = error.map(|error| error[..error.floor_char_boundary(STEP_ERROR_BYTES_MAX)].into());
    let step = TraceStep { kind, name: name.into(), started_at, duration_ms, usage, status, error };
    turn.journal.get_or_insert_default().steps.push(step);
    world.mark(entity);
}

/// Stores the trace of a turn that ends now.
pub(super) fn write(world: &mut World, entity: Entity, end: &End, journal: Journal) {
    let Some(turn) = world.get::<Turn>(entity) else { return };
    let Some(log) = world.get::<Session>(turn.session).map(|session| session.log) else { return };
    // The traces of an agent that is gone go with it.
    if stop::is_leaving(world, entity) {
        return;
    }
    let id = id_of(world, entity);
    let log = session::ending_of(world, turn.session, id).map_or(log, |ending| ending.log_of(id));
    let (code, error) = match end {
        End::Failed(code, error) => (Some(code.as_str().into()), Some(error.as_str().into())),
        _ => (None, None),
    };
    let record = TraceRecord {
        turn: id,
        session: id_of::<SessionId>(world, turn.session),
        log,
        ordinal: turn.ordinal,
        origin: turn.origin,
        started_at: turn.created_at,
        ended_at: world.resource::<Now>().0,
        end: end.kind(),
        code,
        error,
        usage: turn.usage,
        iterations: turn.iteration,
        tool_calls: turn.tool_calls,
        steps: journal.steps,
        notices: journal.notices,
        recalled: journal.recalled.as_deref().map(proactive_memory::for_trace),
    };
    let agent = id_of(world, turn.agent);
    world.op(record::put_content(record::trace_key(agent, record.turn), &record));
    // By chance, with nothing to count.
    if is_drawn(record.turn.0, limit::TRACE_TRIM_EVERY) {
        world.effect(TrimTraces(agent));
    }
}
