//! Limits of hooks.

agentsvc_components::limits! {
    pub const ALL;
    /// Hook calls that are kept, open and ended. More: the ones that ended first go, and with them their idempotency keys.
    pub const HOOK_CALLS_MAX: usize = 5_000;
    /// Bytes of the texts of all hook calls. More: as above.
    pub const HOOK_CALLS_BYTES_MAX: usize = 32 << 20;
    /// Hook calls whose turns are open at once. More: 429.
    pub const HOOK_CALLS_RUNNING_MAX: usize = 256;
    /// Those of files of the file inbox among them, so that many files leave room for calls. More: the files wait.
    pub const HOOK_INBOX_RUNNING_MAX: usize = HOOK_CALLS_RUNNING_MAX / 2;
    /// Wakes that wait for the next heartbeat of one agent. More: 429.
    pub const HOOK_AGENT_WAITING_MAX: usize = 100;
    /// Wakes that wait for heartbeats of all agents. More: 429.
    pub const HOOK_WAITING_MAX: usize = 1_000;
    /// Milliseconds that an ended hook call, and its idempotency key, is kept.
    pub const HOOK_CALL_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
    /// Milliseconds that a wake waits for the next heartbeat; then its agent is woken for it.
    pub const HOOK_HEARTBEAT_MS_MAX: u32 = 60 * 60 * 1_000;
    /// Milliseconds that the turn of a wake or of an inbox file may be open; then it is stopped.
    pub const HOOK_OPEN_MS_MAX: u32 = 24 * 60 * 60 * 1_000;
    /// Hook calls that one beat of the world ends or removes; the next one goes on.
    pub const HOOK_CALLS_SWEPT_MAX: usize = 64;
    /// Requests that wait for the end of one hook call. More: 429.
    pub const HOOK_CALL_WAITERS_MAX: usize = 16;
    /// Bytes of the body of a hook request. Longer: 413.
    pub const HOOK_BODY_BYTES_MAX: usize = 64 << 10;
    /// Bytes of the text of a wake. Longer: 400.
    pub const HOOK_WAKE_BYTES_MAX: usize = 4_096;
    /// Bytes of the message of a hook. Longer: 400.
    pub const HOOK_MESSAGE_BYTES_MAX: usize = 16_384;
    /// Bytes of the name of a channel, or of a recipient. Longer: 400.
    pub const HOOK_CHANNEL_BYTES_MAX: usize = 64;
    /// Bytes of an `Idempotency-Key`. Longer: 400.
    pub const HOOK_KEY_BYTES_MAX: usize = 255;
    /// Bytes of the answer that is kept of one hook call; the rest is cut.
    pub const HOOK_RESULT_BYTES_MAX: usize = 128 << 10;
    /// The least number of seconds of `timeout_secs`. Less: 400.
    pub const HOOK_TIMEOUT_SECS_MIN: u32 = 10;
    /// Seconds that a hook call may take where it names no `timeout_secs`.
    pub const HOOK_TIMEOUT_SECS: u32 = 120;
    /// The greatest number of seconds of `timeout_secs`. More: 400.
    pub const HOOK_TIMEOUT_SECS_MAX: u32 = 600;
    /// Bytes of the bearer token of hooks. Shorter: hooks refuse every request.
    pub const HOOK_TOKEN_BYTES_MIN: usize = 32;
    /// Answers of hook calls that wait for their channels. More: the answer is not sent there, which the metrics of jobs count.
    pub const HOOK_DELIVERIES_OPEN_MAX: usize = 1_000;
    /// Answers that are on their way to channels at once; of a user one in `POOL_SHARES` of them, of a family three. The rest waits.
    pub const HOOK_DELIVERIES_OUT_MAX: usize = 8;
    /// Tries of one answer to reach its channel.
    pub const HOOK_DELIVERY_TRIES_MAX: u32 = 8;
    /// Milliseconds before the second try; they double from try to try.
    pub const HOOK_DELIVERY_BACKOFF_MS: i64 = 1_000;
    /// Milliseconds between two tries.
    pub const HOOK_DELIVERY_BACKOFF_MS_MAX: i64 = 5 * 60 * 1_000;
    /// Milliseconds after which an answer is given up that did not reach its channel.
    pub const HOOK_DELIVERY_DEADLINE_MS: i64 = 60 * 60 * 1_000;
    /// Milliseconds that a channel may take for one answer.
    pub const HOOK_DELIVERY_TIMEOUT_MS: u32 = 30_000;
}
