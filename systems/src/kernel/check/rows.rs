//! The rows that a live world would write of itself, beside those that are stored.

use bevy_ecs::prelude::World;

use agentsvc_components::kernel::record::Op;

use super::{Faults, Rows};
use crate::kernel::record::{self, kind_of};

/// Says where the two differ.
pub(super) fn differences(world: &mut World, stored: &Rows) -> Vec<String> {
    let mut faults = Faults::default();
    let mut live: Rows = of_world(world).into_iter().filter_map(|op| Some((op.key, op.value?))).collect();
    let mut stored = stored.clone();
    for normalize in crate::kernel::domain::all().iter().map(|domain| domain.normalize_rows) {
        for rows in [&mut live, &mut stored] {
            if let Err(error) = normalize(rows) {
                faults.that(false, || format!("a stored row cannot be read: {error}"));
            }
        }
    }
    let keys = live.keys().chain(stored.keys().filter(|key| !live.contains_key(*key)));
    for key in keys.filter(|key| kind_of(key).is_none_or(|kind| kind.is_compared)) {
        let (live, stored) = (live.get(key), stored.get(key));
        faults.that(live == stored, || {
            format!("{}: the world has {}, the store has {}", name(key), shown(live), shown(stored))
        });
    }
    faults.0
}

/// A row's key for people: its kind, and the rest in hex.
fn name(key: &[u8]) -> String {
    let (kind, rest) = key.split_at(key.len().min(1));
    format!("{}{}", String::from_utf8_lossy(kind), record::hex(rest))
}

/// A row's value for people.
fn shown(row: Option<&Vec<u8>>) -> String {
    let Some(row) = row else { return "nothing".to_owned() };
    let value = row.get(1..).and_then(|body| rmp_serde::from_slice::<serde_json::Value>(body).ok());
    value.map_or_else(|| record::hex(row), |value| value.to_string())
}

/// Every row that the world would write.
fn of_world(world: &mut World) -> Vec<Op> {
    let mut rows = Vec::new();
    for domain in crate::kernel::domain::all() {
        for kind in domain.kinds.iter().filter_map(|kind| kind.entities) {
            let entities = (kind.all)(world);
            rows.extend(entities.into_iter().filter_map(|entity| (kind.row)(world, entity)));
        }
        (domain.rows)(world, &mut rows);
    }
    rows
}
