//! Records of which there may be very many in one step: the world says what they are, the store's thread writes them.

use std::fmt::Debug;

use agentsvc_components::kernel::record::Op;

/// A record that is yet to be written. Its key stands nowhere else in its step.
pub trait DeferredRecord: Debug + Send + Sync {
    /// Bytes of its key and value, roughly.
    fn bytes(&self) -> usize;
    /// The record.
    fn write(self: Box<Self>) -> Op;
}

/// A [`DeferredRecord`] of any kind.
pub type BoxedRecord = Box<dyn DeferredRecord>;
