//! Limits of A2A tasks.

agentsvc_components::limits! {
    pub const ALL;
    /// A2A tasks that are kept, open and ended. More: the ones that ended first go.
    pub const A2A_TASKS_MAX: usize = 1_000;
    /// Bytes of the texts of all A2A tasks. More: the ones that ended first go.
    pub const A2A_TASKS_BYTES_MAX: usize = 8 << 20;
    /// A2A tasks that are open at once. More: 429.
    pub const A2A_TASKS_OPEN_MAX: usize = 64;
    /// Milliseconds that an ended A2A task is kept.
    pub const A2A_TASK_KEPT_MS: i64 = 24 * 60 * 60 * 1_000;
    /// Milliseconds after which an A2A task that is still open fails.
    pub const A2A_TASK_OPEN_MS_MAX: i64 = 60 * 60 * 1_000;
    /// A2A tasks that one beat of the world ends or removes; the next one goes on.
    pub const A2A_TASKS_SWEPT_MAX: usize = 64;
    /// Bytes of the body of an A2A request. Longer: 413.
    pub const A2A_BODY_BYTES_MAX: usize = 16 << 10;
    /// Bytes of the text of an A2A message. Longer: 400.
    pub const A2A_MESSAGE_BYTES_MAX: usize = 16 << 10;
    /// Parts of an A2A message. More: 400.
    pub const A2A_PARTS_MAX: usize = 64;
    /// Bytes of the result of an A2A task; the rest is cut.
    pub const A2A_RESULT_BYTES_MAX: usize = 128 << 10;
    /// Bytes of an id that an A2A client chose. Longer: 400.
    pub const A2A_ID_BYTES_MAX: usize = 128;
    /// Bytes from which on an id that an A2A client chose is known at all addresses; a shorter one is known at the address
    /// that sent it.
    pub const A2A_ID_BYTES_SHARED: usize = 16;
    /// Requests that wait for the end of one A2A task. More: they are answered at once.
    pub const A2A_TASK_WAITERS_MAX: usize = 16;
    /// Requests that wait for A2A tasks or stream them. More: 429.
    pub const A2A_OPEN_REQUESTS_MAX: usize = 128;
    /// The same, of one client address.
    pub const A2A_CLIENT_OPEN_REQUESTS_MAX: usize = 16;
    /// Seconds that a request waits for the end of an A2A task; then it is answered with the open task.
    pub const A2A_WAIT_SECS_MAX: u64 = 10 * 60;
    /// Client addresses whose rate of A2A tasks is remembered. More: they share one rate.
    pub const A2A_CLIENTS_MAX: usize = 4_096;
    /// Agents on the A2A agent card and in the list of A2A agents. More: the oldest ones are offered.
    pub const A2A_AGENTS_MAX: usize = 100;
    /// Agents among which those on the A2A agent card are searched.
    pub const A2A_AGENTS_SCANNED_MAX: usize = 5_000;
    /// Push notification configurations of one A2A task. More: 429.
    pub const A2A_TASK_PUSH_MAX: usize = 4;
    /// Bytes of the URL of a push notification configuration. Longer: 400.
    pub const A2A_PUSH_URL_BYTES_MAX: usize = 2_048;
    /// Bytes of the token or the credentials of a push notification configuration. Longer: 400.
    pub const A2A_PUSH_SECRET_BYTES_MAX: usize = 1_024;
    /// Push notifications that wait or are under way. More: the notification is not sent.
    pub const A2A_PUSHES_OPEN_MAX: usize = A2A_TASKS_MAX * A2A_TASK_PUSH_MAX;
    /// Push notifications that are under way at once; the rest waits.
    pub const A2A_PUSHES_OUT_MAX: usize = 16;
    /// Tries of one push notification; then it is given up.
    pub const A2A_PUSH_TRIES_MAX: u32 = 12;
    /// Milliseconds before the second try of a push notification; they double from try to try.
    pub const A2A_PUSH_BACKOFF_MS: i64 = 1_000;
    /// Milliseconds between two tries of a push notification.
    pub const A2A_PUSH_BACKOFF_MS_MAX: i64 = 30 * 60 * 1_000;
    /// Milliseconds after which a push notification is given up.
    pub const A2A_PUSH_DEADLINE_MS: i64 = 6 * 60 * 60 * 1_000;
    /// Milliseconds that the receiver of a push notification may take to answer. Longer: the try has failed.
    pub const A2A_PUSH_TIMEOUT_MS: u32 = 10_000;
}
