//! Model and tool calls through the performer, against a scripted server over real HTTP.

mod answers;
mod effects;
mod failures;
mod house;
#[path = "../support/model_server.rs"]
mod model_server;
