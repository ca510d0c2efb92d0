//! The protocols of agentsvc: the HTTP server, its route table, streams and the web page.
//!
//! This room turns a request into a command and a reply into a response. It knows nothing of the store, of providers
//! or of the configuration file.

pub mod agent;
pub mod approval;
pub mod audit;
pub mod backup;
pub mod budget;
pub mod chat;
pub mod config;
pub mod domains;
pub mod event;
#[doc(hidden)]
pub mod fuzzing;
pub mod goal;
pub mod http;
pub mod log;
pub mod memory;
pub mod migration;
pub mod model;
pub mod openai;
pub mod provider;
pub mod query;
pub mod rehearsal;
pub mod schedule;
pub mod second_factor;
pub mod security;
pub mod session;
pub mod snapshot;
pub mod task;
pub mod template;
pub mod tool;
pub mod trigger;
pub mod turn;
pub mod ui;
pub mod upload;
pub mod usage;
pub mod workflow;
pub mod world;

#[cfg(test)]
mod testing;

pub use crate::chat::agent_feed::AgentBoard;
pub use crate::http::access::Access;
pub use crate::http::api::{Api, Health};
pub use crate::http::server::serve;
pub use crate::http::settings::ApiSettings;
pub use crate::http::trace::TraceContext;
pub use crate::world::watch::WorldWatch;
