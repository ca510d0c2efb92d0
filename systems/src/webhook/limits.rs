//! Limits of webhooks.

agentsvc_components::limits! {
    pub const ALL;
    /// Webhooks and event subscriptions. More: 429.
    pub const WEBHOOKS_MAX: usize = 100;
    /// Bytes of the texts of all webhooks. More: 429.
    pub const WEBHOOKS_BYTES_MAX: usize = 1 << 20;
    /// Bytes of a webhook's name. Longer: 400.
    pub const WEBHOOK_NAME_BYTES_MAX: usize = 128;
    /// Bytes of a webhook's URL. Longer: 400.
    pub const WEBHOOK_URL_BYTES_MAX: usize = 2_048;
    /// Events that one webhook names. More: 400.
    pub const WEBHOOK_EVENTS_MAX: usize = 64;
    /// Bytes of a webhook's secret. Longer: 400.
    pub const WEBHOOK_SECRET_BYTES_MAX: usize = 256;
    /// Open deliveries of all webhooks: as many as each may have, so that no receiver takes the place of another. More: the
    /// event is not delivered, and counts in `dropped`.
    pub const DELIVERIES_OPEN_MAX: usize = WEBHOOKS_MAX * WEBHOOK_DELIVERIES_OPEN_MAX;
    /// Open deliveries of one webhook; those of the events of a user or family may be one in `POOL_SHARES` of them. More: as above.
    pub const WEBHOOK_DELIVERIES_OPEN_MAX: usize = 1_000;
    /// Bytes of one event as it is delivered. Longer: as above.
    pub const DELIVERY_BYTES_MAX: usize = 128 << 10;
    /// Bytes of the events of all open deliveries: as many as those of each webhook may have. More: as above.
    pub const DELIVERIES_BYTES_MAX: usize = WEBHOOKS_MAX * WEBHOOK_DELIVERIES_BYTES_MAX;
    /// Bytes of the events of the open deliveries of one webhook. More: as above.
    pub const WEBHOOK_DELIVERIES_BYTES_MAX: usize = 2 << 20;
    /// Deliveries that are under way at once: as many as those of each webhook may be, so that none waits for the receiver of
    /// another.
    pub const DELIVERIES_OUT_MAX: usize = WEBHOOKS_MAX * WEBHOOK_DELIVERIES_OUT_MAX;
    /// Deliveries of one webhook that are under way at once; the rest waits.
    pub const WEBHOOK_DELIVERIES_OUT_MAX: usize = 2;
    /// Ended deliveries that are kept of one webhook; those that ended first go.
    pub const WEBHOOK_DELIVERIES_KEPT_MAX: usize = 100;
    /// Tries that are kept of one delivery; the oldest go.
    pub const DELIVERY_TRIES_KEPT_MAX: usize = 10;
    /// Bytes of the error of one try; the rest is cut.
    pub const DELIVERY_ERROR_BYTES_MAX: usize = 512;
    /// Tries of one delivery; then it fails.
    pub const DELIVERY_TRIES_MAX: u32 = 80;
    /// Milliseconds before the second try; they double from try to try.
    pub const DELIVERY_BACKOFF_MS: i64 = 1_000;
    /// Milliseconds between two tries.
    pub const DELIVERY_BACKOFF_MS_MAX: i64 = 60 * 60 * 1_000;
    /// Milliseconds after which a delivery fails.
    pub const DELIVERY_DEADLINE_MS: i64 = 24 * 60 * 60 * 1_000;
    /// Milliseconds after which a webhook of which every try has failed is disabled: the last try of a delivery comes as late.
    pub const WEBHOOK_FAILING_MS_MAX: i64 = DELIVERY_DEADLINE_MS - DELIVERY_BACKOFF_MS_MAX;
    /// Milliseconds between two failed tries after which the time of failing starts over.
    pub const WEBHOOK_FAILING_GAP_MS_MAX: i64 = 2 * DELIVERY_BACKOFF_MS_MAX;
    /// Milliseconds that the receiver may take to answer. Longer: the try has failed.
    pub const DELIVERY_TIMEOUT_MS: u32 = 10_000;
}
