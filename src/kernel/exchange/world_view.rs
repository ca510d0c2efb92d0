//! All rows of the present world, for copies.

use std::ops::Deref;
use std::sync::Arc;

use crate::kernel::store::view::StoreView;

/// All rows of the present world as of one committed step. While there is one, no other world can take its place: it
/// is to be dropped as soon as it is read.
pub(crate) struct WorldView {
    pub(super) view: StoreView,
    pub(super) reader: Arc<()>,
}

impl WorldView {
    /// The view, and what says for as long as it is there that somebody reads it.
    pub(crate) fn into_parts(self) -> (StoreView, Arc<()>) {
        (self.view, self.reader)
    }
}

impl Deref for WorldView {
    type Target = StoreView;

    fn deref(&self) -> &StoreView {
        &self.view
    }
}
