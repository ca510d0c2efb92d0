//! Metrics of chats.

use std::collections::BTreeMap;

use bevy_ecs::prelude::{Resource, World};

use super::index::{Conversations, Messages, Sends};
use crate::kernel::metric::Metric;

/// What happened in one instance, or in all, since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that came, those that came again left out.
    pub received: u64,
    /// Messages that came again.
    pub duplicates: u64,
    /// Messages that got no answer.
    pub ignored: u64,
    /// Turns that messages began.
    pub turns: u64,
    /// Messages that were sent, or taken by the platform.
    pub sent: u64,
    /// Messages that were refused.
    pub refused: u64,
    /// Messages of which nobody knows whether they were sent.
    pub unknown: u64,
}

/// The same by instance. Only those of the configuration have any.
#[derive(Resource, Default)]
pub(crate) struct ChannelCounts(BTreeMap<Box<str>, Counts>);

impl ChannelCounts {
    /// Those of an instance.
    pub(super) fn of(&self, instance: &str) -> Counts {
        self.0.get(instance).copied().unwrap_or_default()
    }

    /// Instances of the configuration that others took the place of have none.
    pub(super) fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_kept(name));
    }
}

/// Counts something in an instance and in all.
pub(super) fn count(world: &mut World, instance: &str, what: impl Fn(&mut Counts)) {
    what(&mut world.resource_mut::<Counts>());
    let mut all = world.resource_mut::<ChannelCounts>();
    match all.0.get_mut(instance) {
        Some(counts) => what(counts),
        None => what(all.0.entry(instance.into()).or_default()),
    }
}

pub(super) const ALL: &[Metric] = &[
    Metric::gauge("agentsvc_chat_conversations", "Conversations of chats that are known.", |world, out| {
        out.value(world.resource::<Conversations>().len())
    }),
    Metric::gauge("agentsvc_chat_messages_open", "Messages of chats that are not answered yet.", |world, out| {
        out.value(world.resource::<Messages>().len())
    }),
    Metric::gauge("agentsvc_chat_sends_open", "Messages to chats that wait or are being sent.", |world, out| {
        out.value(world.resource::<Sends>().open_count())
    }),
    Metric::counter("agentsvc_chat_messages_total", "Messages of chats, by what became of them.", |world, out| {
        let counts = world.resource::<Counts>();
        out.labelled(("end", "received"), counts.received);
        out.labelled(("end", "duplicate"), counts.duplicates);
        out.labelled(("end", "ignored"), counts.ignored);
        out.labelled(("end", "turn"), counts.turns);
    }),
    Metric::counter("agentsvc_chat_sends_total", "Messages to chats that have ended, by outcome.", |world, out| {
        let counts = world.resource::<Counts>();
        out.labelled(("end", "sent"), counts.sent);
        out.labelled(("end", "refused"), counts.refused);
        out.labelled(("end", "unknown"), counts.unknown);
    }),
];
