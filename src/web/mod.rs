//! The web tools: a page as text, and what a search engine finds.

pub(crate) mod html;
pub mod search;
pub mod tools;
