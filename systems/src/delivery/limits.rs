//! Limits of deliveries.

agentsvc_components::limits! {
    pub const ALL;
    /// Targets of one schedule, cron job, trigger or workflow. More: 400.
    pub const TARGETS_MAX: usize = 16;
    /// Schedules, cron jobs, triggers and workflows that have targets. More: 429.
    pub const TARGET_SOURCES_MAX: usize = 10_000;
    /// Bytes of the texts of all targets. More: 429.
    pub const TARGETS_BYTES_MAX: usize = 16 << 20;
    /// Bytes of the URL of a target, as of a webhook. Longer: 400.
    pub const TARGET_URL_BYTES_MAX: usize = 2_048;
    /// Bytes of the secret of a target, and of its `auth_header`. Longer: 400.
    pub const TARGET_SECRET_BYTES_MAX: usize = 256;
    /// Bytes of any other text of a target. Longer: 400.
    pub const TARGET_TEXT_BYTES_MAX: usize = 512;
    /// Bytes of an answer that are delivered; the rest is cut.
    pub const TARGET_ANSWER_BYTES_MAX: usize = 64 << 10;
    /// Bytes of a file that an answer is added to. Longer: the delivery is refused.
    pub const TARGET_FILE_BYTES_MAX: u64 = 8 << 20;
    /// Deliveries to webhooks and files that have not ended. More: refused, with the reason.
    pub const TARGET_DELIVERIES_OPEN_MAX: usize = 2_000;
    /// Deliveries to one webhook or file that have not ended. More: as above.
    pub const TARGET_DELIVERIES_OPEN_EACH_MAX: usize = 100;
    /// Bytes of all deliveries that have not ended. More: as above.
    pub const TARGET_DELIVERIES_BYTES_MAX: usize = 64 << 20;
    /// Deliveries that are under way at once; of a user one in `POOL_SHARES` of them, of a family three. The rest waits.
    pub const TARGET_DELIVERIES_OUT_MAX: usize = 16;
    /// Tries of one delivery.
    pub const TARGET_TRIES_MAX: u32 = 40;
    /// Milliseconds before the second try; they double from try to try.
    pub const TARGET_BACKOFF_MS: i64 = 1_000;
    /// Milliseconds between two tries.
    pub const TARGET_BACKOFF_MS_MAX: i64 = 60 * 60 * 1_000;
    /// Milliseconds after which a delivery is given up.
    pub const TARGET_DEADLINE_MS: i64 = 24 * 60 * 60 * 1_000;
    /// Milliseconds that one try may take.
    pub const TARGET_TIMEOUT_MS: u32 = 15_000;
    /// Ended deliveries that are kept of one schedule, cron job, trigger or workflow; those that ended first go.
    pub const RECEIPTS_EACH_MAX: usize = 50;
    /// Ended deliveries that are kept of all; likewise.
    pub const RECEIPTS_MAX: usize = 20_000;
    /// Bytes of the reason of a delivery; the rest is cut.
    pub const RECEIPT_REASON_BYTES_MAX: usize = 512;
}
