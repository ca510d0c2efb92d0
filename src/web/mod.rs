//! The web tools: a page as text, and what a search engine finds.

pub mod config;
pub(crate) mod html;
pub mod search;
pub mod tools;

use crate::kernel::domain::Domain;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "web",
    uses: &["tool"],
    brings: |brought| brought.add([tools::fetch::TOOL, tools::search::TOOL]),
    ..Domain::EMPTY
};
