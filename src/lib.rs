//! The daemon: configuration, home, logging, the command line, and the wiring of the world to the outside.

pub mod agent;
pub mod audit;
pub mod backup;
pub mod chat;
pub mod cli;
pub(crate) mod compaction;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod event;
#[doc(hidden)]
pub mod fuzzing;
pub mod goal;
pub mod kernel;
pub mod log;
pub mod memory;
pub mod migration;
pub mod model;
pub mod provider;
pub mod query;
pub mod rehearsal;
pub mod replay;
pub mod schedule;
pub mod second_factor;
pub mod security;
pub mod session;
pub mod snapshot;
pub mod task;
pub mod template;
pub mod tool;
pub mod turn;
pub mod upload;
pub mod web;
pub mod workflow;
pub mod world;
