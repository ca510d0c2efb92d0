//! The store of the present world, for those who were there before it and stay when another takes its place.

use agentsvc_api::http::error::ContentError;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::kernel::store::Store;
use crate::kernel::store::writer::Stuck;

/// Answers from the store of the present world. Nobody asks before there is one: the world takes no command before that.
#[derive(Default)]
pub(crate) struct DeferredStore {
    place: RwLock<Place>,
    /// It takes no more, but is to be opened anew.
    stuck: Notify,
    /// Why.
    why: Mutex<Option<Stuck>>,
}

#[derive(Default)]
enum Place {
    /// There was none yet.
    #[default]
    Opening,
    /// It is open.
    Open(Store),
    /// It was given up for another.
    Exchanging,
}

impl DeferredStore {
    /// The store is open.
    pub(crate) fn set(&self, store: Store) {
        *self.place.write() = Place::Open(store);
    }

    /// The store is given up; who reads it at this moment still ends that.
    pub(crate) fn give_up(&self) {
        *self.place.write() = Place::Exchanging;
    }

    /// The store takes no more, and is to be opened anew.
    pub(crate) fn is_stuck(&self, why: Stuck) {
        *self.why.lock() = Some(why);
        self.stuck.notify_one();
    }

    /// Waits until that is said; says why.
    pub(crate) async fn until_stuck(&self) -> Stuck {
        self.stuck.notified().await;
        self.why.lock().take().unwrap_or(Stuck::Full)
    }

    /// The store of the present world.
    pub(crate) fn store(&self) -> Result<Store, ContentError> {
        match &*self.place.read() {
            Place::Opening => Err(ContentError::Failed("still being opened".to_owned())),
            Place::Open(store) => Ok(store.clone()),
            Place::Exchanging => Err(ContentError::Exchanging),
        }
    }
}
