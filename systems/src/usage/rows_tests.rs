//! Records of usage and budgets go to bytes and back.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::{JobId, UserId};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::Usage;
use agentsvc_components::usage::record::{BudgetRecord, CallRecord, ScopeUseRecord, UsageRecord};
use agentsvc_components::usage::{Bucket, CallUse, Limits, Scope, UsageSum};
use agentsvc_components::{AgentId, Micros, SessionId, Timestamp};
use uuid::Uuid;

use super::rows::*;
use crate::budget::rows::put_budget;
use crate::kernel::record::decode;
use crate::kernel::record::tests::{agent, comes_back};

#[test]
fn usage_and_budgets_come_back_as_they_were() {
    comes_back(&put_call(&call()), &call());
    comes_back(&put_scope_use(&scope_use(None)), &scope_use(None));
    comes_back(&put_scope_use(&scope_use(Some(agent().id))), &scope_use(Some(agent().id)));
    let of_user = ScopeUseRecord { user: Some(UserId(Uuid::from_u128(5))), ..scope_use(None) };
    comes_back(&put_scope_use(&of_user), &of_user);
    let of_user = BudgetRecord { user: of_user.user, ..budget() };
    comes_back(&put_budget(&of_user), &of_user);
    let bucket = Bucket::ModelDay(3, "p".into(), "m".into());
    comes_back(&put_usage_sum(&bucket, &sum()), &(bucket, sum()));
    comes_back(&put_budget(&budget()), &budget());
}

fn call() -> CallRecord {
    CallRecord {
        job: JobId(Uuid::from_u128(3)),
        number: 4,
        agent: agent().id,
        above: vec![agent().id],
        user: Some(UserId(Uuid::from_u128(5))),
        agent_name: "scout".into(),
        session: SessionId(Uuid::from_u128(2)),
        channel: "api".into(),
        provider: "openai".into(),
        model: "gpt".into(),
        at: Timestamp(7),
        reserved: Micros(9),
        is_bounded: true,
        is_aside: false,
        strangers: Taint::NONE,
        began_in: None,
    }
}

fn sum() -> UsageSum {
    UsageSum { input_tokens: 1, cached_input_tokens: 1, output_tokens: 2, cost: Micros(3), requests: 4 }
}

fn scope_use(agent: Option<AgentId>) -> ScopeUseRecord {
    let empty = ScopeUseRecord::new(Scope::Global);
    ScopeUseRecord { agent, total: sum(), day: 20_000, day_cost: Micros(5), hour_tokens: 6, ..empty }
}

fn budget() -> BudgetRecord {
    BudgetRecord {
        agent: None,
        user: None,
        limits: Limits { daily: Some(Micros(1)), ..Limits::default() },
        warned: [Some(20_000), None],
        exceeded: [None, Some(20_000), None],
    }
}

#[test]
fn usage_events_come_back_and_sort_by_time() {
    let call = CallUse { usage: Usage { cost: Micros(2), ..Usage::of(3, 4) }, ..CallUse::default() };
    let record = UsageRecord {
        at: Timestamp(1_000),
        agent: agent().id,
        agent_name: "scout".into(),
        billed: None,
        session: SessionId(Uuid::from_u128(2)),
        channel: "api".into(),
        call,
    };
    let attempt = Attempt { job: JobId(Uuid::from_u128(3)), number: 1 };
    let op = put_usage(attempt, 0, &record);
    assert_eq!(decode::<UsageRecord>(&op.key, &op.value.unwrap()).unwrap(), record);
    assert!(usage_range(Timestamp(1_000), Timestamp(1_001)).contains(&op.key));
    assert!(op.key < usage_key(Timestamp(1_000), attempt, 1));
}
