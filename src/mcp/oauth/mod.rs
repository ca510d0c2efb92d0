//! Signing in at MCP servers over HTTP (OAuth 2.1 as the MCP specification uses it).
//!
//! ```text
//! the server answers 401 --> challenge --> start: metadata of the server (RFC 9728), of its authorization server (RFC 8414),
//! a client (configured, or registered by RFC 7591) --> the user signs in --> callback: code and verifier for tokens (RFC 7636)
//! --> vault --> requests carry the token, which is refreshed before it ends, and once when the server refuses it
//! ```
//!
//! | file | holds |
//! |---|---|
//! | [`challenge`] | what `WWW-Authenticate` says |
//! | [`metadata`] | what servers say of themselves, checked |
//! | [`discover`] | where and for what to sign in |
//! | [`pending`] | sign-ins that wait for the user |
//! | [`exchange`] | the steps of a sign-in |
//! | [`stored`] | what the vault keeps |
//! | [`sign_in`] | the sign-in of one server: its tokens and its state |
//! | [`fuzzing`] | what a fuzz target does with what servers say |
//!
//! A server names its authorization server, which names further addresses. None of them is reached that the server itself
//! could not be at: private hosts only where the operator named them, https beyond this machine, no redirects.

mod challenge;
mod discover;
mod exchange;
pub(crate) mod fuzzing;
mod metadata;
mod pending;
mod sign_in;
mod stored;

pub(crate) use exchange::Granted;
pub(crate) use sign_in::{Of, SignIn, Signing};
