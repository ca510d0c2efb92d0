//! Clients that mean harm, against the real binary: what they do is bounded, and others are served meanwhile (issue 8,
//! Abuse). `cargo test --test abuse -- --nocapture` prints what connections and floods took in memory.
//!
//! Nothing here says how fast anything is: a test waits for what must happen, for [`harness::PATIENCE`] at most.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

#[path = "../support/mod.rs"]
mod support;

mod floods;
mod frames;
mod harness;
mod heads;
mod held;
mod hog;
mod hooks;
mod http2;
mod idle;
mod inbox;
mod large;
mod nested;
mod patience;
mod pipelines;
mod slow;
mod unfinished;
mod unread;
mod watchers;
mod wire;
