//! Where messages of visitors are found: by visitor and by site, the oldest first.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::widget::{WebMessage, WebMessageId};

use crate::kernel::entities::{Entities, Places, indexed};

/// Every message.
pub(super) type WebMessages = Entities<WebMessage>;

indexed!(WebMessage: WebMessagePlaces, "message of a visitor");

/// Some messages and the bytes of their texts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Share {
    pub(super) ids: BTreeSet<WebMessageId>,
    pub(super) bytes: usize,
}

/// Messages by visitor and by site.
#[derive(Debug, Default, PartialEq)]
pub struct WebMessagePlaces {
    by_visitor: BTreeMap<(Box<str>, Box<str>), Share>,
    by_site: BTreeMap<Box<str>, Share>,
}

impl WebMessagePlaces {
    pub(super) fn of_visitor(&self, site: &str, visitor: &str) -> Option<&Share> {
        self.by_visitor.get(&(site.into(), visitor.into()))
    }

    pub(super) fn of_site(&self, site: &str) -> Option<&Share> {
        self.by_site.get(site)
    }
}

impl Share {
    fn add(&mut self, id: WebMessageId, bytes: usize) {
        self.ids.insert(id);
        self.bytes += bytes;
    }

    /// Takes it out. Is nothing left?
    fn take(&mut self, id: WebMessageId, bytes: usize) -> bool {
        self.ids.remove(&id);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.ids.is_empty()
    }
}

impl Places<WebMessage> for WebMessagePlaces {
    fn insert(&mut self, id: WebMessageId, it: &WebMessage) {
        self.by_visitor.entry((it.site.clone(), it.visitor.clone())).or_default().add(id, it.bytes());
        self.by_site.entry(it.site.clone()).or_default().add(id, it.bytes());
    }

    fn remove(&mut self, id: WebMessageId, it: &WebMessage) {
        let of = (it.site.clone(), it.visitor.clone());
        if self.by_visitor.get_mut(&of).is_some_and(|share| share.take(id, it.bytes())) {
            self.by_visitor.remove(&of);
        }
        if self.by_site.get_mut(&it.site).is_some_and(|share| share.take(id, it.bytes())) {
            self.by_site.remove(&it.site);
        }
    }
}
