//! Approvals that turns ask for which strangers began.

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::{RefusalKind, SessionId};
use uuid::Uuid;

use super::tests::{model_asks, pending, send, world};
use super::*;
use crate::agent::RemoveAgents;
use crate::testing::TestWorld;
use crate::turn::{NewMessage, PostMessage};

#[test]
fn what_strangers_ask_for_stands_behind_and_takes_no_place_of_others() {
    let (mut world, agent) = world();
    let strangers = |world: &mut TestWorld, n: usize| {
        let session = Some(SessionId(Uuid::from_u128(1 + n as u128)));
        let message = NewMessage { taint: Taint::GUEST, ..NewMessage::text("go") };
        world.ask(PostMessage { agent, session, message }).unwrap();
        model_asks(world, &["dangerous"]);
    };
    for n in 0..limits::STRANGERS_PENDING_MAX {
        strangers(&mut world, n);
    }
    let counts = ApprovalCounts {
        pending: limits::STRANGERS_PENDING_MAX,
        of_strangers: limits::STRANGERS_PENDING_MAX,
        decided: 0,
    };
    assert_eq!(world.ask(CountApprovals).unwrap(), counts);
    strangers(&mut world, limits::STRANGERS_PENDING_MAX);
    assert_eq!(world.ask(CountApprovals).unwrap(), counts, "their own places are taken");
    let attempt = world.next_call().attempt;
    world.answer(attempt, "then not");
    // A question during a turn of theirs is theirs, too.
    let turn = pending(&mut world)[0].approval.call.and_then(|call| call.waiting_turn());
    let question = |turn| AskPerson {
        id: Uuid::from_u128(9),
        agent,
        action: "ask".into(),
        description: "Which?".into(),
        payload: "{}".into(),
        answer_schema: None,
        turn,
    };
    let refused = world.begin(question(turn));
    world.step();
    assert_eq!(refused.take().unwrap().unwrap_err().kind, RefusalKind::TooMany);
    // The agent's own calls still find places, and stand first.
    let _asked = send(&mut world, agent);
    model_asks(&mut world, &["danger_one"]);
    world.restart();
    let first: Vec<_> = pending(&mut world).iter().map(|view| view.approval.action.clone()).collect();
    assert_eq!(&*first[0], "danger_one", "{first:?}");
    assert!(!pending(&mut world)[0].approval.is_strangers && pending(&mut world)[1].approval.is_strangers);
    // Page by page, each once.
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let filter = ApprovalFilter { decided: false, agent: None };
        let page = world.ask(ListApprovals { filter, after, limit: 7 }).unwrap();
        seen.extend(page.items.iter().map(|view| view.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), limits::STRANGERS_PENDING_MAX + 1);
    let mut once = seen.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), seen.len());
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert_eq!(world.ask(CountApprovals).unwrap().of_strangers, 0);
    assert_eq!(world.engine.check(), Vec::<String>::new());
}
