//! What a visitor's page reads.

use std::ops::Bound::{Excluded, Unbounded};

use agentsvc_components::widget::{WebMessage, WebMessageId};
use bevy_ecs::prelude::World;

use super::index::WebMessages;
use crate::kernel::command::{Answer, command};
use crate::kernel::entities::state;

/// The messages of one visitor, the oldest first; none for a visitor who is not known.
#[derive(Clone, Debug, Default)]
pub struct ListWebMessages {
    /// The name of the site.
    pub site: Box<str>,
    /// The visitor.
    pub visitor: Box<str>,
    /// Only those after this one.
    pub after: Option<WebMessageId>,
}

command! {
    read "list_web_messages" ListWebMessages => Vec<WebMessageView>, Root, |it, world| Answer::read(list(world, &it))
}

/// One message of a visitor's conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebMessageView {
    /// Its place in the conversation.
    pub id: WebMessageId,
    /// The message.
    pub message: WebMessage,
}

fn list(world: &World, it: &ListWebMessages) -> Vec<WebMessageView> {
    let Some(own) = world.resource::<WebMessages>().of_visitor(&it.site, &it.visitor) else { return Vec::new() };
    let ids = own.ids.range((it.after.map_or(Unbounded, Excluded), Unbounded));
    ids.filter_map(|id| Some(WebMessageView { id: *id, message: state::<WebMessage>(world, *id)?.clone() })).collect()
}
