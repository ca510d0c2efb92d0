//! Every bound of the house, with what happens when it is reached.

mod whole;

pub use whole::*;

/// Commands that may wait for the world thread; those of large bodies count towards [`BODIES_BYTES_MAX`], too. Full: 503
/// with `Retry-After`.
pub const BRIDGE_COMMANDS_MAX: usize = 8_192;
/// Arrivals taken from the bridge before a step is closed; the rest waits for the next step.
pub const STEP_ARRIVALS_MAX: usize = 512;
/// Rounds of systems within one step before what is left carries over to the next step.
pub const STEP_ROUNDS_MAX: u32 = 64;
/// Bytes of deltas that may wait for the store writer. Beyond: writes are refused with 503, reads go on.
pub const STORE_BACKLOG_BYTES_MAX: usize = 64 << 20;
/// Bytes the store writer joins into one commit.
pub const COMMIT_BYTES_MAX: usize = 8 << 20;
/// Turns in one session's inbox, the running one included, above which messages are refused with 429 and `Retry-After`;
/// what triggers and schedules fire still comes in.
pub const SESSION_INBOX_MAX: u32 = 16_384;
/// Open turns in the whole world. Full: 503 with `Retry-After`.
pub const TURNS_OPEN_MAX: usize = 1_000_000;
/// Model calls that may be out at once, over all providers; turns wait beyond. Tool runs are not counted here: they
/// are bounded by [`TOOL_CALLS_PER_TURN_MAX`] for each open turn.
pub const EFFECTS_OUT_MAX: usize = 65_536;
/// Model calls out at once for one provider, unless `[queue.concurrency]` says otherwise.
pub const PROVIDER_CALLS_DEFAULT: u32 = 256;
/// Models that clients may add to the catalog. More: 429.
pub const CUSTOM_MODELS_MAX: usize = 1_000;
/// Aliases that clients may make, and those of the catalog that they may take away. More: 429.
pub const MODEL_ALIASES_MAX: usize = 1_000;
/// Bytes of a model's id or alias. Longer: 400.
pub const MODEL_ID_BYTES_MAX: usize = 256;
/// Bytes of a catalog that is fetched. Longer: it is refused, the old one stays.
pub const CATALOG_BYTES_MAX: usize = 4 << 20;
/// Models of a catalog that is fetched. More: it is refused, the old one stays.
pub const CATALOG_MODELS_MAX: usize = 10_000;
/// Approvals that may be pending. More: a tool call that needs one gets an error result, a client 429.
pub const APPROVALS_PENDING_MAX: usize = 10_000;
/// Approvals that one beat ends because no decision was made in time; the rest waits for the next beat.
pub const APPROVALS_EXPIRED_MAX: usize = 1_000;
/// Decided approvals that are kept; the oldest go.
pub const APPROVALS_DECIDED_MAX: usize = 10_000;
/// Bytes of the texts of pending approvals from which on no other one may be pending, as if there were too many.
pub const APPROVALS_PENDING_BYTES_MAX: usize = 64 << 20;
/// Bytes of the texts of decided approvals that are kept; the oldest go.
pub const APPROVALS_DECIDED_BYTES_MAX: usize = 64 << 20;
/// Bytes of the action of an approval that a client asks for. Longer: 400.
pub const APPROVAL_ACTION_BYTES_MAX: usize = 128;
/// Bytes of an approval's description, and of the reason of its decision. Longer: 400.
pub const APPROVAL_TEXT_BYTES_MAX: usize = 4 << 10;
/// Bytes of the payload of an approval that a client asks for, as compact JSON. Longer: 400.
pub const APPROVAL_PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// Approvals decided in one batch. More: 400.
pub const APPROVAL_BATCH_MAX: usize = 1_000;
/// Wrong codes of the second factor in a row. Then every code is a 429 for a while.
pub const TOTP_WRONG_MAX: u32 = 5;
/// Seconds of the first such while; each further one without a right code in between takes twice as long.
pub const TOTP_LOCK_SECS: u64 = 60;
/// Seconds of the longest one.
pub const TOTP_LOCK_SECS_MAX: u64 = 3_600;
/// Clients whose grace period after a right code is remembered. More: they need a code for each decision.
pub const TOTP_GRACES_MAX: usize = 1_024;
/// Bytes of one secret in the vault. More is refused.
pub const VAULT_SECRET_BYTES_MAX: usize = 64 << 10;
/// Bytes of a provider's key. Longer: 400.
pub const PROVIDER_KEY_BYTES_MAX: usize = 8 << 10;
/// Tests of providers that may be under way at once. More: 429.
pub const PROVIDER_TESTS_MAX: usize = 4;
/// Sign-ins at providers that are remembered. More: 429 until one is over.
pub const PROVIDER_LOGINS_MAX: usize = 64;
/// Tool calls in one answer; the rest get an error result.
pub const TOOL_CALLS_PER_ANSWER_MAX: usize = 64;
/// Tool calls that run in one turn; the next is refused and ends it (spec 1, Limits, loop guard).
pub const TOOL_CALLS_PER_TURN_MAX: u32 = 30;
/// Bytes of an agent's name. Longer: 400.
pub const NAME_BYTES_MAX: usize = 128;
/// Bytes of a session's label. Longer: 400.
pub const LABEL_BYTES_MAX: usize = 256;
/// Bytes of a manifest's text. Longer: 400.
pub const MANIFEST_BYTES_MAX: usize = 256 << 10;
/// Warnings of one import. More: left out.
pub const MIGRATION_WARNINGS_MAX: usize = 1_000;
/// Agents, skills and conversations that are read of another program's home, each. More: left out, with a warning.
pub const MIGRATION_ITEMS_MAX: usize = 10_000;
/// Bytes of a text file that is read of another program's home. Larger: left out, with a warning.
pub const MIGRATION_TEXT_BYTES_MAX: u64 = 1 << 20;
/// Bytes of a conversation's file that is read of another program's home. Larger: its end is read.
pub const MIGRATION_HISTORY_BYTES_MAX: u64 = 32 << 20;
/// Files of one skill. More: it is left out, with a warning.
pub const MIGRATION_SKILL_FILES_MAX: usize = 500;
/// Messages of one imported conversation. More: the importer keeps the newest.
pub const IMPORTED_MESSAGES_MAX: usize = 2_000;
/// Bytes of one imported conversation. More: the importer keeps the newest.
pub const IMPORTED_BYTES_MAX: usize = 4 << 20;
/// Bytes of one message. Longer: 413 by the body limit, 400 by the field.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a message, answer or result that an event carries; the rest is left out.
pub const EVENT_TEXT_BYTES_MAX: usize = 4 << 10;
/// Milliseconds that a clock may go back before the world's time follows it. Less: the time stands still meanwhile.
pub const CLOCK_JITTER_MS: i64 = 1_000;
/// Milliseconds that a clock may be set back before schedules take the new time for the right one and count anew
/// from it. Less: they wait until the clock has caught up, so that no slot comes twice.
pub const CLOCK_FAULT_MS: i64 = 24 * 60 * 60 * 1_000;
/// Triggers in the whole world. More: 429.
pub const TRIGGERS_MAX: usize = 4_000_000;
/// Bytes of the texts of all triggers. More: 429; no trigger is made, and none is given a longer text.
pub const TRIGGERS_BYTES_MAX: usize = 1 << 30;
/// Bytes of a trigger's `prompt_template`. Longer: 400.
pub const PROMPT_TEMPLATE_BYTES_MAX: usize = 64 << 10;
/// Bytes of a glob or another text in a trigger's pattern. Longer: 400.
pub const GLOB_BYTES_MAX: usize = 256;
/// Triggers in the manifest of one agent. More: 400.
pub const MANIFEST_TRIGGERS_MAX: usize = 100;
/// Fires that a trigger remembers; the oldest go.
pub const TRIGGER_FIRES_KEPT: usize = 20;
/// Triggers of one stored wave of matches.
pub const WAVE_TRIGGERS_MAX: usize = 1_000;
/// Fires of one stored burst; they leave it one by one, each a bit of a number of 64 bits.
pub const BURST_FIRES_MAX: usize = 64;
/// Fires of one event in one step below which each has records of its own at once.
pub const BURST_FIRES_MIN: usize = 8;
/// Matches that may wait to be delivered. More: they end as `refused`, counted in the totals alone.
pub const MATCHES_WAITING_MAX: usize = 4_000_000;
/// Matches that may wait before those of events that fired turns cause end as `rate_limited`, counted in the totals
/// alone.
pub const CASCADE_WAITING_MAX: usize = 1_000_000;
/// Matches that end without a turn for which one fire is taken from the step's [`FIRES_PER_STEP_MAX`].
pub const MATCHES_PER_FIRE: u32 = 8;
/// Turns that triggers and schedules begin in one step; the rest waits for the next step.
pub const FIRES_PER_STEP_MAX: usize = 1_000;
/// Of those, what due schedules take before the triggers while both wait; what one of them does not need the other has.
pub const SCHEDULES_PER_STEP_MAX: usize = FIRES_PER_STEP_MAX / 2;
/// Bytes of text that the attachments of one message may add. More: 400.
pub const ATTACHED_BYTES_MAX: usize = 8 << 20;
/// Tool calls that may be out at once, over all turns; the rest waits, fairly over agents.
pub const TOOLS_OUT_MAX: usize = 4_096;
/// Tool calls of clients that run at once, outside of turns. More: 503.
pub const TOOLS_DIRECT_MAX: usize = 64;
/// Agent types that are listed; files beyond that, in order of their names, are not, and no new one is made: 409.
pub const AGENT_TYPES_MAX: usize = 1_000;
/// Bindings of the web chat. More: 409.
pub const BINDINGS_MAX: usize = 100;
/// Notes to the owner that one turn may leave. More: an error result.
pub const NOTICES_MAX: usize = 16;
/// Bytes of one note to the owner. Longer: an error result.
pub const NOTICE_BYTES_MAX: usize = 4 << 10;
/// Sources of untrusted content that a turn remembers by name; of more only the labels are known.
pub const TAINT_SOURCES_MAX: usize = 8;
/// Bytes of the name of such a source. Longer: cut.
pub const TAINT_SOURCE_BYTES_MAX: usize = 160;
/// Bytes of a result beyond which it is scanned off the runtime's threads.
pub const SCAN_INLINE_BYTES_MAX: usize = 16 << 10;
/// Bytes of the query of a URL that a turn may fetch once it has read untrusted content. Longer: refused.
pub const TAINTED_QUERY_BYTES_MAX: usize = 512;
/// Bytes of a tool result that go into the conversation; a longer one is stored whole beside it, with an excerpt here.
pub const TOOL_RESULT_BYTES_MAX: usize = 32 << 10;
/// Bytes of a tool result that are stored at all; the rest is cut.
pub const TOOL_RESULT_STORED_BYTES_MAX: usize = 1 << 20;
/// Live agents that one agent may have spawned. More: an error result.
pub const AGENT_CHILDREN_MAX: usize = 100;
/// Agents that may wait for, or spawn, each other in a row. Longer: an error result.
pub const AGENT_CHAIN_MAX: usize = 8;
/// Bytes of a model's whole answer; the rest is cut and the turn ends.
pub const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Messages of one conversation that comes with a request. More: 400.
pub const CONVERSATION_MESSAGES_MAX: usize = 2_048;
/// Bytes of such a request, images included. More: 413.
pub const CONVERSATION_BYTES_MAX: usize = 36 << 20;
/// Tools of the client in one request. More: 400.
pub const CLIENT_TOOLS_MAX: usize = 128;
/// Items of one page of a list, and the default when streaming a whole list.
pub const PAGE_ITEMS_MAX: usize = 1_000;
/// Items of one bulk request. More: 400.
pub const BULK_ITEMS_MAX: usize = 10_000;
/// Entities one page of a filtered list looks at before it answers with what it found and a cursor.
pub const PAGE_SCAN_MAX: usize = 4_096;
/// Messages of a session above which it is compacted (spec 1, Limits, auto-compaction).
pub const COMPACTION_MESSAGES: u32 = 80;
/// Turns at the end of a session that no compaction summarises.
pub const COMPACTION_KEPT_TURNS: u32 = 10;
/// Messages that must come before an automatic compaction is tried again in a session.
pub const COMPACTION_PAUSE_MESSAGES: u32 = 20;
/// Compactions under way in the whole world. More: automatic ones wait for the next turn's end, others get 503.
pub const COMPACTIONS_MAX: usize = 16_384;
/// Sessions whose pause between compactions is remembered. More: one of them is forgotten and may try sooner.
pub const COMPACTION_PAUSES_MAX: usize = 16_384;
/// Requests that may wait for one compaction. More: 429.
pub const COMPACTION_WAITERS_MAX: usize = 64;
/// Bytes of a summary. Longer: the compaction fails.
pub const SUMMARY_BYTES_MAX: usize = 32 << 10;
/// Model calls of one compaction; what is then not summarised is left to the next one.
pub const SUMMARY_CALLS_MAX: usize = 8;
/// Summaries of one log that are read together; older ones are left out.
pub const SUMMARIES_MAX: usize = 1_000;
/// Past messages that one prompt may hold before the token budget is even asked.
pub const PROMPT_MESSAGES_MAX: usize = 400;
/// Events a slow stream subscriber may fall behind before it is told what it missed.
pub const STREAM_BACKLOG_MAX: usize = 1_024;
/// Bytes of what a running turn said that are kept for who attaches later, from its first watcher on. Beyond, what was
/// kept is dropped, and who attaches is told how much it missed.
pub const STREAM_SAID_BYTES_MAX: usize = 256 << 10;
/// Events of the same, a run of text being one.
pub const STREAM_SAID_EVENTS_MAX: usize = 512;
/// Turns of one session that were posted with a stream and whose first word is waited for, also when the client leaves.
pub const STREAM_TURNS_EXPECTED_MAX: usize = 1_024;
/// Uploads and files written over HTTP that may be on their way in at once. More: 503 with `Retry-After`.
pub const UPLOADS_OPEN_MAX: usize = 64;
/// Seconds for a client to send a file. Longer: 408.
pub const UPLOAD_SECS_MAX: u64 = 900;
/// Attachments of one message. More: 400.
pub const ATTACHMENTS_MAX: usize = 32;
/// Characters of one attachment's text; the rest is cut, and the text says so (spec 1, Limits).
pub const ATTACHMENT_CHARS_MAX: usize = 200_000;
/// Messages whose attachments are read at once; the next wait.
pub const ATTACHING_MAX: usize = 8;
/// PDFs that are read at once; the next wait.
pub const PDFS_READ_MAX: usize = 2;
/// Seconds for reading one PDF. Longer: what was read so far counts.
pub const PDF_SECS_MAX: u64 = 20;
/// Images of one prompt that are sent to a model, the newest; older ones become a line of text.
pub const PROMPT_IMAGES_MAX: usize = 16;
/// Bytes of the images of one prompt; what would exceed it becomes a line of text.
pub const PROMPT_IMAGE_BYTES_MAX: u64 = 20 << 20;
/// Bytes of one WebSocket message of a client, as of a JSON body. More: closed with 1009.
pub const SOCKET_MESSAGE_BYTES_MAX: usize = 2 << 20;
/// Messages of one WebSocket that wait to be taken; the socket is not read beyond.
pub const SOCKET_INPUTS_MAX: usize = 16;
/// Turns of one WebSocket that are not answered yet. More: the message `error`.
pub const SOCKET_TURNS_MAX: usize = 32;
/// Messages for one WebSocket client that wait to be sent, text deltas not counted; the socket is not read beyond.
pub const SOCKET_OUTBOX_MAX: usize = 64;
/// Bytes for one WebSocket client that wait to be sent before text deltas are left out and counted in `lagged`. From twice
/// that on the socket is not read, and nothing of what it said is begun.
pub const SOCKET_OUTBOX_BYTES_MAX: usize = 1 << 20;
/// Seconds a WebSocket client may be silent before it is pinged; twice that: closed.
pub const SOCKET_SILENCE_SECS_MAX: u64 = 30;
/// Agents above which `agents_updated` shows only the connection's own agent and those that changed.
pub const AGENTS_PUSH_ALL_MAX: usize = 1_000;
/// Changed agents that one `agents_updated` shows; the rest waits for the next.
pub const AGENTS_PUSH_CHANGED_MAX: usize = 1_000;
/// Changed agents that wait for `agents_updated`; a change beyond is not pushed.
pub const AGENTS_CHANGED_MAX: usize = 65_536;
/// Bytes of a request's headers. More: 431.
pub const HEADER_BYTES_MAX: usize = 16 << 10;
/// Bytes of a JSON body unless the route says otherwise. More: 413.
pub const BODY_BYTES_MAX: usize = 2 << 20;
/// Bytes at the beginning of each body and WebSocket message that count towards [`BODIES_SMALL_BYTES_MAX`]; what is beyond
/// counts towards [`BODIES_BYTES_MAX`].
pub const BODY_SMALL_BYTES: usize = 16 << 10;
/// Bytes of bodies and WebSocket messages that are held at once, as far as they are large. More: 503 with `Retry-After`.
pub const BODIES_BYTES_MAX: usize = 256 << 20;
/// The same of their beginnings.
pub const BODIES_SMALL_BYTES_MAX: usize = 512 << 20;
/// Open connections; fewer where the system permits fewer open files. More: 503 and closed.
pub const CONNECTIONS_MAX: usize = 20_000;
/// Of the files that the system permits to be open, those that are not for connections but for the store, workspaces, calls
/// and tools; half of them where there are fewer than twice as many.
pub const FILES_RESERVED: u64 = 1_024;
/// Seconds for a client to send its headers. Longer: closed.
pub const HEADER_SECS_MAX: u64 = 10;
/// Seconds for a client to send its body. Longer: 408.
pub const BODY_SECS_MAX: u64 = 30;
/// Client addresses the rate limiter remembers before it sweeps out idle ones.
pub const RATE_KEYS_MAX: usize = 100_000;
/// Bytes of a request's path and query. More: 414.
pub const URI_BYTES_MAX: usize = 8 << 10;
/// Seconds a connection may stay open between requests.
pub const IDLE_SECS_MAX: u64 = 90;
/// Seconds a client may leave its answer unread. Longer: closed.
pub const STALL_SECS_MAX: u64 = 60;
/// Seconds for requests in flight to end when the daemon stops. Longer: cut off.
pub const DRAIN_SECS_MAX: u64 = 10;
/// Bytes of a path in a workspace. Longer: refused.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Names in a path of a workspace; listings and recursive deletions go no deeper either. Deeper: refused.
pub const PATH_DEPTH_MAX: usize = 32;
/// Bytes of one file that a tool or a route writes or reads. Larger: refused; commands have their own limit.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Entries of one listing of a workspace; the listing says that there are more.
pub const FILE_LIST_MAX: usize = 10_000;
/// Entries that one listing or one recursive deletion looks at. More: the listing is cut, the deletion stops with an
/// error.
pub const FILE_SCAN_MAX: usize = 100_000;
/// Commands of agents that run at once; the next wait for their turn.
pub const SHELLS_MAX: usize = 64;
/// Bytes of a key of an agent's memory. Longer: 400.
pub const MEMORY_KEY_BYTES_MAX: usize = 256;
/// Bytes of one value of an agent's memory, as compact JSON. Longer: 400.
pub const MEMORY_VALUE_BYTES_MAX: usize = 64 << 10;
/// Entries of one agent's memory. Full: 409.
pub const MEMORY_ENTRIES_MAX: u32 = 10_000;
/// Bytes of keys and values of one agent's memory. Full: 409.
pub const MEMORY_BYTES_MAX: u64 = 16 << 20;
/// Changes of one agent's memory that the world remembers, to tell whether a writer has seen them. A writer that is
/// further behind looks again.
pub const MEMORY_CHANGES_MAX: usize = 64;
/// Goals there may be. More: 429.
pub const GOALS_MAX: usize = 100_000;
/// Bytes of the texts of all goals. More: 429.
pub const GOALS_BYTES_MAX: usize = 128 << 20;
/// Goals that stand below each other. Deeper: 400.
pub const GOAL_DEPTH_MAX: usize = 16;
/// Bytes of a goal's title. Longer: 400.
pub const GOAL_TITLE_BYTES_MAX: usize = 256;
/// Bytes of a goal's description. Longer: 400.
pub const GOAL_DESCRIPTION_BYTES_MAX: usize = 8 << 10;
/// Bytes of a goal's note. Longer: 400.
pub const GOAL_NOTE_BYTES_MAX: usize = 1 << 10;
/// Open goals that stand in their agent's prompt; of more, those that are due first.
pub const GOALS_IN_PROMPT_MAX: usize = 20;
/// Characters of a goal's description, and of its note, that stand in the prompt; the rest is left out.
pub const GOAL_PROMPT_CHARS_MAX: usize = 300;
/// Open tasks of the queue. More: 429.
pub const TASKS_OPEN_MAX: usize = 100_000;
/// Bytes of the texts of all tasks. More: no task is posted or retried (429).
pub const TASKS_BYTES_MAX: usize = 256 << 20;
/// Tasks that are kept after their end; those that ended first go.
pub const TASKS_ENDED_MAX: usize = 10_000;
/// Bytes of a task's title. Longer: 400.
pub const TASK_TITLE_BYTES_MAX: usize = 256;
/// Bytes of a task's description, and of its result. Longer: 400.
pub const TASK_TEXT_BYTES_MAX: usize = 8 << 10;
/// Claims that one beat gives up for their age; the rest waits for the next beat.
pub const TASKS_SWEPT_MAX: usize = 1_000;
/// Seconds after which a claim that nobody ended is given up, unless `[queue] claim_timeout_secs` says otherwise.
pub const CLAIM_TIMEOUT_SECS_DEFAULT: u64 = 1_800;
/// Bytes of the type of a custom event. Longer: 400.
pub const EVENT_TYPE_BYTES_MAX: usize = 128;
/// Bytes of the payload of a custom event, as compact JSON. Longer: 400.
pub const EVENT_PAYLOAD_BYTES_MAX: usize = 16 << 10;
/// Traces kept of one agent's turns, give or take a few hundred; the oldest are erased.
pub const TRACES_MAX: usize = 10_000;
/// One ended turn of so many, on average, has its agent's traces trimmed.
pub const TRACE_TRIM_EVERY: u128 = 512;
/// Turns that an agent's metrics are made of: the newest.
pub const METRIC_TURNS_MAX: usize = 1_000;
/// Log lines about agents that are kept in memory, of all agents together; the oldest go.
pub const AGENT_LOG_LINES_MAX: usize = 8_192;
/// Bytes of a log line about an agent that is kept in memory; longer ones are only written to the log file.
pub const AGENT_LOG_LINE_BYTES_MAX: usize = 4 << 10;
/// Fetches of the web tools that may be under way at once; the rest waits, within its time limit.
pub const WEB_FETCHES_MAX: usize = 64;
/// Bytes of one command, its arguments included. More: an error result.
pub const COMMAND_BYTES_MAX: usize = 96 << 10;
/// Words of one command. More: an error result.
pub const COMMAND_WORDS_MAX: usize = 1_024;
/// Programs that the allowlist may come to, loaders and interpreters included. More: an error result.
pub const PROGRAMS_MAX: usize = 512;
/// Models that usage is counted for one by one; what further ones use is counted under `other/other`.
pub const USAGE_MODELS_MAX: usize = 1_000;
/// Days that one answer of the daily usage gives at most. More: 400, the export has them.
pub const USAGE_DAYS_MAX: u32 = 366;
/// Agents that one list of budgets gives at most: those that spent most.
pub const BUDGETS_LISTED_MAX: usize = 10_000;
/// Bytes of an audit entry's details; the rest is cut.
pub const AUDIT_DETAILS_BYTES_MAX: usize = 4 << 10;
/// Entries of the audit trail after which a checkpoint is signed.
pub const AUDIT_CHECKPOINT_EVERY: u64 = 1_000;
/// Names (of files, keys, tools) that one audit entry lists; of the rest only the number.
pub const AUDIT_NAMES_MAX: usize = 8;
/// Audit entries that one request reads. More: cut (spec 3, Limits).
pub const AUDIT_RECENT_MAX: usize = 500;
/// Requests that may wait for a walk over the audit trail. More: 503 with `Retry-After`.
pub const AUDIT_WALKS_WAITING_MAX: usize = 16;
/// Seconds that failed authentications are gathered for one audit entry: a flood leaves at most two entries in them.
pub const AUTH_FAILURES_SECS: u64 = 60;
/// Client addresses that one such entry lists; of the rest only the number of failures.
pub const AUTH_FAILURES_PEERS_MAX: usize = 16;
/// Workflow definitions. More: 429.
pub const WORKFLOWS_MAX: usize = 10_000;
/// Bytes of the texts of all workflow definitions. More: 429; none is made, and none is given longer texts.
pub const WORKFLOWS_BYTES_MAX: usize = 256 << 20;
/// Steps of one workflow. More: 400.
pub const WORKFLOW_STEPS_MAX: usize = 64;
/// Steps that one workflow runs side by side. More: 400.
pub const WORKFLOW_FAN_OUT_MAX: usize = 16;
/// Iterations of one loop. More: 400.
pub const WORKFLOW_ITERATIONS_MAX: u32 = 50;
/// Attempts after the first one of a step. More: 400.
pub const WORKFLOW_RETRIES_MAX: u32 = 100;
/// Seconds of one attempt of a step. More: 400.
pub const WORKFLOW_TIMEOUT_SECS_MAX: u32 = 86_400;
/// Steps of runs that one beat finds out of time, or lets try again; the rest waits for the next beat.
pub const WORKFLOW_STEPS_DUE_MAX: usize = 1_000;
/// Seconds of the pause before a step is tried again; it doubles from 1 up to this.
pub const WORKFLOW_BACKOFF_SECS_MAX: u32 = 30;
/// Bytes of the prompt of one step. Longer: 400.
pub const WORKFLOW_PROMPT_BYTES_MAX: usize = 64 << 10;
/// Bytes of all prompts of one workflow. More: 400.
pub const WORKFLOW_PROMPTS_BYTES_MAX: usize = 1 << 20;
/// Bytes of a workflow's description. Longer: 400.
pub const WORKFLOW_DESCRIPTION_BYTES_MAX: usize = 4 << 10;
/// Bytes of a condition. Longer: 400.
pub const WORKFLOW_CONDITION_BYTES_MAX: usize = 4 << 10;
/// Bytes of a variable's name. Longer: 400.
pub const WORKFLOW_VARIABLE_BYTES_MAX: usize = 64;
/// Bytes of the input of a run. Longer: 400.
pub const WORKFLOW_INPUT_BYTES_MAX: usize = 256 << 10;
/// Bytes of the output of a step or a run; the rest is cut, and the text says so.
pub const WORKFLOW_OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Bytes of a step's output once its run has ended; the rest is cut, and the text says so.
pub const WORKFLOW_OUTPUT_KEPT_BYTES_MAX: usize = 8 << 10;
/// Runs in whose steps a run is begun, one in the other, itself included. Deeper: refused.
pub const WORKFLOW_DEPTH_MAX: usize = 4;
/// Runs under way in the whole world. More: 429.
pub const WORKFLOW_RUNS_OPEN_MAX: usize = 10_000;
/// Bytes of all runs under way above which no run is begun: 429.
pub const WORKFLOW_RUNS_OPEN_BYTES_MAX: usize = 256 << 20;
/// Ended runs that are kept of one workflow; the oldest go.
pub const WORKFLOW_RUNS_KEPT_MAX: usize = 100;
/// Bytes of all ended runs that are kept; the runs that ended first go.
pub const WORKFLOW_RUNS_KEPT_BYTES_MAX: usize = 64 << 20;
/// Requests that may wait for one run. More: 429.
pub const WORKFLOW_WAITERS_MAX: usize = 64;
/// Schedules and cron jobs in the whole world. Full: 429 with `Retry-After`.
pub const SCHEDULES_MAX: usize = 4_000_000;
/// Bytes of the texts of all schedules and cron jobs, their results not counted. More: 429; none is made, and none is given
/// a longer text.
pub const SCHEDULES_BYTES_MAX: usize = 1 << 30;
/// Schedules and cron jobs of one agent beyond which its own tools make no more: an error result. People may.
pub const AGENT_SCHEDULES_MAX: usize = 100;
/// Bytes of a schedule's rule. Longer: 400.
pub const SCHEDULE_RULE_BYTES_MAX: usize = 256;
/// Seconds of the span of `every` and `in`. Longer: 400.
pub const SCHEDULE_SPAN_SECS_MAX: u64 = 3_650 * 86_400;
/// Bytes of a schedule's prompt. Longer: 400.
pub const SCHEDULE_PROMPT_BYTES_MAX: usize = 64 << 10;
/// Bytes of the last result that a schedule shows; the rest is cut.
pub const SCHEDULE_RESULT_BYTES_MAX: usize = 2 << 10;
/// Milliseconds that a slot may be late and still fire under the missed policy `skip`. Later: missed.
pub const SCHEDULE_LATE_MS: i64 = 60_000;
/// Slots that passed unnoticed and still fire under the missed policy `all`: the newest. The others are missed.
pub const SCHEDULE_MISSED_MAX: usize = 1_000;
/// Slots of one schedule that wait for an open turn. More: refused.
pub const SCHEDULE_QUEUE_MAX: usize = 100;
/// Slots of one schedule that are walked before others have their turn; the rest stays due.
pub const SCHEDULE_SLOTS_PER_VISIT: usize = 256;
/// Slots of one preview; a larger count is cut.
pub const SCHEDULE_PREVIEW_MAX: usize = 100;
