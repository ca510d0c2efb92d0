//! What every domain's data is made of; it names no domain.

pub mod actor;
pub mod attempt;
pub mod audit_kind;
pub mod domain;
pub mod effect;
mod erased;
pub mod error_code;
pub mod error_codes;
pub mod holder;
pub mod id;
pub mod job;
pub mod limit;
pub mod money;
pub mod outcome;
pub mod record;
pub mod refusal;
pub mod scope;
pub mod slot;
pub mod step;
pub mod taint;
pub mod time;
pub mod words;
