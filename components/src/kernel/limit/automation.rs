//! Limits of approvals, events, triggers, schedules, goals, tasks and workflows.

limits! {
    pub(super) const ALL;
    /// Approvals that may be pending. More: a tool call that needs one gets an error result, a client 429.
    pub const APPROVALS_PENDING_MAX: usize = 10_000;
    /// Approvals of one family of agents, or of the agents of one user, that may be pending. More: as if there were too many.
    pub const APPROVALS_PENDING_OF_FAMILY_MAX: usize = APPROVALS_PENDING_MAX / 4;
    /// Bytes of the texts of those approvals from which on no other one may be pending.
    pub const APPROVALS_PENDING_OF_FAMILY_BYTES_MAX: usize = APPROVALS_PENDING_BYTES_MAX / 4;
    /// Approvals of one agent that may be pending, so that it leaves some to others. More: as if there were too many.
    pub const APPROVALS_PENDING_OF_AGENT_MAX: usize = APPROVALS_PENDING_MAX / 10;
    /// Approvals that one beat ends because no decision was made in time; the rest waits for the next beat.
    pub const APPROVALS_EXPIRED_MAX: usize = 1_000;
    /// Decided approvals that are kept; of the user or family that keeps most, the oldest go.
    pub const APPROVALS_DECIDED_MAX: usize = 10_000;
    /// Bytes of the texts of pending approvals from which on no other one may be pending, as if there were too many.
    pub const APPROVALS_PENDING_BYTES_MAX: usize = 64 << 20;
    /// Bytes of the texts of one agent's pending approvals from which on no other one of it may be pending.
    pub const APPROVALS_PENDING_OF_AGENT_BYTES_MAX: usize = APPROVALS_PENDING_BYTES_MAX / 8;
    /// Bytes of the texts of decided approvals that are kept, likewise.
    pub const APPROVALS_DECIDED_BYTES_MAX: usize = 64 << 20;
    /// Bytes of the action of an approval that a client asks for. Longer: 400.
    pub const APPROVAL_ACTION_BYTES_MAX: usize = 128;
    /// Bytes of an approval's description, and of the reason of its decision. Longer: 400.
    pub const APPROVAL_TEXT_BYTES_MAX: usize = 4 << 10;
    /// Bytes of the payload of an approval that a client asks for, as compact JSON. Longer: 400.
    pub const APPROVAL_PAYLOAD_BYTES_MAX: usize = 64 << 10;
    /// Approvals decided in one batch. More: 400.
    pub const APPROVAL_BATCH_MAX: usize = 1_000;
    /// Bytes of a message, answer or result that an event carries; the rest is left out.
    pub const EVENT_TEXT_BYTES_MAX: usize = 4 << 10;
    /// Milliseconds that a clock may go back before the world's time follows it. Less: the time stands still
    /// meanwhile.
    pub const CLOCK_JITTER_MS: i64 = 1_000;
    /// Milliseconds that a clock may be set back before schedules take the new time for the right one and count
    /// from it, without the slots that have had their chance to fire. Less: they wait until the clock has caught up.
    pub const CLOCK_FAULT_MS: i64 = 24 * 60 * 60 * 1_000;
    /// The part of a pool that a user with a limited role or a family of agents may take, in number and in bytes: one in so many.
    /// So with all sessions, open turns, triggers and their waiting matches, goals, open tasks, workflows and their runs under way,
    /// prompt versions and experiments, open media tasks and jobs of one kind. More: as if there were too many.
    pub const POOL_SHARES: usize = 4;
    /// Triggers in the whole world. More: 429.
    pub const TRIGGERS_MAX: usize = 4_000_000;
    /// Triggers of all agents of a user with a limited role, or that a family of agents (an agent that a client created, and all that
    /// descend from it) made. Each of them may match every event. More: an error result for a tool, 429 for the user. Admins may.
    pub const SHARE_TRIGGERS_MAX: usize = 1_000;
    /// Bytes of the texts of all triggers. More: 429; no trigger is made, and none is given a longer text.
    pub const TRIGGERS_BYTES_MAX: usize = 1 << 30;
    /// Bytes of a trigger's `prompt_template`. Longer: 400.
    pub const PROMPT_TEMPLATE_BYTES_MAX: usize = 64 << 10;
    /// Bytes of a glob or another text in a trigger's pattern. Longer: 400.
    pub const GLOB_BYTES_MAX: usize = 256;
    /// Bytes of one regular expression of a manifest. Longer: 400.
    pub const PATTERN_BYTES_MAX: usize = 512;
    /// Characters that the classes of regular expressions that belong together stand for, those of a class once for each class
    /// around it; `\w` counts as 16,384. More: 400.
    pub const PATTERN_CHARACTERS_MAX: usize = 65_536;
    /// Bytes of memory that regular expressions that belong together may take once they are read. More: 400.
    pub const PATTERN_MEMORY_BYTES_MAX: usize = 16 << 10;
    /// Bytes of a text that is held against them; the rest is not looked at.
    pub const PATTERN_TEXT_BYTES_MAX: usize = 4 << 10;
    /// Triggers in the manifest of one agent. More: 400.
    pub const MANIFEST_TRIGGERS_MAX: usize = 100;
    /// Fires that a trigger remembers; the oldest go.
    pub const TRIGGER_FIRES_KEPT: usize = 20;
    /// Triggers of a wave of matches that are looked up at once.
    pub const WAVE_TRIGGERS_MAX: usize = 1_000;
    /// Fires of one stored burst; they leave it one by one, each a bit of a number of 64 bits.
    pub const BURST_FIRES_MAX: usize = 64;
    /// Fires of one event in one step below which each has records of its own at once.
    pub const BURST_FIRES_MIN: usize = 8;
    /// Matches that may wait to be delivered. More: they end as `refused`, counted in the totals alone. Those of triggers that a
    /// user with a limited role or a family of agents made may be one in `POOL_SHARES`.
    pub const MATCHES_WAITING_MAX: usize = 4_000_000;
    /// Matches that may wait before those of events that fired turns cause end as `rate_limited`, counted in the
    /// totals alone. Of each user and family as above.
    pub const CASCADE_WAITING_MAX: usize = 1_000_000;
    /// Matches that end without a turn for which one fire is taken from the step's `FIRES_PER_STEP_MAX`.
    pub const MATCHES_PER_FIRE: u32 = 8;
    /// Turns that triggers and schedules begin in one step; the rest waits for the next step. Those of triggers that a user with a
    /// limited role or a family of agents made may be one in `POOL_SHARES`.
    pub const FIRES_PER_STEP_MAX: usize = 1_000;
    /// Bytes of the messages of turns that triggers and schedules begin in one step, and of those that workflows do. The turn that
    /// passes it is the last; the rest waits for the next step.
    pub const FIRED_BYTES_PER_STEP_MAX: usize = 4 << 20;
    /// Of those, what due schedules take before the triggers while both wait; what one of them does not need the
    /// other has.
    pub const SCHEDULES_PER_STEP_MAX: usize = FIRES_PER_STEP_MAX / 2;
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
    /// Bytes of the texts of all tasks, those that ended included. More: no task is posted or retried (429).
    pub const TASKS_BYTES_MAX: usize = 256 << 20;
    /// Tasks that are kept after their end; of the user or family that keeps most, those that ended first go. Those of a user or
    /// family also go while its tasks together, open and ended, take more than one in `POOL_SHARES` of `TASKS_BYTES_MAX`.
    pub const TASKS_ENDED_MAX: usize = 10_000;
    /// Bytes of a task's title. Longer: 400.
    pub const TASK_TITLE_BYTES_MAX: usize = 256;
    /// Bytes of a task's description, and of its result. Longer: 400.
    pub const TASK_TEXT_BYTES_MAX: usize = 8 << 10;
    /// Claims that one beat gives up for their age; the rest waits for the next beat.
    pub const TASKS_SWEPT_MAX: usize = 1_000;
    /// Seconds after which an open claim is given up, unless `[queue] claim_timeout_secs` says
    /// otherwise.
    pub const CLAIM_TIMEOUT_SECS_DEFAULT: u64 = 1_800;
    /// Bytes of the type of a custom event. Longer: 400.
    pub const EVENT_TYPE_BYTES_MAX: usize = 128;
    /// Bytes of the payload of a custom event, as compact JSON. Longer: 400.
    pub const EVENT_PAYLOAD_BYTES_MAX: usize = 16 << 10;
    /// Bytes of the payloads of the custom events of one step while there are triggers; a user, named key or agent may have one in
    /// `POOL_SHARES` of them. More: 503 with `Retry-After`.
    pub const EVENT_PAYLOADS_STEP_BYTES_MAX: usize = 4 * EVENT_PAYLOAD_BYTES_MAX;
    /// Workflow definitions; a user or family may have one in `POOL_SHARES` of them. More: 429.
    pub const WORKFLOWS_MAX: usize = 10_000;
    /// Bytes of the texts of all workflow definitions, likewise. More: 429; none is made, and none is given longer texts.
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
    /// Runs under way in the whole world; a user or family may have one in `POOL_SHARES` of them. More: 429.
    pub const WORKFLOW_RUNS_OPEN_MAX: usize = 10_000;
    /// Bytes of all runs under way; a user or family may have one in `POOL_SHARES` of them. More: no run is begun (429), and a step
    /// whose output has no room fails.
    pub const WORKFLOW_RUNS_OPEN_BYTES_MAX: usize = 256 << 20;
    /// Ended runs that are kept of one workflow; the oldest go.
    pub const WORKFLOW_RUNS_KEPT_MAX: usize = 100;
    /// Bytes of all ended runs that are kept; of the user or family that keeps most, the runs that ended first go.
    pub const WORKFLOW_RUNS_KEPT_BYTES_MAX: usize = 64 << 20;
    /// Requests that may wait for one run. More: 429.
    pub const WORKFLOW_WAITERS_MAX: usize = 64;
    /// Schedules and cron jobs in the whole world. Full: 429 with `Retry-After`.
    pub const SCHEDULES_MAX: usize = 4_000_000;
    /// Bytes of the texts of all schedules and cron jobs, their results not counted. More: 429; none is made, and
    /// none is given a longer text.
    pub const SCHEDULES_BYTES_MAX: usize = 1 << 30;
    /// Schedules and cron jobs of one agent beyond which its own tools make no more: an error result. People may.
    pub const AGENT_SCHEDULES_MAX: usize = 100;
    /// Milliseconds between two slots of a schedule that an agent's tool makes, at least. Shorter: an error result. People may.
    pub const AGENT_SCHEDULE_INTERVAL_MS_MIN: i64 = 60_000;
    /// Schedules and cron jobs of one agent that may be so fast. From twice as many on, the least time between slots is twice as
    /// long, from three times as many on three times, and so on.
    pub const AGENT_SCHEDULES_FAST: usize = 5;
    /// Schedules and cron jobs of all agents of a user with a limited role, or of one family (an agent that a client created, and all
    /// that descend from it). More: an error result for a tool, 429 for the user. Admins may.
    pub const SHARE_SCHEDULES_MAX: usize = 1_000;
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
    /// Slots that passed unnoticed and still fire under the missed policy `all`, one after another: the newest. The others
    /// are missed.
    pub const SCHEDULE_MISSED_MAX: usize = SCHEDULE_QUEUE_MAX;
    /// Spans of time that a schedule remembers as done, so that a clock that is set back fires no slot twice. More: the
    /// nearest two become one.
    pub const SCHEDULE_SPANS_MAX: usize = 4;
    /// Slots of one schedule that wait for an open turn. More: refused.
    pub const SCHEDULE_QUEUE_MAX: usize = 100;
    /// Slots of one schedule that are walked before others have their turn; the rest stays due.
    pub const SCHEDULE_SLOTS_PER_VISIT: usize = 256;
    /// Slots of one preview; a larger count is cut.
    pub const SCHEDULE_PREVIEW_MAX: usize = 100;
}
