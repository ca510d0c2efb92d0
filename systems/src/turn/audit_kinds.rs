//! Kinds of audit log entries: turn.

agentsvc_components::audit_kinds! {
    /// A tool call was refused: by the loop guard, or because the agent may not call the tool.
    TOOL_REFUSED = "tool_refused";
    /// It is not known whether a tool call took effect.
    TOOL_UNKNOWN = "tool_unknown";
}
