//! `[uploads]`: files that clients send.

use agentsvc_components::kernel::limit::FILE_BYTES_MAX;

use crate::kernel::config::table;

table! {
    /// `[uploads]`. One file written to a workspace over HTTP is bounded like an upload.
    pub struct Uploads {
        /// Maximum size of a file in bytes, 1 to 67108864.
        max_bytes: u64 = 25 << 20 => integer(1..=FILE_BYTES_MAX).writable(),
        /// Maximum size of all uploads in bytes.
        max_total_bytes: u64 = 10 << 30 => integer(1..=1 << 50).writable(),
        /// Maximum size of the uploads of one agent and all that it spawned, in bytes.
        max_agent_bytes: u64 = 2 << 30 => integer(1..=1 << 50).writable(),
        /// Maximum size of the uploads of all agents of one user, in bytes.
        max_user_bytes: u64 = 5 << 30 => integer(1..=1 << 50).writable(),
        /// Delete uploads after this many days; 0 keeps them.
        retention_days: u32 => integer(0..=36_500).writable(),
    }
}

#[cfg(test)]
mod tests {
    use super::Uploads;
    use crate::kernel::config::{Error, Loaded, read_table};

    fn parse(text: &str) -> Result<Loaded<Uploads>, Error> {
        read_table("uploads", text)
    }

    #[test]
    fn bounds_are_read_and_checked() {
        let uploads = parse("[uploads]\nmax_bytes = 10\nretention_days = 7\n").unwrap().config;
        assert_eq!((uploads.max_bytes, uploads.max_total_bytes, uploads.retention_days), (10, 10 << 30, 7));
        assert_eq!((uploads.max_agent_bytes, uploads.max_user_bytes), (2 << 30, 5 << 30));
        let error = parse("[uploads]\nmax_bytes = 0\n").unwrap_err().to_string();
        assert!(error.contains("c:2:13: uploads.max_bytes: must be 1 to 67108864"), "{error}");
    }
}
