//! Error codes of hooks over HTTP.

agentsvc_components::error_codes! {
    /// Hooks are off.
    WEBHOOK_TRIGGERS_OFF = "webhook_triggers_off", [404], "Set `[webhook_triggers] enabled = true` in the configuration.";
    /// The request has no valid token for hooks.
    WEBHOOK_INVALID_TOKEN = "webhook_invalid_token", [401], "Send `Authorization: Bearer <token>` with the token in `[webhook_triggers] token_env`, or the API key if no variable is set.";
    /// The environment variable in `[webhook_triggers] token_env` is missing or has fewer than 32 bytes.
    WEBHOOK_TOKEN_UNUSABLE = "webhook_token_unusable", [503], "Set the variable to a token of at least 32 bytes and restart the daemon.";
    /// Hooks were called more often in a minute than `[webhook_triggers] rate_limit_per_minute` allows.
    WEBHOOK_RATE_LIMITED = "webhook_rate_limited", [429], "Wait as long as `Retry-After` says, or raise the rate.";
    /// There are several agents and the request names none.
    HOOK_AGENT_UNNAMED = "hook_agent_unnamed", [400], "Name the agent in `agent`.";
    /// The recipient is neither the channel's `default_conversation` nor in `[channels] allow_send_to`.
    HOOK_RECIPIENT_DENIED = "hook_recipient_denied", [403], "Leave `recipient` out, or let the operator add the conversation to `[channels] allow_send_to`.";
    /// The agent could not answer.
    HOOK_TURN_FAILED = "hook_turn_failed", [502], "`error` and `cause` say why; the turn is in the agent's session.";
    /// The turn was stopped before the agent answered.
    HOOK_TURN_STOPPED = "hook_turn_stopped", [409], "Call the hook again with another idempotency key.";
    /// The agent did not answer within `timeout_secs`; its turn was stopped.
    HOOK_TIMEOUT = "hook_timeout", [504], "Allow more time in `timeout_secs`.";
}
