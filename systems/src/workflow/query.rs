//! What queries see of workflows and their runs.

use agentsvc_components::workflow::{Workflow, WorkflowRun};
use agentsvc_components::{RunId, WorkflowId};

use super::{Definitions, Workflows};
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::{Cursor, Field, Item, Kind, Lookup, Relation, Source, field, span};

pub(crate) static WORKFLOWS: Kind = Kind {
    name: "workflows",
    text: "Workflow definitions.",
    fields: &WORKFLOW_FIELDS,
    relations: &[],
    shown: &["id", "name", "steps", "updated_at"],
    source: Source {
        by_id: Some(|world, id| world.resource::<Definitions>().get(WorkflowId(id))),
        ..Source::of(|page| {
            let found = page.world.resource::<Definitions>().after(page.after().map(WorkflowId));
            page.entities(found.map(|(id, workflow)| (id.0, workflow)))
        })
    },
};

const WORKFLOW_FIELDS: [Field; 6] = [
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &WorkflowId| Value::Id(id.0))),
    field("name", Type::Text, "Name.", |row| row.of(|workflow: &Workflow| Value::text(&workflow.name))),
    field("description", Type::Text, "Description.", |row| {
        row.of(|workflow: &Workflow| Value::text(&workflow.description))
    }),
    field("steps", Type::Number, "Number of steps.", |row| {
        row.of(|workflow: &Workflow| Value::count(workflow.steps.len() as u64))
    }),
    field("created_at", Type::Time, "Creation time.", |row| {
        row.of(|workflow: &Workflow| Value::Time(workflow.created_at))
    }),
    field("updated_at", Type::Time, "Time of the last change.", |row| {
        row.of(|workflow: &Workflow| Value::Time(workflow.updated_at))
    }),
];

pub(crate) static RUNS: Kind = Kind {
    name: "runs",
    text: "Workflow runs, open and ended.",
    fields: &RUN_FIELDS,
    relations: &[Relation {
        name: "workflow",
        to: &WORKFLOWS,
        text: "Workflow.",
        follow: |row| {
            let definitions = row.world.resource::<Definitions>();
            definitions.get(row.get::<WorkflowRun>()?.workflow).map(Item::Entity)
        },
    }],
    shown: &["id", "name", "state", "step", "steps", "started_at", "duration", "error"],
    source: Source {
        by_id: Some(|world, id| world.resource::<Workflows>().run(RunId(id))),
        lookups: &[Lookup {
            fields: &["workflow_id", "workflow.id"],
            rows: |page, workflow| {
                let Value::Id(workflow) = workflow else { return Cursor::End };
                let workflows = page.world.resource::<Workflows>();
                let found = workflows.runs_after(WorkflowId(*workflow), page.after().map(RunId));
                page.entities(found.filter_map(|id| Some((id.0, workflows.run(id)?))))
            },
        }],
        ..Source::of(|page| {
            let workflows = page.world.resource::<Workflows>();
            let after =
                if let Cursor::AfterPair(of, run) = page.cursor { Some((WorkflowId(of), RunId(run))) } else { None };
            let found = workflows.all_runs_after(after);
            let found = found.filter_map(|(of, run)| Some(((of.0, run.0), Item::Entity(workflows.run(run)?))));
            page.walk(found, |(of, run)| Cursor::AfterPair(of, run))
        })
    },
};

const RUN_STATES: &[&str] = &["Pending", "Running", "Completed", "Failed", "Cancelled"];

const RUN_FIELDS: [Field; 13] = [
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &RunId| Value::Id(id.0))),
    field("workflow_id", Type::Id, "Workflow.", |row| row.of(|run: &WorkflowRun| Value::Id(run.workflow.0))),
    field("name", Type::Text, "Name of the workflow when the run started.", |row| {
        row.of(|run: &WorkflowRun| Value::text(&run.name))
    }),
    field("state", Type::Word(RUN_STATES), "State.", |row| row.of(|run: &WorkflowRun| Value::text(run.state.as_str()))),
    field("open", Type::Bool, "Whether it is still open.", |row| {
        row.of(|run: &WorkflowRun| Value::Bool(run.state.is_open()))
    }),
    field("step", Type::Number, "First step that has not ended, counted from 0.", |row| {
        row.of(|run: &WorkflowRun| Value::count(run.at.into()))
    }),
    field("steps", Type::Number, "Number of steps.", |row| {
        row.of(|run: &WorkflowRun| Value::count(run.steps.len() as u64))
    }),
    field("started_at", Type::Time, "Start time.", |row| row.of(|run: &WorkflowRun| Value::Time(run.started_at))),
    field("ended_at", Type::Time, "End time.", |row| {
        row.of(|run: &WorkflowRun| Value::maybe(run.ended_at, Value::Time))
    }),
    field("duration", Type::Duration, "Duration, so far if it is still open.", |row| {
        row.of(|run: &WorkflowRun| span(run.started_at, run.ended_at.unwrap_or_else(|| row.now())))
    }),
    field("error", Type::Text, "Reason of the failure or cancellation.", |row| {
        row.of(|run: &WorkflowRun| Value::maybe(run.error.as_deref(), Value::text))
    }),
    field("depth", Type::Number, "Number of triggered turns between its steps and the first cause.", |row| {
        row.of(|run: &WorkflowRun| Value::count(run.depth.into()))
    }),
    field("tainted", Type::Bool, "Whether its input or outputs contain untrusted content.", |row| {
        row.of(|run: &WorkflowRun| Value::Bool(!run.taint.is_none()))
    }),
];
