//! Custom events that triggers read: so many bytes in one step.

use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;
use uuid::Uuid;

use agentsvc_components::Refusal;
use agentsvc_components::kernel::limit;

use super::index::Triggers;
use crate::event::Publishing;

/// Bytes of the payloads of this step's custom events that a trigger may read, in all and by each user, key or agent:
/// triggers read them in the step in which they come, and what they read is scanned.
#[derive(Resource, Default)]
pub(super) struct Published {
    all: usize,
    by: HashMap<Uuid, usize>,
}

impl Published {
    fn own(&self, who: Option<Uuid>) -> usize {
        who.and_then(|who| self.by.get(&who).copied()).unwrap_or(0)
    }
}

/// Refuses an event that is one too many. What no trigger reads needs no room.
pub(super) fn has_room(world: &World, Publishing { event_type, bytes, who }: &Publishing) -> Result<(), Refusal> {
    let most = limit::EVENT_PAYLOADS_STEP_BYTES_MAX;
    let published = world.resource::<Published>();
    let is_full =
        published.all + bytes > most || who.is_some() && published.own(*who) + bytes > most / limit::POOL_SHARES;
    if is_full && world.resource::<Triggers>().matcher().reads_custom(event_type) {
        return Err(Refusal::busy("too many custom events are published at once; try again in a moment", 1));
    }
    Ok(())
}

/// Counts one that is told.
pub(super) fn count(world: &mut World, Publishing { event_type, bytes, who }: &Publishing) {
    if !world.resource::<Triggers>().matcher().reads_custom(event_type) {
        return;
    }
    let mut published = world.resource_mut::<Published>();
    let own = published.own(*who) + bytes;
    published.all += bytes;
    published.by.extend(who.map(|who| (who, own)));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use agentsvc_components::{AgentId, RefusalKind};

    use super::*;
    use crate::event::{PublishEvent, parse_pattern};
    use crate::testing::TestWorld;
    use crate::trigger::{CreateTrigger, NewTrigger};

    fn publish(event_type: &str, payload: &str, agent: Option<AgentId>) -> PublishEvent {
        PublishEvent { event_type: event_type.into(), payload: payload.into(), agent, by: None }
    }

    #[test]
    fn the_events_of_one_step_are_few_bytes_and_one_agent_leaves_room_to_others() {
        let mut world = TestWorld::new();
        let (a, b) = (world.spawn("a"), world.spawn("b"));
        let trigger = NewTrigger {
            pattern: parse_pattern(&json!({ "custom": { "event_type": "other" } })).unwrap(),
            prompt_template: "Look".into(),
            enabled: true,
            max_fires: 0,
            cooldown_secs: None,
            session_mode: None,
            target: None,
        };
        let payload = format!("\"{}\"", "p".repeat(limit::EVENT_PAYLOAD_BYTES_MAX - 2));
        world.ask(CreateTrigger { agent: a, trigger }).unwrap();
        // As many as come where no trigger reads them.
        let asked = [(); 6].map(|()| world.begin(publish("t", &payload, None)));
        world.step();
        assert!(asked.into_iter().all(|asked| asked.take().unwrap().is_ok()));
        for _ in 0..2 {
            let asked = [Some(a), Some(a), Some(b), None, None, None]
                .map(|agent| world.begin(publish("other", &payload, agent)));
            world.step();
            let taken = asked.map(|asked| asked.take().unwrap().map_err(|refused| refused.kind));
            let full = Err(RefusalKind::Busy);
            assert_eq!(taken, [Ok(()), full, Ok(()), Ok(()), Ok(()), full], "each step has room again");
        }
    }
}
