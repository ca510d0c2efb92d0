//! Ways into worlds: open, held, exchanged, full.

use agentsvc_components::LogId;
use agentsvc_components::session::sweep::LogSwept;
use agentsvc_systems::world::GetStats;

use super::*;

fn code(refusal: &Refusal) -> &str {
    refusal.code.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn each_world_has_a_way_of_its_own() {
    let (bridge, old) = bridge();
    let bound = bridge.of_this_world();
    assert_eq!((code(&bridge.ask(GetStats).await.unwrap_err()), bridge.state()), ("loading", "loading"));
    old.open();
    assert_eq!(bridge.state(), "running");
    bridge.hold();
    assert_eq!(bridge.state(), "exchanging");
    assert!(bridge.is_exchanging() && !bridge.is_open());
    assert_eq!(code(&bridge.ask(GetStats).await.unwrap_err()), "exchanging");
    let next = bridge.next_world();
    assert_eq!((code(&bridge.ask(GetStats).await.unwrap_err()), bridge.state()), ("exchanging", "exchanging"));
    next.open();
    assert!(bridge.is_open() && !bridge.is_exchanging() && !bound.is_open());
    bound.outcome(LogSwept(LogId(1)));
    assert_eq!(code(&bound.ask(GetStats).await.unwrap_err()), "exchanging");
    assert!(next.arrivals.is_empty(), "what the old world brought about does not reach the new one");
    bridge.outcome(LogSwept(LogId(2)));
    assert_eq!((next.arrivals.len(), old.arrivals.len()), (1, 0));
}

#[tokio::test]
async fn so_many_commands_wait_and_the_next_is_told_to_come_back() {
    let (bridge, intake) = bridge();
    intake.open();
    let ask = || {
        let bridge = bridge.clone();
        tokio::spawn(async move { bridge.ask(GetStats).await })
    };
    let filled = async || {
        while bridge.waiting() < limit::BRIDGE_COMMANDS_MAX {
            tokio::task::yield_now().await;
        }
    };
    let mut asked: Vec<_> = (0..limit::BRIDGE_COMMANDS_MAX).map(|_| ask()).collect();
    filled().await;
    let refused = bridge.ask(GetStats).await.unwrap_err();
    assert_eq!((refused.kind, code(&refused), refused.retry_after_secs), (RefusalKind::Busy, "busy", Some(1)));
    assert_eq!(intake.arrivals.len(), limit::BRIDGE_COMMANDS_MAX);
    // An outcome always comes in: there are never more than effects are out.
    bridge.outcome(LogSwept(LogId(1)));
    assert_eq!(intake.arrivals.len(), limit::BRIDGE_COMMANDS_MAX + 1);
    intake.took_command();
    asked.push(ask());
    filled().await;
    drop(intake);
    for asked in asked {
        assert_eq!(asked.await.unwrap().unwrap_err().kind, RefusalKind::Busy);
    }
}

/// A client that is told to try again does so: a message that another node carries out as well would be there twice.
#[tokio::test]
async fn what_was_under_way_in_a_world_that_another_node_has_is_not_known() {
    let (bridge, intake) = bridge();
    bridge.share();
    intake.open();
    let asking = bridge.clone();
    let asked = tokio::spawn(async move { asking.ask(GetStats).await });
    while intake.arrivals.is_empty() {
        tokio::task::yield_now().await;
    }
    bridge.hold();
    assert_eq!(code(&bridge.ask(GetStats).await.unwrap_err()), "moving", "it was not taken");
    drop(intake);
    let lost = asked.await.unwrap().unwrap_err();
    assert_eq!((code(&lost), lost.retry_after_secs), ("outcome_unknown", None));
    assert_eq!(crate::http::error::Error::from(lost).status().as_u16(), 502);
    let next = bridge.next_world();
    assert_eq!(code(&bridge.ask(GetStats).await.unwrap_err()), "moving", "the next one is shared, too");
    drop(next);
}

#[tokio::test]
async fn what_a_world_lets_out_may_ask_it_before_clients_may() {
    let (bridge, intake) = bridge();
    let tool = bridge.for_effects();
    let asked = tokio::spawn(async move { tool.ask(GetStats).await });
    while intake.arrivals.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(code(&bridge.ask(GetStats).await.unwrap_err()), "loading");
    assert_eq!(code(&bridge.of_this_world().ask(GetStats).await.unwrap_err()), "loading");
    drop(intake);
    assert_eq!(asked.await.unwrap().unwrap_err().kind, RefusalKind::Busy, "it is told when the world never opens");
    // A world that takes another's place does the same.
    let next = bridge.next_world();
    let tool = bridge.for_effects();
    let _asked = tokio::spawn(async move { tool.ask(GetStats).await });
    while next.arrivals.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(code(&bridge.ask(GetStats).await.unwrap_err()), "exchanging");
    next.open();
    next.close();
    let late = bridge.for_effects();
    assert_eq!(code(&late.ask(GetStats).await.unwrap_err()), "loading", "not after its end");
}

#[test]
fn an_exchange_never_looks_like_a_start() {
    let (bridge, intake) = bridge();
    intake.open();
    let lane = bridge.lane().unwrap();
    std::thread::scope(|scope| {
        let exchanges = scope.spawn(|| {
            for _ in 0..50_000 {
                bridge.hold();
                intake.close();
                intake.open();
            }
        });
        while !exchanges.is_finished() {
            let passed = lane.pass();
            assert!(passed.is_ok() || code(&passed.unwrap_err()) == "exchanging");
        }
    });
}

#[tokio::test]
async fn who_waits_in_a_world_that_goes_is_told() {
    let (bridge, old) = bridge();
    old.open();
    let asked = bridge.ask(GetStats);
    let ended = async {
        tokio::task::yield_now().await;
        assert_eq!(old.arrivals.len(), 1);
        bridge.hold();
        drop(old);
    };
    let (reply, ()) = tokio::join!(asked, ended);
    assert_eq!(code(&reply.unwrap_err()), "exchanging");
}
