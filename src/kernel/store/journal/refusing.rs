//! A journal of tests that takes nothing.

use super::entry::{Body, Position};
use super::{Entries, Journal};
use crate::kernel::store::Error;

/// Says of each entry that it was not taken, for this reason.
pub(crate) struct Refusing<F>(pub(crate) F);

impl<F: Fn() -> Error + Send> Journal for Refusing<F> {
    fn open(&mut self, _node: &str) -> Result<(), Error> {
        Ok(())
    }

    fn append(&mut self, _body: &Body<'_>) -> Result<Option<Position>, Error> {
        Err((self.0)())
    }

    fn acknowledged(&mut self, position: &Position) -> Result<Position, Error> {
        Ok(*position)
    }

    fn read(&self, _position: &Position) -> Result<Entries<'_>, Error> {
        Ok(Box::new(std::iter::empty()))
    }

    fn trim(&mut self, _index: u64) -> Result<(), Error> {
        Ok(())
    }
}
