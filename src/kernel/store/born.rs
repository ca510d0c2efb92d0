//! Since when the ids of a home have a slot. Ids from before were minted by an older release.

use std::borrow::Cow;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::record::{Op, Space};
use fjall::PersistMode;

use super::journal::Journal;
use super::journal::entry::Body;
use super::view::StoreView;
use super::{Error, Store};

/// The key, in the world space, of the store's own row that says it.
pub(super) const BORN_KEY: [u8; 2] = [0, b'b'];

impl StoreView {
    /// Since when ids have a slot; `None` in a home that only older releases have started.
    ///
    /// # Errors
    /// [`Error::Corrupted`] when the row makes no sense, and the errors of reading the store.
    pub fn born(&self) -> Result<Option<Timestamp>, Error> {
        self.own_row(&BORN_KEY, |bytes| Some(Timestamp(i64::from_be_bytes(bytes.try_into().ok()?))))
    }
}

impl Store {
    /// Since when ids have a slot. The first start of a world decides that: behind `now`. All nodes that keep the world learn it
    /// from `journal`.
    ///
    /// # Errors
    /// Those of [`StoreView::born`], of the journal and of writing the store.
    pub(crate) fn born(&self, now: Timestamp, journal: &mut dyn Journal) -> Result<Timestamp, Error> {
        if let Some(born) = self.view().born()? {
            return Ok(born);
        }
        let born = now.plus_ms(1);
        let op = Op { space: Space::World, key: BORN_KEY.to_vec(), value: Some(born.0.to_be_bytes().to_vec()) };
        self.append(journal, &Body::Step { step: None, ops: Cow::Owned(vec![op]), erased: Cow::Owned(Vec::new()) })?;
        Ok(born)
    }

    /// Says since when ids have a slot. Durable with whatever is synced next.
    ///
    /// # Errors
    /// Those of writing the store.
    pub(crate) fn set_born(&self, born: Timestamp) -> Result<(), Error> {
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        batch.insert(&self.world, BORN_KEY, born.0.to_be_bytes());
        batch.commit().map_err(|error| self.failed(error))
    }
}
