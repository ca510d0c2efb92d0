//! The model calls that are out, each with a record of its own: what is reserved for it outlives its turn and the daemon.

use std::collections::BTreeSet;

use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;

use agentsvc_components::Micros;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::Usage;
use agentsvc_components::usage::record::CallRecord;
use agentsvc_components::usage::{CallEnd, CallUse, Scope};

use super::{Rollups, StrangersReserve, rows, settle};
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::react;
use crate::kernel::record::Error;
use crate::kernel::restore::Records;
use crate::usage::metrics::CallTotals;

/// The calls that are out. Bounded by [`EFFECTS_OUT_MAX`](agentsvc_components::kernel::limit::EFFECTS_OUT_MAX), those that are
/// nobody's, or go out inside a tool call, by what asks for them
/// ([`PROVIDER_TESTS_MAX`](agentsvc_components::kernel::limit::PROVIDER_TESTS_MAX)).
#[derive(Resource, Default)]
pub(crate) struct Calls {
    out: HashMap<Attempt, CallRecord>,
    /// What is reserved for those that clients without a key began.
    of_guests: Micros,
}

impl Calls {
    /// The attempts of turns and compactions that are out.
    pub(crate) fn attempts(&self) -> BTreeSet<(JobId, u32)> {
        let of_line = self.out.values().filter(|call| call.scope() != Scope::Global && !call.is_aside);
        of_line.map(|call| (call.job, call.number)).collect()
    }

    /// None is out, of whomever.
    pub(crate) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// What is reserved for those that clients without a key began.
    pub(crate) fn reserved_of_guests(&self) -> Micros {
        self.of_guests
    }

    /// Their records.
    pub(crate) fn all(&self) -> impl Iterator<Item = &CallRecord> {
        self.out.values()
    }
}

/// Notes that a call goes out in this step, and what is reserved for it.
pub(crate) fn begin(world: &mut World, call: CallRecord) {
    world.op(rows::put_call(&call));
    world.resource_mut::<Rollups>().reserve(&call);
    let mut calls = world.resource_mut::<Calls>();
    if call.strangers.holds(Taint::GUEST) {
        calls.of_guests = calls.of_guests.plus(call.reserved);
    }
    let reserved = StrangersReserve::of(&call);
    calls.out.insert(call.attempt(), call);
    reserve_for_strangers(world, reserved);
}

/// The call is back: its reservation is free again.
pub(super) fn end(world: &mut World, attempt: Attempt) -> Option<CallRecord> {
    let mut calls = world.resource_mut::<Calls>();
    let call = calls.out.remove(&attempt)?;
    if call.strangers.holds(Taint::GUEST) {
        calls.of_guests = calls.of_guests.minus(call.reserved);
    }
    world.op(rows::remove_call(attempt));
    world.resource_mut::<Rollups>().release(&call);
    reserve_for_strangers(world, StrangersReserve { is_over: true, ..StrangersReserve::of(&call) });
    Some(call)
}

impl StrangersReserve {
    fn of(call: &CallRecord) -> Self {
        let CallRecord { strangers, began_in, reserved, .. } = *call;
        Self { attempt: call.attempt(), strangers, began_in, reserved, is_over: false }
    }
}

fn reserve_for_strangers(world: &mut World, reserved: StrangersReserve) {
    if !reserved.strangers.is_none() {
        react(world, &reserved);
    }
}

/// Settles the calls that were out, in the order in which they went out.
pub(super) fn restore(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let mut calls = records.take::<CallRecord>();
    calls.sort_by_key(|call| (call.at, call.job, call.number));
    calls.into_iter().for_each(|call| resume(world, &call));
    Ok(())
}

/// A call was out when the daemon ended (restore): nobody knows what came of it, so it cost what was reserved.
fn resume(world: &mut World, call: &CallRecord) {
    world.op(rows::remove_call(call.attempt()));
    world.resource_mut::<CallTotals>().unknown += 1;
    world.resource_mut::<Rollups>().went_out(call.at);
    let lost = CallUse {
        provider: call.provider.clone(),
        model: call.model.clone(),
        usage: Usage { cost: call.reserved, ..Usage::default() },
        end: CallEnd::Unknown,
        ..CallUse::default()
    };
    settle::write(world, call, 0, lost);
}
