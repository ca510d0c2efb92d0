//! What came back from the outside moves the turns that asked for it.

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::TurnId;
use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::{Block, Role, Usage, text_of};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::turn::trace::{StepKind, StepStatus};
use agentsvc_components::turn::{Turn, TurnState};

use super::finish::{End, finish};
use super::trace::{self, Ended};
use super::{conversation, profile, stop, tools};
use crate::config::Settings;
use crate::kernel::arrivals::Settle;
use crate::kernel::clock::Now;
use crate::kernel::counters::StaleOutcomes;
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::record::{self, MessageKey};
use crate::model::ModelTotals;
use crate::model::admission::Admission;
use crate::{compaction, session, usage};

/// The turn that still waits for `attempt`; a stale outcome is counted and dropped.
fn awaited(world: &mut World, attempt: Attempt) -> Option<Entity> {
    let found = index::turn(world, TurnId(attempt.job.0))
        .filter(|turn| world.get::<Turn>(*turn).is_some_and(|turn| turn.attempt == attempt.number));
    if found.is_none() {
        world.resource_mut::<StaleOutcomes>().0 += 1;
    }
    found
}

impl Settle for ModelOutcome {
    fn settle(self, world: &mut World) {
        model(world, self.0, self.1);
    }
}

fn model(world: &mut World, attempt: Attempt, mut end: ModelEnd) {
    world.resource_mut::<Admission>().give_back(attempt);
    world.resource_mut::<ModelTotals>().calls += 1;
    let used = usage::model(world, attempt, &mut end);
    let Some(entity) = awaited(world, attempt) else { return };
    account(world, entity, used);
    trace_call(world, entity, &end);
    if stop::is_going(world, entity) {
        return stop::end_going(world, entity);
    }
    match end {
        ModelEnd::Failed(failure) => {
            let stopping = world.get::<Turn>(entity).is_some_and(|turn| turn.state == TurnState::Stopping);
            let end =
                if stopping { End::Stopped(None) } else { End::Failed(failure.code.error_code(), failure.message) };
            finish(world, entity, end);
        }
        ModelEnd::Aborted(answer) => {
            finish(world, entity, End::Stopped(Some(answer)));
        }
        ModelEnd::Answered(answer) => {
            if answer.pressed {
                compaction::pressed(world, entity);
            }
            let stopping = world.get::<Turn>(entity).is_some_and(|turn| turn.state == TurnState::Stopping);
            if stopping {
                finish(world, entity, End::Stopped(Some(answer)));
            } else if let Some(answer) = conversation::for_client(world, entity, &answer) {
                finish(world, entity, End::Answered(answer));
            } else if answer.blocks.iter().any(|block| matches!(block, Block::ToolCall(_))) {
                tools::ask(world, entity, answer);
            } else {
                finish(world, entity, End::Answered(answer));
            }
        }
    }
}

/// Notes the end of a model call.
fn trace_call(world: &mut World, entity: Entity, end: &ModelEnd) {
    let Some(started_at) = world.get::<Turn>(entity).map(|turn| turn.called_at) else { return };
    let (name, usage, status, error) = match end {
        ModelEnd::Answered(answer) => (model_name(answer), Some(answer.usage), StepStatus::Ok, None),
        ModelEnd::Aborted(answer) => (model_name(answer), Some(answer.usage), StepStatus::Stopped, None),
        ModelEnd::Failed(failure) => {
            (failed_name(world, entity, failure), None, StepStatus::Error, Some(failure.message.as_str()))
        }
    };
    trace::step(world, entity, Ended { kind: StepKind::Model, name: &name, started_at, usage, status, error });
}

/// The model that failed: the one that was asked last, or, where none was, that of the agent.
fn failed_name(world: &World, entity: Entity, failure: &ModelFailure) -> Box<str> {
    if let Some(last) = failure.spent.last() {
        return format!("{}/{}", last.provider, last.model).into();
    }
    let turn = world.get::<Turn>(entity);
    let owner = turn.and_then(|turn| Some((turn, world.get::<Agent>(turn.agent)?)));
    let Some((turn, owner)) = owner else { return failure.code.as_str().into() };
    let manifest = profile::manifest(owner, turn.request.as_deref());
    let model = world.resource::<Settings>().resolve(&manifest.manifest.model);
    format!("{}/{}", model.provider, model.model).into()
}

fn model_name(answer: &ModelAnswer) -> Box<str> {
    format!("{}/{}", answer.provider, answer.model).into()
}

/// Adds what a call used to its turn, however it ended.
fn account(world: &mut World, entity: Entity, used: Usage) {
    if used == Usage::default() {
        return;
    }
    if let Some(mut turn) = world.get_mut::<Turn>(entity) {
        turn.usage = turn.usage.plus(used);
    }
    world.mark(entity);
}

/// Writes one row of a turn at `index`; a row with text of the model counts as a message.
pub(super) fn write_row(world: &mut World, entity: Entity, index: u32, row: &MessageRecord) {
    let Some(turn) = world.get::<Turn>(entity) else { return };
    let (session, ordinal) = (turn.session, turn.ordinal);
    let Some(mut home) = world.get_mut::<Session>(session) else { return };
    if row.role == Role::Assistant && !text_of(&row.blocks).is_empty() {
        home.message_count += 1;
    }
    home.updated_at = row.created_at;
    let log = home.log;
    session::put_row(world, session, record::put_content(record::message_key(MessageKey { log, ordinal, index }), row));
    world.mark(session);
}

/// The row of a model's answer.
pub(super) fn answer_row(world: &World, entity: Entity, answer: ModelAnswer, stopped: bool) -> MessageRecord {
    MessageRecord {
        turn: id_of::<TurnId>(world, entity),
        role: Role::Assistant,
        created_at: world.resource::<Now>().0,
        usage: Some(answer.usage),
        model: Some(model_name(&answer)),
        blocks: answer.blocks,
        stopped,
        repeats: None,
    }
}
