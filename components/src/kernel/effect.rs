//! Work for the outside. An effect starts only after the step that asked for it is on disk. Each domain has its own.

use std::fmt::Debug;

use super::attempt::Attempt;
use super::erased::any_of;

/// Work for the outside. The daemon has one performer for each type.
pub trait Effect: Clone + Debug + Send + Sync + 'static {}

any_of! {
    /// An effect of any domain.
    AnyEffect: Effect
}

/// Give up the calls of this attempt; each still brings its outcome back, as aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abort(pub Attempt);

impl Effect for Abort {}
