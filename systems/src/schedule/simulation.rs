//! To come.
pub(super) fn record(
    _: &mut bevy_ecs::prelude::World,
    _: bevy_ecs::prelude::Entity,
    _: super::outcome::Outcome,
    _: agentsvc_components::Timestamp,
    _: u64,
) {
}
