//! What the results of tools bring, and which calls are sensitive. A tool that is not listed is one that nobody vouches
//! for: its results are untrusted, and its calls are sensitive.

use agentsvc_components::kernel::taint::{AgentTaint, Taint};
use agentsvc_components::manifest::Manifest;
use agentsvc_components::turn::effect::ToolRun;

/// What the result of a call brings into its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brings {
    /// Nothing that anybody stored.
    Nothing,
    /// Stored texts with the taint that the result names. A result that names none is untrusted: see [`labelled`].
    Labelled,
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
    /// When it has this argument.
    With(&'static str),
    /// When its patch deletes or renames files.
    Deletion,
    /// When its address is new: neither given by the user nor read. Where calls are only noted, when it has a query.
    NewAddress,
    /// Likewise, and its fragment is a part of the address: the scripts of the page see it.
    NewPage,
    /// Where calls are more than noted: its text goes to strangers.
    Search,
    /// When the receiver may do what the sender may not.
    ToMore,
}

/// How a tool reads. Whatever holds stored text carries its taint; `NoStoredText` is the exception.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Its results hold what the call itself says, ids, numbers and words of this program: no name, key, title or other
    /// text that was stored before.
    NoStoredText,
    /// Stored texts; each result says what taint they have.
    Labelled,
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
    ("tool_search", Reads::Labelled, Sink::Never, false),
    ("tool_load", Reads::NoStoredText, Sink::Never, false),
    ("result_read", Reads::Conversation, Sink::Never, false),
    ("system_time", Reads::NoStoredText, Sink::Never, false),
    ("notify_owner", Reads::NoStoredText, Sink::Never, false),
    ("agent_send", Reads::Labelled, Sink::ToMore, false),
    ("agent_list", Reads::Labelled, Sink::Never, false),
    ("agent_find", Reads::Labelled, Sink::Never, false),
    ("agent_spawn", Reads::NoStoredText, Sink::Always, false),
    ("agent_kill", Reads::NoStoredText, Sink::Always, false),
    ("web_fetch", Reads::Web, Sink::NewAddress, false),
    ("web_search", Reads::Web, Sink::Search, false),
    ("browser_navigate", Reads::Web, Sink::NewPage, false),
    ("browser_click", Reads::Web, Sink::Always, false),
    ("browser_type", Reads::Web, Sink::Always, false),
    ("browser_run_js", Reads::Web, Sink::Always, false),
    ("browser_read_page", Reads::Web, Sink::Never, false),
    ("browser_screenshot", Reads::Web, Sink::Never, false),
    ("browser_scroll", Reads::Web, Sink::With("amount"), false),
    ("browser_wait", Reads::Web, Sink::Always, false),
    ("browser_back", Reads::Web, Sink::Never, false),
    ("browser_close", Reads::NoStoredText, Sink::Never, false),
    ("file_read", Reads::Files, Sink::Never, false),
    ("file_list", Reads::Files, Sink::Never, false),
    ("file_write", Reads::NoStoredText, Sink::Never, true),
    ("file_delete", Reads::NoStoredText, Sink::Always, false),
    ("apply_patch", Reads::Files, Sink::Deletion, true),
    ("shell_exec", Reads::Command, Sink::Always, true),
    ("memory_store", Reads::NoStoredText, Sink::Never, false),
    ("memory_recall", Reads::Labelled, Sink::Never, false),
    ("memory_list", Reads::Labelled, Sink::Never, false),
    ("memory_search", Reads::Labelled, Sink::Never, false),
    ("memory_update", Reads::NoStoredText, Sink::Never, false),
    ("memory_forget", Reads::NoStoredText, Sink::Never, false),
    ("knowledge_add_entity", Reads::NoStoredText, Sink::Never, false),
    ("knowledge_add_relation", Reads::NoStoredText, Sink::Never, false),
    ("knowledge_query", Reads::Labelled, Sink::Never, false),
    ("session_search", Reads::Past, Sink::Never, false),
    ("cron_create", Reads::NoStoredText, Sink::Always, false),
    ("cron_cancel", Reads::NoStoredText, Sink::Always, false),
    ("cron_list", Reads::Past, Sink::Never, false),
    ("schedule_create", Reads::NoStoredText, Sink::Always, false),
    ("schedule_delete", Reads::NoStoredText, Sink::Always, false),
    ("schedule_list", Reads::Past, Sink::Never, false),
    ("event_publish", Reads::NoStoredText, Sink::Never, false),
    ("goal_update", Reads::Labelled, Sink::Always, false),
    ("task_claim", Reads::Labelled, Sink::Never, false),
    ("task_complete", Reads::Labelled, Sink::Never, false),
    ("task_list", Reads::Labelled, Sink::Never, false),
    ("task_post", Reads::NoStoredText, Sink::Never, false),
    ("task_status", Reads::Labelled, Sink::Never, false),
    ("a2a_discover", Reads::Web, Sink::NewAddress, false),
    ("a2a_list", Reads::Web, Sink::Never, false),
    ("a2a_send", Reads::Web, Sink::Always, false),
    ("a2a_status", Reads::Web, Sink::Never, false),
    ("image_generate", Reads::NoStoredText, Sink::Never, false),
    ("text_to_speech", Reads::NoStoredText, Sink::Never, false),
    ("video_generate", Reads::NoStoredText, Sink::Never, false),
    ("video_status", Reads::Labelled, Sink::Never, false),
    ("music_generate", Reads::NoStoredText, Sink::Never, false),
    // What a recording says is as untrusted as a page.
    ("transcribe", Reads::Web, Sink::Never, false),
    ("channel_send", Reads::NoStoredText, Sink::Always, false),
    ("skill_list", Reads::Labelled, Sink::Never, false),
    ("skill_read_file", Reads::Labelled, Sink::Never, false),
    ("workflow_run", Reads::Labelled, Sink::Always, false),
    // They propose. Where agents may change skills at once, turns that read untrusted content may not.
    ("skill_evolve_create", Reads::NoStoredText, Sink::Never, false),
    ("skill_evolve_update", Reads::NoStoredText, Sink::Never, false),
    ("skill_evolve_patch", Reads::NoStoredText, Sink::Never, false),
    ("skill_evolve_delete", Reads::NoStoredText, Sink::Never, false),
    ("skill_evolve_rollback", Reads::NoStoredText, Sink::Never, false),
    ("skill_evolve_write_file", Reads::NoStoredText, Sink::Never, false),
    ("skill_evolve_remove_file", Reads::NoStoredText, Sink::Never, false),
];

fn row(tool: &str) -> Row {
    TOOLS.iter().find(|row| row.0 == tool).copied().unwrap_or(("", Reads::Anything, Sink::Always, true))
}

/// When calls of the tool are sensitive.
pub(super) fn sink(tool: &str) -> Sink {
    row(tool).2
}

/// Does a patch delete or rename a file? A line of a file's text that looks like it counts as well: that is for a person to see.
pub(super) fn deletes(patch: &str) -> bool {
    // As the tool itself reads the two lines of a header.
    fn path<'p>(line: &'p str, mark: &str, letter: &str) -> Option<&'p str> {
        let name = line.strip_prefix(mark)?.split('\t').next().unwrap_or_default().trim();
        Some(name.strip_prefix(letter).unwrap_or(name))
    }
    let is_moved = |(old, new): (&str, &str)| match (path(old, "--- ", "a/"), path(new, "+++ ", "b/")) {
        (Some(old), Some(new)) => old != "/dev/null" && old != new,
        _ => false,
    };
    patch.lines().any(|line| line.starts_with("*** Delete File:") || line.starts_with("*** Move to:"))
        || patch.lines().zip(patch.lines().skip(1)).any(is_moved)
}

/// May a call of the tool write files of the workspace?
pub(crate) fn writes_files(tool: &str) -> bool {
    row(tool).3
}

/// The taint of what calls of the tool read of their agent's workspace and conversations.
pub(super) fn reads_of(tool: &str, agent: AgentTaint) -> Taint {
    match row(tool).1 {
        Reads::Files | Reads::Command => agent.files,
        Reads::Past => agent.seen,
        _ => Taint::NONE,
    }
}

/// May a call of the tool run what stands in files of the workspace? Then it is judged as if its turn had read them.
pub(super) fn runs_files(tool: &str) -> bool {
    matches!(row(tool).1, Reads::Command)
}

/// What the result of a call brings into its turn.
#[must_use]
pub fn brings(run: &ToolRun) -> Brings {
    match row(&run.call.name).1 {
        Reads::NoStoredText => Brings::Nothing,
        Reads::Labelled => Brings::Labelled,
        Reads::Web => Brings::Content(Taint::WEB),
        Reads::Command if reaches_network(&run.manifest.manifest) => {
            Brings::Content(run.agent_taint.files.with(Taint::COMMAND))
        }
        Reads::Files | Reads::Command | Reads::Past => content(reads_of(&run.call.name, run.agent_taint)),
        Reads::Conversation if run.taint.is_none() => Brings::Nothing,
        Reads::Conversation => Brings::More,
        Reads::Anything => Brings::Content(Taint::TOOL),
    }
}

/// The taint of a result of stored texts: what it names, or [`Taint::TOOL`] where it names nothing.
#[must_use]
pub fn labelled(read: Option<Taint>) -> Taint {
    read.unwrap_or(Taint::TOOL)
}

/// The taint of a result that the world settled: what the command has read. `None` when it said nothing of it.
pub(super) fn settled(tool: &str, read: Option<Taint>) -> Taint {
    if row(tool).1 == Reads::NoStoredText { read.unwrap_or_default() } else { labelled(read) }
}

/// The taint of what a call of the tool can store in files without it having been read.
pub(super) fn loads(tool: &str, manifest: &Manifest) -> Taint {
    if row(tool).1 == Reads::Command && reaches_network(manifest) { Taint::COMMAND } else { Taint::NONE }
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

    #[test]
    fn stored_text_without_a_label_is_untrusted() {
        assert_eq!(labelled(None), Taint::TOOL);
        assert_eq!(labelled(Some(Taint::NONE)), Taint::NONE);
        assert_eq!(settled("task_claim", None), Taint::TOOL);
        assert_eq!(settled("task_claim", Some(Taint::WEB)), Taint::WEB);
        assert_eq!(settled("task_post", None), Taint::NONE);
        assert_eq!(settled("mcp_pay", None), Taint::TOOL);
    }
}
