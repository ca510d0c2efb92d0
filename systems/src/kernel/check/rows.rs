//! The rows that a live world would write of itself, beside those that are stored.

use bevy_ecs::prelude::{Entity, Or, With, World};

use agentsvc_components::RunId;
use agentsvc_components::agent::Agent;
use agentsvc_components::approval::Approval;
use agentsvc_components::audit::record::AuditHead;
use agentsvc_components::compaction::Compaction;
use agentsvc_components::goal::Goal;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::schedule::Schedule;
use agentsvc_components::session::Session;
use agentsvc_components::task::Task;
use agentsvc_components::trigger::{Trigger, TriggerState};
use agentsvc_components::turn::Turn;
use agentsvc_components::workflow::record::{RunPart, RunPlanRecord, RunTextRecord};
use agentsvc_components::workflow::{Workflow, WorkflowRun};

use super::{Faults, Rows};
use crate::agent::manifests::Manifests;
use crate::audit::Trail;
use crate::budget::Budgets;
use crate::kernel::index::id_of;
use crate::kernel::persist;
use crate::kernel::record;
use crate::kernel::record::Stored;
use crate::kernel::restore::Records;
use crate::memory::Memories;
use crate::trigger::Waves;
use crate::usage::{Calls, Rollups};
use crate::{schedule, trigger};

/// Kinds of rows that are not compared: intents to erase, and bursts, which are compared as what they stand for.
const LEFT_OUT: &[u8] = b"wx";

type Work = Or<(With<Workflow>, With<WorkflowRun>, With<Goal>, With<Task>)>;
type Automation = Or<(Work, With<TriggerState>, With<Schedule>, With<Approval>)>;
type Kept = Or<(With<Agent>, With<Session>, With<Turn>, With<Compaction>, Automation)>;

/// Says where the two differ.
pub(super) fn differences(world: &mut World, stored: &Rows) -> Vec<String> {
    let mut faults = Faults::default();
    let live: Rows = of_world(world).into_iter().filter_map(|op| Some((op.key, op.value?))).collect();
    match unfolded(stored) {
        Err(error) => faults.that(false, || format!("a stored row cannot be read: {error}")),
        Ok(stored) => {
            let keys = live.keys().chain(stored.keys().filter(|key| !live.contains_key(*key)));
            for key in keys.filter(|key| !key.first().is_some_and(|kind| LEFT_OUT.contains(kind))) {
                let (live, stored) = (live.get(key), stored.get(key));
                let same = live.map(|row| plain(key, row)) == stored.map(|row| plain(key, row));
                faults.that(same, || {
                    format!("{}: {} lives, {} is stored", name(key), shown(key, live), shown(key, stored))
                });
            }
        }
    }
    faults.0
}

/// A row's key for people: its kind, and the rest in hex.
fn name(key: &[u8]) -> String {
    let (kind, rest) = key.split_at(key.len().min(1));
    format!("{}{}", String::from_utf8_lossy(kind), record::hex(rest))
}

fn shown(key: &[u8], row: Option<&Vec<u8>>) -> String {
    let Some(row) = row else { return "nothing".to_owned() };
    match record::decode_world(key, row) {
        Ok(stored) => format!("{stored:?}"),
        Err(_) => record::hex(row),
    }
}

/// A row without the number of bursts that a trigger's log knows of: that grows without the trigger.
fn plain(key: &[u8], row: &[u8]) -> Vec<u8> {
    match record::decode_world(key, row) {
        Ok(Stored::TriggerState(mut state)) if key.first() == Some(&b'h') => {
            state.bursts = 0;
            record::encode(&*state)
        }
        _ => row.to_vec(),
    }
}

/// What is stored, with turns and logs of triggers as the bursts stand for them.
fn unfolded(stored: &Rows) -> Result<Rows, record::Error> {
    let mut rows = stored.clone();
    if !stored.keys().any(|key| key.first() == Some(&b'x')) {
        return Ok(rows);
    }
    let mut records = Records::default();
    for (key, row) in stored {
        records.push(record::decode_world(key, row)?);
    }
    trigger::unfold(&mut records);
    let turns = records.turns.iter().map(record::put_turn);
    let states = records.trigger_states.iter().map(record::put_trigger_state);
    rows.extend(turns.chain(states).filter_map(|op| Some((op.key, op.value?))));
    Ok(rows)
}

/// Every row that the world would write.
fn of_world(world: &mut World) -> Vec<Op> {
    let mut kept = world.query_filtered::<Entity, Kept>();
    let mut triggers = world.query_filtered::<Entity, With<Trigger>>();
    let mut schedules = world.query_filtered::<Entity, With<Schedule>>();
    let mut runs = world.query_filtered::<Entity, With<WorkflowRun>>();
    let world = &*world;
    let mut rows: Vec<Op> = kept.iter(world).filter_map(|entity| persist::record_of(world, entity)).collect();
    rows.extend(
        triggers.iter(world).filter_map(|entity| trigger::record_of(world, entity)).map(|it| record::put_trigger(&it)),
    );
    let definitions = schedules.iter(world).filter_map(|entity| schedule::definition(world, entity));
    rows.extend(definitions.map(|it| record::put_schedule(&it)));
    for run in runs.iter(world) {
        parts_of_run(world, run, &mut rows);
    }
    rows.extend(world.resource::<Manifests>().all().map(|it| record::put_manifest(it.hash, &it.manifest)));
    rows.extend(world.resource::<Memories>().records().map(|it| record::put_memory_use(&it)));
    rows.extend(world.resource::<Calls>().all().map(record::put_call));
    rows.extend(world.resource::<Rollups>().scopes().map(|(_, it)| record::put_scope_use(it)));
    rows.extend(world.resource::<Rollups>().sums().map(|(bucket, sum)| record::put_usage_sum(bucket, sum)));
    rows.extend(world.resource::<Budgets>().stored().map(record::put_budget));
    rows.extend(world.resource::<Waves>().records().map(|it| record::put_wave(&it)));
    let head = world.resource::<Trail>().head();
    if head != AuditHead::default() {
        rows.push(record::put_audit_head(&head));
    }
    rows
}

/// The plan and the texts of a run.
fn parts_of_run(world: &World, entity: Entity, rows: &mut Vec<Op>) {
    let Some(run) = world.get::<WorkflowRun>(entity) else { return };
    let id = id_of::<RunId>(world, entity);
    rows.push(record::put_run_plan(id, &RunPlanRecord { steps: run.steps.clone(), input: run.input.clone() }));
    let outputs = (0..).zip(&run.outputs).filter_map(|(step, text)| Some((RunPart::Step(step), text.clone()?)));
    let whole = run.output.clone().map(|text| (RunPart::Output, text));
    let texts = outputs.chain(whole);
    rows.extend(texts.map(|(part, text)| record::put_run_text(id, part, &RunTextRecord { text })));
}
