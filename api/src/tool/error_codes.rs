//! Error codes of tools.

agentsvc_components::error_codes! {
    /// No tool has this name.
    TOOL_NOT_FOUND = "tool_not_found", [404], "Choose a name from `GET /api/tools`.";
    /// Clients may not run tools.
    TOOL_INVOKE_DISABLED = "tool_invoke_disabled", [403], "Set `[tool_invoke] enabled`.";
    /// The tool is not in the allowlist.
    TOOL_NOT_ALLOWED = "tool_not_allowed", [403], "Add the exact name to `[tool_invoke] allowlist`.";
    /// The input does not match the tool's schema. `field` names the place.
    TOOL_INPUT = "tool_input", [400], "Correct the input.";
    /// The tool works on a conversation, so clients cannot call it.
    TOOL_NEEDS_TURN = "tool_needs_turn", [400], "Ask an agent to use the tool.";
    /// The tool works on an agent's files or memory.
    TOOL_NEEDS_AGENT = "tool_needs_agent", [400], "Send `agent_id`.";
    /// The agent's manifest does not grant the tool.
    TOOL_NOT_GRANTED = "tool_not_granted", [403], "Add the tool to the manifest's capabilities.";
}
