//! What queries see of approvals.

use agentsvc_components::ApprovalId;
use agentsvc_components::approval::Approval;

use super::Approvals;
use crate::agent::query::{self, AGENTS};
use crate::kernel::expr::{Type, Value};
use crate::kernel::table::{Field, Kind, Relation, Source, field};

pub(crate) static APPROVALS: Kind = Kind {
    name: "approvals",
    text: "Pending and decided approvals, without payloads.",
    fields: &APPROVAL_FIELDS,
    relations: &[Relation {
        name: "agent",
        to: &AGENTS,
        text: "Agent that requests it.",
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
    field("id", Type::Id, "Unique id.", |row| row.of(|id: &ApprovalId| Value::Id(id.0))),
    field("agent_id", Type::Id, "Agent that requests it.", |row| {
        row.of(|approval: &Approval| Value::Id(approval.agent.0))
    }),
    field("action", Type::Text, "Requested action: the tool name for a tool call.", |row| {
        row.of(|approval: &Approval| Value::text(&approval.action))
    }),
    field("state", Type::Word(&["pending", "approved", "rejected", "expired"]), "State.", |row| {
        row.of(|approval: &Approval| Value::text(approval.state.as_str()))
    }),
    field("created_at", Type::Time, "Time of the request.", |row| {
        row.of(|approval: &Approval| Value::Time(approval.created_at))
    }),
    field("deadline", Type::Time, "Expiry time.", |row| row.of(|approval: &Approval| Value::Time(approval.deadline))),
    field("decided_at", Type::Time, "Time of the decision or expiry.", |row| {
        row.of(|approval: &Approval| Value::maybe(approval.decided_at, Value::Time))
    }),
    field("reason", Type::Text, "Reason given with the decision, or reason of the expiry.", |row| {
        row.of(|approval: &Approval| Value::maybe(approval.reason.as_deref(), Value::text))
    }),
    field("turn_id", Type::Id, "Turn that waits for it.", |row| {
        row.of(|approval: &Approval| {
            Value::maybe(approval.call.and_then(|call| call.waiting_turn()), |turn| Value::Id(turn.0))
        })
    }),
];
