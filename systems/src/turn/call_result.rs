//! Stores the result of a call whose work was a command ([`ForCall`](crate::kernel::for_call::ForCall)).

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::Refusal;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::turn::outcome::ToolStatus;

use super::{delegate, reading, tools};
use crate::kernel::for_call::CallSettlement;
use crate::taint;

/// How turns store such results.
pub(super) const SETTLEMENT: CallSettlement = CallSettlement { open, settle };

fn open(world: &mut World, attempt: Attempt, index: u32) -> Result<Entity, Refusal> {
    let turn = delegate::waiting_parent(world, attempt, index)?.entity;
    taint::forget_carried(world);
    Ok(turn)
}

fn settle(world: &mut World, turn: Entity, (attempt, index): (Attempt, u32), text: String, name: &'static str) {
    tools::no_longer_out(world, attempt, index);
    let tool = tools::name_of(world, turn, index);
    match taint::take_carried(world, &tool) {
        Taint::NONE => delegate::settle(world, turn, index, text, ToolStatus::Ok),
        read => reading::settle_read(world, turn, index, text, ToolStatus::Ok, (read, name)),
    }
}
