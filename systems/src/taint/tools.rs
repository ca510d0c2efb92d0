//! What the results of tools bring, and which calls are sensitive. A tool that is not listed is one that nobody vouches
//! for: its results are untrusted, and its calls are sensitive.

use agentsvc_components::manifest::Manifest;
use agentsvc_components::taint::Taint;
use agentsvc_components::turn::effect::ToolRun;

/// What the result of a call brings into its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brings {
    /// Nothing from outside, or what the call itself says it read.
    Nothing,
    /// Content of these sources.
    Content(Taint),
    /// More of what the conversation holds already, some of it untrusted: nothing new, but to be scanned.
    More,
}

/// When a call is sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sink {
    /// Never: it changes nothing, or what it changes carries the taint on.
    Never,
    /// Always.
    Always,
    /// When its URL carries more than a place.
    WithQuery,
    /// When the receiver may do what the sender may not.
    ToMore,
}

/// How a tool reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Nothing,
    Web,
    Files,
    Command,
    Conversation,
    Past,
    Anything,
}

/// A tool's row: its name, how it reads, when its calls are sensitive, and whether it writes files.
type Row = (&'static str, Reads, Sink, bool);

/// The table.
const TOOLS: &[Row] = &[
    ("tool_search", Reads::Nothing, Sink::Never, false),
    ("tool_load", Reads::Nothing, Sink::Never, false),
    ("result_read", Reads::Conversation, Sink::Never, false),
    ("system_time", Reads::Nothing, Sink::Never, false),
    ("notify_owner", Reads::Nothing, Sink::Never, false),
    ("agent_send", Reads::Nothing, Sink::ToMore, false),
    ("agent_list", Reads::Nothing, Sink::Never, false),
    ("agent_find", Reads::Nothing, Sink::Never, false),
    ("agent_spawn", Reads::Nothing, Sink::Always, false),
    ("agent_kill", Reads::Nothing, Sink::Always, false),
    ("web_fetch", Reads::Web, Sink::WithQuery, false),
    ("web_search", Reads::Web, Sink::Never, false),
    ("file_read", Reads::Files, Sink::Never, false),
    ("file_list", Reads::Files, Sink::Never, false),
    ("file_write", Reads::Nothing, Sink::Never, true),
    ("file_delete", Reads::Nothing, Sink::Always, false),
    ("apply_patch", Reads::Files, Sink::Never, true),
    ("shell_exec", Reads::Command, Sink::Always, true),
    ("memory_store", Reads::Nothing, Sink::Never, false),
    ("memory_recall", Reads::Nothing, Sink::Never, false),
    ("memory_list", Reads::Nothing, Sink::Never, false),
    ("session_search", Reads::Past, Sink::Never, false),
    ("cron_create", Reads::Nothing, Sink::Always, false),
    ("cron_cancel", Reads::Nothing, Sink::Always, false),
    ("cron_list", Reads::Past, Sink::Never, false),
    ("schedule_create", Reads::Nothing, Sink::Always, false),
    ("schedule_delete", Reads::Nothing, Sink::Always, false),
    ("schedule_list", Reads::Past, Sink::Never, false),
    ("event_publish", Reads::Nothing, Sink::Never, false),
    ("goal_update", Reads::Nothing, Sink::Always, false),
    ("task_claim", Reads::Nothing, Sink::Never, false),
    ("task_complete", Reads::Nothing, Sink::Never, false),
    ("task_list", Reads::Nothing, Sink::Never, false),
    ("task_post", Reads::Nothing, Sink::Never, false),
    ("task_status", Reads::Nothing, Sink::Never, false),
    ("workflow_run", Reads::Nothing, Sink::Always, false),
];

fn row(tool: &str) -> Row {
    TOOLS.iter().find(|row| row.0 == tool).copied().unwrap_or(("", Reads::Anything, Sink::Always, true))
}

/// When calls of the tool are sensitive.
pub(super) fn sink(tool: &str) -> Sink {
    row(tool).2
}

/// May a call of the tool write files of the workspace?
pub(crate) fn writes_files(tool: &str) -> bool {
    row(tool).3
}

/// What the result of a call brings into its turn.
#[must_use]
pub fn brings(run: &ToolRun) -> Brings {
    match row(&run.call.name).1 {
        Reads::Nothing => Brings::Nothing,
        Reads::Web => Brings::Content(Taint::WEB),
        Reads::Files => content(run.agent_taint.files),
        Reads::Command if reaches_network(&run.manifest.manifest) => {
            Brings::Content(run.agent_taint.files.with(Taint::COMMAND))
        }
        Reads::Command => content(run.agent_taint.files),
        Reads::Conversation if run.taint.is_none() => Brings::Nothing,
        Reads::Conversation => Brings::More,
        Reads::Past => content(run.agent_taint.seen),
        Reads::Anything => Brings::Content(Taint::TOOL),
    }
}

/// Do the commands of such an agent reach the network? The kernel's rules know ports and no hosts: only the grant for
/// all of them opens it.
fn reaches_network(manifest: &Manifest) -> bool {
    manifest.capabilities.network.iter().any(|host| &**host == "*")
}

const fn content(taint: Taint) -> Brings {
    if taint.is_none() { Brings::Nothing } else { Brings::Content(taint) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_nobody_knows_is_neither_trusted_nor_harmless() {
        assert_eq!(sink("mcp_pay"), Sink::Always);
        assert!(writes_files("mcp_pay") && row("mcp_pay").1 == Reads::Anything);
        assert_eq!((sink("shell_exec"), sink("system_time")), (Sink::Always, Sink::Never));
    }
}
