//! Limits of A2A tasks.

agentsvc_components::limits! {
    pub const ALL;
    /// A2A tasks that are kept, open and ended. More: the ones that ended first go, of the client with the most; all clients
    /// without a key count as one.
    pub const A2A_TASKS_MAX: usize = 1_000;
    /// Bytes of the texts of all A2A tasks. More: the ones that ended first go, likewise.
    pub const A2A_TASKS_BYTES_MAX: usize = 8 << 20;
    /// A2A tasks of clients without a key that are open at once. More: 429.
    pub const A2A_TASKS_OPEN_MAX: usize = 64;
    /// The same of clients that show a key.
    pub const A2A_KNOWN_TASKS_OPEN_MAX: usize = 128;
    /// The same of one client address, or of one user or key.
    pub const A2A_CLIENT_TASKS_OPEN_MAX: usize = 16;
    /// Clients that show a key whose cost of a day is counted apart. More: they count with those without a key.
    pub const A2A_KNOWN_CLIENTS_MAX: usize = 4_096;
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
    /// Requests without a key that wait for A2A tasks or stream them. More: 429.
    pub const A2A_OPEN_REQUESTS_MAX: usize = 128;
    /// The same, of clients that show a key; those that wait for external A2A agents count here.
    pub const A2A_KNOWN_OPEN_REQUESTS_MAX: usize = 256;
    /// The same, of one client address, or of one user or key.
    pub const A2A_CLIENT_OPEN_REQUESTS_MAX: usize = 16;
    /// Seconds that a request waits for the end of an A2A task; then it is answered with the open task.
    pub const A2A_WAIT_SECS_MAX: u64 = 10 * 60;
    /// Client addresses whose rate of A2A tasks is remembered. More: they share one rate.
    pub const A2A_CLIENTS_MAX: usize = 4_096;
    /// Agents on the A2A agent card and in the list of A2A agents. More: the oldest ones are offered.
    pub const A2A_AGENTS_MAX: usize = 100;
    /// Agents that are looked at, those of users included, to find those on the A2A agent card.
    pub const A2A_AGENTS_SCANNED_MAX: usize = 40_960;
    /// Push notification configurations of one A2A task. More: 429.
    pub const A2A_TASK_PUSH_MAX: usize = 4;
    /// Bytes of the URL of a push notification configuration. Longer: 400.
    pub const A2A_PUSH_URL_BYTES_MAX: usize = 2_048;
    /// Bytes of the token or the credentials of a push notification configuration. Longer: 400.
    pub const A2A_PUSH_SECRET_BYTES_MAX: usize = 1_024;
    /// Push notifications that wait or are under way. More: the notification is not sent.
    pub const A2A_PUSHES_OPEN_MAX: usize = A2A_TASKS_MAX * A2A_TASK_PUSH_MAX;
    /// Push notifications that are under way at once; the rest waits.
    pub const A2A_PUSHES_OUT_MAX: usize = 8;
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
    /// External A2A agents. More: 429.
    pub const A2A_EXTERNAL_AGENTS_MAX: usize = 100;
    /// Bytes of the texts of all external A2A agents. More: 429.
    pub const A2A_EXTERNAL_AGENTS_BYTES_MAX: usize = 4 << 20;
    /// Bytes of the URL of an external A2A agent, or of the one in its card. Longer: 400.
    pub const A2A_AGENT_URL_BYTES_MAX: usize = 2_048;
    /// Bytes of the name of an external A2A agent. Longer: 400.
    pub const A2A_AGENT_NAME_BYTES_MAX: usize = 128;
    /// Bytes of the texts of an agent card that are kept. The rest of descriptions and skills is cut.
    pub const A2A_CARD_BYTES_MAX: usize = 64 << 10;
    /// Bytes of one text of an agent card; the rest is cut.
    pub const A2A_CARD_TEXT_BYTES_MAX: usize = 2_048;
    /// Skills of an agent card that are kept; the rest is left out.
    pub const A2A_CARD_SKILLS_MAX: usize = 64;
    /// Bytes of an agent card, or of another answer of an external A2A agent. Longer: the answer is not used.
    pub const A2A_EXTERNAL_ANSWER_BYTES_MAX: usize = 1 << 20;
    /// Bytes of memory that such an answer may take once it is read. More: the answer is not used.
    pub const A2A_EXTERNAL_ANSWER_MEMORY_BYTES_MAX: usize = 8 << 20;
    /// Bytes of a header that requests to an external A2A agent carry. Longer: 400.
    pub const A2A_HEADER_BYTES_MAX: usize = 4 << 10;
    /// External A2A agents that are discovered at once. More: they wait.
    pub const A2A_DISCOVERIES_MAX: usize = 8;
    /// External A2A agents that are discovered at once and that agents leave to clients.
    pub const A2A_DISCOVERIES_OF_CLIENTS: usize = 2;
    /// External A2A agents that the agents of a user with a limited role, or of a family, which is an agent that a client created and
    /// all that descend from it, discover at once. More: they wait.
    pub const A2A_DISCOVERIES_FAMILY_MAX: usize = 2;
    /// Tasks of external A2A agents that are kept, open and ended. More: of the user or family that keeps most, the ones that ended
    /// first go.
    pub const A2A_SENT_MAX: usize = 1_000;
    /// Bytes of the texts of all tasks of external A2A agents. More: likewise.
    pub const A2A_SENT_BYTES_MAX: usize = 32 << 20;
    /// Tasks of external A2A agents that are open at once; a user or family may have one in `POOL_SHARES` of them. More: 429.
    pub const A2A_SENT_OPEN_MAX: usize = 256;
    /// Messages to one external A2A agent that wait to be sent or are under way; a user or family may have one in `POOL_SHARES` of
    /// them. More: 429.
    pub const A2A_AGENT_SENT_OPEN_MAX: usize = 64;
    /// Milliseconds that an ended task of an external A2A agent is kept.
    pub const A2A_SENT_KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
    /// Bytes of a message to an external A2A agent. Longer: 400.
    pub const A2A_SENT_MESSAGE_BYTES_MAX: usize = 64 << 10;
    /// Bytes of an id that an external A2A agent gives to a task or a conversation. Longer: it is not used.
    pub const A2A_REMOTE_ID_BYTES_MAX: usize = 256;
    /// Bytes of the reason why there is no answer of an external A2A agent; the rest is cut.
    pub const A2A_SENT_ERROR_BYTES_MAX: usize = 1_024;
    /// Messages to external A2A agents, or questions for their tasks, that are under way at once; of a user
    /// one in `POOL_SHARES` of them, of a family three. The rest waits.
    pub const A2A_SENDS_OUT_MAX: usize = 16;
    /// The same, of one external A2A agent; shared in the same way.
    pub const A2A_AGENT_SENDS_OUT_MAX: usize = 4;
    /// Tries of a message to an external A2A agent that could not be reached; then the task has failed.
    pub const A2A_SEND_TRIES_MAX: u32 = 4;
    /// Milliseconds before the second try; they double from try to try.
    pub const A2A_SEND_BACKOFF_MS: i64 = 1_000;
    /// Milliseconds between two tries of a message.
    pub const A2A_SEND_BACKOFF_MS_MAX: i64 = 60_000;
    /// Milliseconds after which a message that was not sent is given up.
    pub const A2A_SEND_DEADLINE_MS: i64 = 10 * 60 * 1_000;
    /// Milliseconds that an external A2A agent may take to answer one request, whatever `[a2a] external_timeout_secs` says.
    pub const A2A_EXTERNAL_TIMEOUT_MS_MAX: u32 = 10 * 60 * 1_000 + 30_000;
    /// Questions for one task of an external A2A agent; then its end is unknown.
    pub const A2A_ASK_TRIES_MAX: u32 = 10_000;
    /// Milliseconds between the first two questions; they double from question to question.
    pub const A2A_ASK_BACKOFF_MS: i64 = 1_000;
    /// Milliseconds between two questions for a task.
    pub const A2A_ASK_BACKOFF_MS_MAX: i64 = 60_000;
    /// Milliseconds after which the end of a task of an external A2A agent is unknown.
    pub const A2A_ASK_DEADLINE_MS: i64 = 24 * 60 * 60 * 1_000;
}
