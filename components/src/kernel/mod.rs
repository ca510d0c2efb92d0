//! What every domain's data is made of; it names no domain.

pub mod attempt;
pub mod effect;
mod erased;
pub mod id;
pub mod limit;
pub mod money;
pub mod outcome;
pub mod record;
pub mod refusal;
pub mod step;
pub mod time;
