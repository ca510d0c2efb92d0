//! The rows that a turn begins with.

use std::sync::Arc;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::TurnId;
use agentsvc_components::session::Session;
use agentsvc_components::session::message::{ChatMessage, Role, text_of};
use agentsvc_components::session::message_record::MessageRecord;

use super::fired::Said;
use crate::kernel::clock::Now;
use crate::kernel::record::{BoxedRecord, MessageKey, message_key, put_content};
use crate::session::{self, MESSAGE_KEY_BYTES, SaidRow};

/// Writes the rows that a turn begins with; gives the last ordinal and the index of its next row.
pub(super) fn write_messages(
    world: &mut World,
    session: Entity,
    turn: TurnId,
    messages: Vec<ChatMessage>,
    repeats: Option<TurnId>,
) -> (u32, u32) {
    let now = world.resource::<Now>().0;
    let home = world.get::<Session>(session).expect("found or spawned by the caller");
    let (mut ordinal, mut index, log) = (home.next_ordinal, 0, home.log);
    let mut counted = 0;
    for ChatMessage { role, blocks } in messages {
        if role == Role::User && index > 0 {
            (ordinal, index) = (ordinal + 1, 0);
        }
        counted += u32::from(role == Role::User || (role == Role::Assistant && !text_of(&blocks).is_empty()));
        let repeats = repeats.filter(|_| index == 0);
        let row =
            MessageRecord { turn, role, blocks, created_at: now, usage: None, model: None, stopped: false, repeats };
        session::put_row(world, session, put_content(message_key(MessageKey { log, ordinal, index }), &row));
        index += 1;
    }
    let mut home = world.get_mut::<Session>(session).expect("found above");
    home.next_ordinal = ordinal + 1;
    home.message_count += counted;
    home.updated_at = now;
    (ordinal, index)
}

/// The one row that a fired turn begins with, and its ordinal.
pub(super) fn write_said(world: &mut World, session: Entity, turn: TurnId, said: &Said) -> (BoxedRecord, u32) {
    let mut home = world.get_mut::<Session>(session).expect("found or spawned by the caller");
    let (log, ordinal) = (home.log, home.next_ordinal);
    home.next_ordinal += 1;
    home.message_count += 1;
    home.updated_at = said.at;
    session::grow(world, session, MESSAGE_KEY_BYTES + said.row.bytes());
    (Box::new(SaidRow { row: Arc::clone(&said.row), at: MessageKey { log, ordinal, index: 0 }, turn }), ordinal)
}
