//! Rows of budgets.

use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::usage::Scope;
use agentsvc_components::usage::record::BudgetRecord;

use crate::kernel::record::{Error, decode, encode, key, op};
use crate::kernel::restore::Records;

/// The byte that the keys of budgets begin with.
pub(super) const BUDGETS: u8 = b'l';

pub(super) fn read(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    records.push::<BudgetRecord>(decode(key, value)?);
    Ok(())
}

fn budget_key(scope: Scope) -> Vec<u8> {
    match scope {
        Scope::Global => vec![BUDGETS],
        Scope::Agent(agent) => key::uuid(BUDGETS, agent.0),
        Scope::User(user) => [&[BUDGETS, b'u'], user.0.as_bytes().as_slice()].concat(),
    }
}

pub(crate) fn put_budget(record: &BudgetRecord) -> Op {
    op(Space::World, budget_key(record.scope()), Some(encode(record)))
}

pub(crate) fn remove_budget(scope: Scope) -> Op {
    op(Space::World, budget_key(scope), None)
}
