//! Error codes of hooks.

agentsvc_components::error_codes! {
    /// Too many hook calls are open, or too many wakes wait for the agent.
    HOOK_CALLS_FULL = "hook_calls_full", [429], "Try again when some of them have ended.";
    /// The idempotency key belongs to another hook call.
    HOOK_KEY_REUSED = "hook_key_reused", [409], "Use another key for another message.";
}
