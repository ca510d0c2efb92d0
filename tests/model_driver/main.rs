//! Model and tool calls through the performer, against a scripted server over real HTTP; and every driver against one
//! table of scenarios.

mod answers;
mod conformance;
mod effects;
mod failures;
mod harness;
#[path = "../support/model_server.rs"]
mod model_server;
