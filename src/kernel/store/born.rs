//! Since when the ids of a home have a slot. Ids from before were minted by an older release.

use agentsvc_components::Timestamp;
use fjall::PersistMode;

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
