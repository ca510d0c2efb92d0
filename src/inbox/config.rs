//! `[inbox]`: files that become messages.

use std::path::PathBuf;

use agentsvc_components::kernel::limit::NAME_BYTES_MAX;

use crate::kernel::config::table;
use crate::kernel::config::text::directory;

table! {
    /// `[inbox]`.
    pub struct Inbox {
        /// Take files from the directory and send them to agents.
        enabled: bool => flag().protected(),
        /// Directory that files are taken from, an absolute path. Default: `inbox` in the home.
        directory: Option<PathBuf> => text(directory).example("/srv/agentsvc/inbox").protected(),
        /// Seconds between two looks into the directory, 1 to 3600.
        poll_interval_secs: u64 = 5 => integer(1..=3_600).protected(),
        /// Agent that reads files without a first line `agent:<name>`. Without it such files are put aside.
        default_agent: Option<Box<str>> => text(name).example("assistant").protected(),
    }
}

fn name(text: &str) -> Result<Box<str>, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!("must be one line of 1 to {NAME_BYTES_MAX} bytes"));
    }
    Ok(text.into())
}
