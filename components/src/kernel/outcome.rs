//! What came back from the outside. Each domain has its own outcomes.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::erased::any_of;

/// What came back from the outside. It is recorded under its name, so that the step can be replayed.
pub trait Outcome: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its name in recorded steps: at most 31 bytes, and never another one.
    const NAME: &'static str;
}

any_of! {
    /// An outcome of any domain.
    AnyOutcome: Outcome
}
