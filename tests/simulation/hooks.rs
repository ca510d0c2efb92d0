//! Hooks are called, called again under the same key, and files of the inbox come. A key is one call, a call comes to its end, and
//! one that is held stays until it is released.

use std::collections::BTreeMap;

use agentsvc_components::channel::rules::AutoReply;
use agentsvc_components::hook::{HookCallId, HookKind, HookState, HookTarget};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_systems::hook::{HookCallView, ReleaseHookCall, SendHookCall};
use agentsvc_systems::kernel::entities::{Get, List};
use uuid::Uuid;

use super::action::What;
use super::harness::Harness;

/// What is known of calls.
#[derive(Debug, Default)]
pub(crate) struct Hooks {
    /// The newest calls that have a key, which may come again.
    past: Vec<SendHookCall>,
    /// The call of each key.
    of_key: BTreeMap<String, HookCallId>,
    /// Those that are held.
    held: Vec<HookCallId>,
}

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What) {
    match what {
        What::CallHook => {
            let known = harness.known.agents.clone();
            let Some(agent) = harness.rng.any(&known) else { return };
            let kind = harness.rng.pick(&[HookKind::Agent, HookKind::Wake, HookKind::Inbox]);
            let waits = kind == HookKind::Wake && harness.rng.chance(50);
            let message = harness.text("a program says");
            let has_key = kind == HookKind::Inbox || harness.rng.chance(50);
            let target = (kind == HookKind::Agent && harness.rng.chance(20))
                .then(|| HookTarget { channel: "open".into(), recipient: Some("c1".into()) });
            let call = SendHookCall {
                id: HookCallId(Uuid::from_u128(u128::from(harness.number) << 64 | u128::from(harness.rng.roll()))),
                agent,
                kind,
                waits,
                session: None,
                key: if has_key { message.clone() } else { String::new() },
                digest: message.clone(),
                message,
                taint: Taint::EVENT,
                found: Vec::new(),
                timeout_ms: harness.rng.pick(&[10_000, 120_000]),
                model: None,
                target,
                held: kind == HookKind::Inbox,
                trace: None,
            };
            send(harness, call);
        }
        What::RepeatHook => {
            let past = harness.known.hooks.past.clone();
            let Some(call) = harness.rng.any(&past) else { return };
            let id = HookCallId(Uuid::from_u128(u128::from(harness.rng.roll())));
            send(harness, SendHookCall { id, ..call });
        }
        _ => {
            let held = harness.known.hooks.held.clone();
            let Some(id) = harness.rng.any(&held) else { return };
            harness.known.hooks.held.retain(|known| *known != id);
            // Its key is free from here on.
            harness.known.hooks.of_key.retain(|_, known| *known != id);
            harness.known.hooks.past.retain(|call| call.kind != HookKind::Inbox);
            harness.ask(ReleaseHookCall(id), |_, ()| {});
        }
    }
}

fn send(harness: &mut Harness, call: SendHookCall) {
    let (key, held) = (call.key.clone(), call.held);
    if !key.is_empty() {
        let past = &mut harness.known.hooks.past;
        if past.len() == 8 {
            past.remove(0);
        }
        past.push(call.clone());
    }
    harness.ask(call, move |harness, view| {
        // One that was kept long enough is gone, and its key is free.
        let before = harness.known.hooks.of_key.get(&key).copied().filter(|known| *known != view.id);
        if let Some(before) = before {
            assert!(harness.read(Get::<HookCallView>(before)).is_err(), "{key:?} is both {before} and {}", view.id);
        }
        let hooks = &mut harness.known.hooks;
        if !key.is_empty() {
            hooks.of_key.insert(key, view.id);
        }
        if held && !hooks.held.contains(&view.id) {
            hooks.held.push(view.id);
        }
    });
}

/// Limits of the answers of a seed's channels.
pub(crate) fn limits(harness: &mut Harness) -> Option<AutoReply> {
    let (max_concurrent, timeout_secs) = (harness.rng.pick(&[1, 2]), harness.rng.pick(&[20, 600]));
    let suppress_patterns = vec!["person says 7".into()];
    harness.rng.chance(40).then_some(AutoReply { max_concurrent, timeout_secs, suppress_patterns })
}

/// At the end of a run no turn of a call is open, and those that are held are still there.
pub(crate) fn at_end(harness: &mut Harness) -> Result<(), String> {
    let wrong = |refusal: agentsvc_components::Refusal| refusal.message;
    let all = harness.read(List::<HookCallView> { limit: 1_000, ..List::default() }).map_err(wrong)?.items;
    for view in &all {
        let is_whole = match view.call.state {
            HookState::Running => false,
            HookState::Waiting => view.call.turn.is_none(),
            HookState::Completed => view.call.result.is_some() && view.call.turn.is_some(),
            HookState::Failed | HookState::Stopped | HookState::TimedOut => view.call.result.is_some(),
        };
        if !is_whole {
            return Err(format!("hook call {} is {:?}", view.id, view.call));
        }
    }
    for id in harness.known.hooks.held.clone() {
        harness.read(Get::<HookCallView>(id)).map_err(|why| format!("the held call {id} is gone: {}", why.message))?;
    }
    Ok(())
}
