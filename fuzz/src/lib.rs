//! Fuzz targets: each takes any bytes and panics when something is wrong. `fuzz/run` drives them with the guidance of
//! coverage, `tests/fuzz.rs` with the kept inputs and changes of them. See docs/testing.md.

pub mod adapter;
pub mod answer;
pub mod archive;
pub mod condition;
pub mod config;
pub mod external;
mod feed;
mod harness;
pub mod http;
pub mod inputs;
pub mod manifest;
pub mod mcp;
mod memory;
pub mod patch;
pub mod pattern;
pub mod peer;
pub mod query;
pub mod record;
pub mod rule;
mod scratch;
pub mod seeds;
mod shape;
pub mod sign_in;
pub mod socket;
pub mod upload;

/// A target.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also that of its inputs' directory in `fuzz/corpus`.
pub const TARGETS: &[(&str, Target)] = &[
    ("adapter", adapter::run),
    ("answer", answer::run),
    ("archive", archive::run),
    ("condition", condition::run),
    ("config", config::run),
    ("external", external::run),
    ("http", http::run),
    ("inputs", inputs::run),
    ("manifest", manifest::run),
    ("mcp", mcp::run),
    ("patch", patch::run),
    ("pattern", pattern::run),
    ("peer", peer::run),
    ("query", query::run),
    ("record", record::run),
    ("rule", rule::run),
    ("sign_in", sign_in::run),
    ("socket", socket::run),
    ("upload", upload::run),
];
