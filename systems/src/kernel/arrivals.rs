//! What came back from the outside and is settled in the next round. Bounded by the effects that are out.

use std::collections::VecDeque;

use bevy_ecs::prelude::Resource;

use agentsvc_components::turn::outcome::OutcomeKind;

/// Outcomes in the order in which they came.
#[derive(Resource, Default)]
pub(crate) struct Arrived(pub(crate) VecDeque<OutcomeKind>);
