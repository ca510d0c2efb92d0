//! `[history]`: what happened in the installation, minute by minute.

use crate::kernel::config::table;

table! {
    /// `[history]`.
    pub struct History {
        /// Days to keep the sums of minutes that `GET /api/history` reads, 1 to 366.
        retention_days: u32 = 30 => integer(1..=366).writable(),
    }
}

#[cfg(test)]
mod tests {
    use super::History;
    use crate::kernel::config::read_table;

    #[test]
    fn the_retention_is_bounded() {
        let days = |text: &str| read_table::<History>("history", text).map(|loaded| loaded.config.retention_days);
        assert_eq!((days("").unwrap(), days("[history]\nretention_days = 366\n").unwrap()), (30, 366));
        for wrong in ["0", "367", "-1"] {
            let error = days(&format!("[history]\nretention_days = {wrong}\n")).unwrap_err().to_string();
            assert!(error.contains("history.retention_days: must be 1 to 366"), "{error}");
        }
    }
}
