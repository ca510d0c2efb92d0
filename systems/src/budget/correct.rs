//! An operator corrects what is booked, such as after a provider's wrong report. Usage events stay as they were reported.

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use agentsvc_components::kernel::limit;
use agentsvc_components::usage::Scope;
use agentsvc_components::{Micros, Refusal};

use super::{BudgetView, Budgets, audit_kinds, check_scope, show, store, waiting};
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::usage::{Correction, Rollups};

/// Sets what is booked for a scope in the present periods; what is `None` stays as it is. Other scopes are not changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CorrectBudget {
    /// Whose.
    pub scope: Scope,
    /// What was spent.
    pub correction: Correction,
    /// Why, for the audit log.
    pub reason: String,
}

command! {
    /// The budget as it is now.
    write "correct_budget" CorrectBudget => BudgetView, Root, |it, world| Answer::stored(correct(world, it))
}

fn correct(world: &mut World, command: CorrectBudget) -> Result<BudgetView, Refusal> {
    let CorrectBudget { scope, correction, reason } = command;
    check_scope(world, scope)?;
    let reason = reason.trim();
    if reason.is_empty() || reason.len() > limit::BUDGET_REASON_BYTES_MAX {
        let text = format!("reason must have 1 to {} bytes", limit::BUDGET_REASON_BYTES_MAX);
        return Err(Refusal::bad_field("reason", text));
    }
    if correction == Correction::default() {
        return Err(Refusal::bad_field("today_spent_usd", "give at least one amount to correct"));
    }
    let before = details(&show::view(world, scope));
    let now = world.resource::<Now>().0;
    if !world.resource_mut::<Rollups>().correct(scope, &correction, now) {
        return Err(Refusal::conflict("nothing is booked yet; there is nothing to correct"));
    }
    let mut record = world.resource::<Budgets>().of(scope);
    // What was said of the old sums does not hold for the new ones.
    (record.warned, record.exceeded) = (Default::default(), Default::default());
    store(world, scope, record);
    waiting::limits_changed(world, scope);
    let view = show::view(world, scope);
    let details = json!({ "reason": reason, "before": before, "after": details(&view) });
    world.audit(audit_kinds::BUDGET_CORRECTED, scope.agent(), details);
    Ok(view)
}

fn details(view: &BudgetView) -> Value {
    let usd = Micros::usd;
    json!({
        "today_spent_usd": usd(view.today), "month_spent_usd": usd(view.month),
        "hourly_tokens_used": view.hour_tokens, "total_cost_usd": usd(view.total.cost),
    })
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::{Block, Usage};
    use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome};

    use super::super::tests::{WORST, costs, send, settings, view};
    use super::*;
    use crate::testing::{TestWorld, answer};
    use crate::usage::CallTotals;

    #[test]
    fn a_report_beyond_what_a_call_can_cost_books_what_was_reserved_and_goes_on_record() {
        let mut world = TestWorld::with(settings(10 * WORST));
        let agent = world.spawn("a");
        let asked = send(&mut world, agent, 1);
        let call = world.next_call();
        let usage = Usage { cached_input_tokens: 1 << 63, ..Usage::of(1 << 63, u64::MAX) };
        let said = ModelAnswer { usage, ..answer(vec![Block::Text { text: "ok".into() }]) };
        world.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(said)));
        assert_eq!(asked.take().unwrap().unwrap().usage.cost, Micros(WORST));
        for scope in [Scope::Global, Scope::Agent(agent)] {
            assert_eq!(view(&mut world, scope).today, Micros(WORST), "{scope}");
        }
        assert_eq!(world.engine.world().resource::<CallTotals>().clipped, 1);
        assert!(send(&mut world, agent, 1).take().is_none(), "the next call goes out");
        assert_eq!(world.calls.len(), 1);
        assert_eq!(world.engine.check(), Vec::<String>::new());
    }

    #[test]
    fn a_correction_makes_room_is_stored_and_leaves_other_scopes_alone() {
        let mut world = TestWorld::with(settings(2 * WORST));
        let agent = world.spawn("a");
        for _ in 0..2 {
            let _asked = send(&mut world, agent, 1);
            let call = world.next_call();
            costs(&mut world, &call, 1_000);
        }
        assert!(send(&mut world, agent, 1).take().unwrap().is_err());
        let correction = Correction { today: Some(Micros(7)), total: Some(Micros(9)), ..Correction::default() };
        let command = CorrectBudget { scope: Scope::Global, correction, reason: "wrong report".into() };
        let after = world.ask(command.clone()).unwrap();
        assert_eq!(
            (after.today, after.month, after.total.cost, after.status),
            (Micros(7), Micros(2_000), Micros(9), "ok")
        );
        world.restart();
        assert_eq!(view(&mut world, Scope::Global), after);
        assert_eq!(view(&mut world, Scope::Agent(agent)).today, Micros(2_000));
        assert!(send(&mut world, agent, 1).take().is_none() && world.calls.len() == 1, "there is room");
        let ask = |world: &mut TestWorld, change: fn(&mut CorrectBudget)| {
            let mut other = command.clone();
            change(&mut other);
            world.ask(other).unwrap_err()
        };
        assert_eq!(ask(&mut world, |it| it.reason = " ".into()).field.as_deref(), Some("reason"));
        assert!(ask(&mut world, |it| it.correction = Correction::default()).field.is_some());
        let other = world.spawn("b");
        let unused = CorrectBudget { scope: Scope::Agent(other), ..command };
        assert!(world.ask(unused).is_err(), "nothing is booked for it");
    }
}
