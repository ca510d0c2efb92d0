//! Error codes of approvals.

agentsvc_components::error_codes! {
    /// The approval is decided or expired.
    APPROVAL_DECIDED = "approval_decided", [409], "Nothing; a decision is final.";
    /// A person must approve each call of this tool, and the request names no agent.
    APPROVAL_NEEDS_AGENT = "approval_needs_agent", [400], "Send `agent_id`.";
    /// A person rejected the call.
    APPROVAL_REJECTED = "approval_rejected", [403], "Read the reason in `error`.";
    /// The call was not approved in time, or the request or its agent went away.
    APPROVAL_EXPIRED = "approval_expired", [403], "Send the call again and approve it in time.";
}
