//! The protocols of agentsvc: the HTTP server, its route table, streams and the web page.
//!
//! This room turns a request into a command and a reply into a response. It knows nothing of the store, of providers
//! or of the configuration file.

pub mod audit;
pub mod backups;
pub mod bindings;
pub mod body;
pub mod bridge;
pub mod call;
pub mod catalog;
pub mod configuration;
pub mod content;
pub mod error;
pub mod files;
#[doc(hidden)]
pub mod fuzzing;
pub mod hub;
pub mod logs;
pub mod manifest_signatures;
pub mod memory;
pub mod metrics;
pub mod migration;
pub mod models;
pub mod pages;
pub mod profiles;
pub mod providers;
pub mod rehearsals;
pub mod reply;
pub mod route;
pub mod routes;
pub mod search;
pub mod second_factor;
pub mod security;
pub mod settings;
pub mod shutdown;
pub mod sse;
pub mod templates;
pub mod tools;
pub mod vitals;
pub mod worlds;

mod access;
mod agent_board;
mod api;
mod attachments;
mod auth_failures;
mod chat;
mod connection;
mod dispatch;
mod held;
mod json;
mod multipart;
mod openapi;
mod origin;
mod places;
mod queries;
mod query;
mod rate;
mod raw;
mod receive;
mod seal;
mod server;
mod socket;
mod table;
#[cfg(test)]
mod testing;
mod trace;
mod web;
mod world_events;
mod world_watch;

pub use access::Access;
pub use agent_board::AgentBoard;
pub use api::{Api, Health};
pub use server::serve;
pub use settings::ApiSettings;
pub use trace::TraceContext;
pub use world_watch::WorldWatch;
