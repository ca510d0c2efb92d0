//! Limits are set by the API (spec 3, PUT /api/budget). They hold until they are set anew, whatever manifest and
//! configuration say.

use crate::budget::audit_kinds;
use serde::{Deserialize, Serialize};

use agentsvc_components::Micros;
use agentsvc_components::usage::{Limits, Scope};
use serde_json::json;

use super::{BudgetView, Budgets, check_scope, show, store, waiting};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};

/// Sets limits of one scope; what is `None` stays as it is, 0 takes a limit away.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SetBudget {
    /// Whose.
    pub scope: Scope,
    /// The new limits.
    pub limits: Limits,
}

command! {
    /// The budget as it is now.
    write "set_budget" SetBudget => BudgetView, Root, |it, world| {
        if let Err(refusal) = check_scope(world, it.scope) {
            return Answer::Now(Err(refusal));
        }
        let mut record = world.resource::<Budgets>().of(it.scope);
        record.limits = it.limits.or(record.limits);
        // What was said of the old limits does not hold for the new ones.
        (record.warned, record.exceeded) = (Default::default(), Default::default());
        store(world, it.scope, record);
        let Limits { daily, monthly, hourly_tokens } = record.limits;
        let usd = |limit: Option<Micros>| limit.map(Micros::usd);
        let mut details = json!({ "daily_limit_usd": usd(daily), "monthly_limit_usd": usd(monthly), "hourly_token_limit": hourly_tokens });
        if let Some(user) = it.scope.user() {
            details["user"] = json!(user);
        }
        world.audit(audit_kinds::BUDGET_SET, it.scope.agent(), details);
        waiting::limits_changed(world, it.scope);
        Answer::Stored(show::view(world, it.scope))
    }
}
