//! The moments at which plugins are asked.

use agentsvc_components::enum_words;

enum_words! {
    /// A hook.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub(crate) enum Hook [ALL, as_str, parse] {
        /// Before the first model call of a turn: brings memories.
        Ingest = "ingest",
        /// After a turn.
        AfterTurn = "after_turn",
        /// When the plugin is put in force.
        Bootstrap = "bootstrap",
        /// Before a model call: gives other messages.
        Assemble = "assemble",
        /// When a session is compacted: gives what stands in the place of its older messages.
        Compact = "compact",
        /// After a tool call: gives another result.
        TransformToolResult = "transform_tool_result",
        /// An agent has created another one.
        PrepareSubagent = "prepare_subagent",
        /// A turn of an agent that another one created has ended.
        MergeSubagent = "merge_subagent",
        /// Something happened.
        OnEvent = "on_event",
    }
}

impl Hook {
    /// Seconds that a run may take where the manifest does not say.
    pub(super) const fn timeout_secs(self) -> u64 {
        if matches!(self, Self::Bootstrap) { 60 } else { 30 }
    }

    /// The `type` of a usual answer.
    pub(super) const fn answer_type(self) -> &'static str {
        match self {
            Self::Ingest => "ingest_result",
            Self::Assemble => "assemble_result",
            Self::Compact => "compact_result",
            Self::TransformToolResult => "transformed",
            _ => "ok",
        }
    }
}
