//! Rows of workflows' runs: what changes with every step, the plan, and the texts, each written once.

use bevy_ecs::prelude::{Entity, World};
use uuid::Uuid;

use agentsvc_components::RunId;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::workflow::WorkflowRun;
use agentsvc_components::workflow::record::{RunPart, RunPlanRecord, RunRecord, RunTextRecord};

use crate::kernel::index::id_of;
use crate::kernel::record::{self, Error, decode, encode, key, op, unknown};
use crate::kernel::restore::Records;

/// The byte that the keys of the parts of runs begin with.
pub(super) const PARTS: u8 = b'p';

/// The plan of a run, as it is read.
pub(crate) type Plan = (RunId, RunPlanRecord);
/// A text of a run, as it is read.
pub(crate) type Text = (RunId, RunPart, RunTextRecord);

/// The key of one part of a run.
fn run_part(id: RunId, part: RunPart) -> Vec<u8> {
    let mut key = key::uuid(PARTS, id.0);
    key.extend_from_slice(&part.number().to_be_bytes());
    key
}

/// The run and the part that a key names; the kind byte is gone already.
fn parse_run_part(id: &[u8]) -> Option<(RunId, RunPart)> {
    let (run, part) = id.split_at_checked(16)?;
    let part = RunPart::of(u16::from_be_bytes(part.try_into().ok()?));
    Some((RunId(Uuid::from_slice(run).ok()?), part))
}

pub(super) fn read_part(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    let (run, part) = parse_run_part(&key[1..]).ok_or_else(|| unknown(key))?;
    match part {
        RunPart::Plan => records.push::<Plan>((run, decode(key, value)?)),
        part => records.push::<Text>((run, part, decode(key, value)?)),
    }
    Ok(())
}

pub(crate) fn put_plan(id: RunId, plan: &RunPlanRecord) -> Op {
    op(Space::World, run_part(id, RunPart::Plan), Some(encode(plan)))
}

pub(crate) fn put_text(id: RunId, part: RunPart, text: &RunTextRecord) -> Op {
    op(Space::World, run_part(id, part), Some(encode(text)))
}

pub(crate) fn remove_part(id: RunId, part: RunPart) -> Op {
    op(Space::World, run_part(id, part), None)
}

/// A run without its texts, which are written when they come.
pub(super) fn run(world: &World, entity: Entity) -> Option<Op> {
    let run = world.get::<WorkflowRun>(entity)?;
    Some(record::put(&RunRecord {
        id: id_of(world, entity),
        workflow: run.workflow,
        name: run.name.clone(),
        caller: run.caller,
        above: run.above.clone(),
        depth: run.depth,
        state: run.state,
        at: run.at,
        started_at: run.started_at,
        ended_at: run.ended_at,
        error: run.error.clone(),
        progress: run.progress.clone(),
        judged: run.judged,
        taint: run.taint,
        user: run.user.clone(),
        holder: run.holder,
    }))
}

/// The plans and the texts of all runs.
pub(super) fn parts(world: &mut World, rows: &mut Vec<Op>) {
    let mut runs = world.query::<(&RunId, &WorkflowRun)>();
    for (id, run) in runs.iter(world) {
        rows.push(put_plan(*id, &RunPlanRecord { steps: run.steps.clone(), input: run.input.clone() }));
        let outputs = (0..).zip(&run.outputs).filter_map(|(step, text)| Some((RunPart::Step(step), text.clone()?)));
        let whole = run.output.clone().map(|text| (RunPart::Output, text));
        let given = run.given.clone().map(|text| (RunPart::Given, text));
        rows.extend(outputs.chain(whole).chain(given).map(|(part, text)| put_text(*id, part, &RunTextRecord { text })));
    }
}
