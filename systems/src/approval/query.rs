//! What queries see of approvals.

use agentsvc_components::ApprovalId;
use agentsvc_components::approval::Approval;

use super::Approvals;
use crate::agent::query::{self, AGENTS};
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::{Field, Kind, Relation, Source, field};

pub(crate) static APPROVALS: Kind = Kind {
    name: "approvals",
    text: "Approvals, pending and decided ones; without their payloads.",
    fields: &APPROVAL_FIELDS,
    relations: &[Relation {
        name: "agent",
        to: &AGENTS,
        text: "Who asks.",
        follow: |row| query::row_of(row, Some(row.get::<Approval>()?.agent)),
    }],
    shown: &["id", "agent.name", "action", "state", "created_at", "deadline"],
    source: Source {
        by_id: Some(|world, id| world.resource::<Approvals>().get(ApprovalId(id))),
        ..Source::of(|page| {
            let found = page.world.resource::<Approvals>().after(page.after().map(ApprovalId));
            page.entities(found.map(|(id, approval)| (id.0, approval)))
        })
    },
};

const APPROVAL_FIELDS: [Field; 9] = [
    field("id", Type::Id, "Its id.", |row| row.of(|id: &ApprovalId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Who asks.", |row| row.of(|approval: &Approval| Value::Id(approval.agent.0))),
    field("action", Type::Text, "What is to be done: the tool's name of a tool call.", |row| {
        row.of(|approval: &Approval| Value::text(&approval.action))
    }),
    field("state", Type::Word(&["pending", "approved", "rejected", "expired"]), "Where it is.", |row| {
        row.of(|approval: &Approval| Value::text(approval.state.as_str()))
    }),
    field("created_at", Type::Time, "When it was asked for.", |row| {
        row.of(|approval: &Approval| Value::Time(approval.created_at))
    }),
    field("deadline", Type::Time, "When it expires.", |row| {
        row.of(|approval: &Approval| Value::Time(approval.deadline))
    }),
    field("decided_at", Type::Time, "When it was decided, or expired.", |row| {
        row.of(|approval: &Approval| Value::maybe(approval.decided_at, Value::Time))
    }),
    field("reason", Type::Text, "What the person said to it, or why it expired.", |row| {
        row.of(|approval: &Approval| Value::maybe(approval.reason.as_deref(), Value::text))
    }),
    field("turn_id", Type::Id, "The turn that waits for it.", |row| {
        row.of(|approval: &Approval| {
            Value::maybe(approval.call.and_then(|call| call.waiting_turn()), |turn| Value::Id(turn.0))
        })
    }),
];
