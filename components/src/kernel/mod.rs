//! What every domain's data is made of; it names no domain.

pub mod attempt;
pub mod id;
pub mod limit;
pub mod money;
pub mod record;
pub mod refusal;
pub mod step;
pub mod time;
