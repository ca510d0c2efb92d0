//! Error codes of turns.

use crate::kernel::error_code::error_codes;

error_codes! {
    /// The provider has no API key, or it rejected the key.
    PROVIDER_AUTH = "provider_auth", [500, 409, 502], "Set a valid key for the provider.";
    /// The provider still answered 429 after all retries.
    PROVIDER_RATE_LIMITED = "provider_rate_limited", [500, 502], "Retry later or raise the limit at the provider.";
    /// The provider could not be reached after all retries.
    PROVIDER_UNREACHABLE = "provider_unreachable", [500, 502], "Check the network and the provider's base URL.";
    /// The provider did not answer in time.
    PROVIDER_TIMEOUT = "provider_timeout", [500, 504], "Retry, or raise the timeout of the provider.";
    /// The provider failed (5xx) after all retries, or its answer broke off.
    PROVIDER_ERROR = "provider_error", [500, 502], "Retry later.";
    /// The provider's answer is malformed.
    PROVIDER_PROTOCOL = "provider_protocol", [500, 502], "Check that the base URL belongs to the configured driver.";
    /// The provider rejected the request (4xx).
    PROVIDER_REFUSED = "provider_refused", [500, 502], "Change the request, the model or its settings.";
    /// The tools and the parameters of the request take more of the model's context than there is, so it was not sent.
    PROMPT_TOO_LARGE = "prompt_too_large", [500, 502], "Grant fewer tools or `tool_load`, or set `context_tokens` of the model.";
    /// A hook of a plugin failed, and its `on_hook_failure` is `abort`, so the model was not asked.
    PLUGIN_FAILED = "plugin_failed", [500, 502], "Read `GET /api/plugins/{name}/traces`; repair or disable the plugin.";
    /// The provider or the model is unknown.
    UNKNOWN_PROVIDER = "unknown_provider", [500, 502], "Choose a model from `GET /api/models`.";
    /// The daemon could not read its store or run the call.
    INTERNAL = "internal", [500, 502], "Read the daemon's log.";
    /// The turn reached its own limit of model calls, tokens or cost.
    TURN_LIMIT_REACHED = "turn_limit_reached", [500], "Raise the limit: `max_iterations` of the manifest, or those of runs in `[auto_dream]`.";
    /// The agent repeated the same tool calls without making progress.
    TOOL_CIRCUIT_BREAKER = "tool_circuit_breaker", [500], "Rephrase the message or change the agent's tools.";
    /// The agent that is asked waits, directly or through others, for the agent that asks.
    AGENT_CYCLE = "agent_cycle", [], "Ask an agent that is not part of this chain.";
    /// Too many agents already wait for each other.
    AGENT_CHAIN_TOO_LONG = "agent_chain_too_long", [], "Do the work in this agent.";
    /// Too many turns were begun by agents and triggers, one after the other.
    AGENT_CASCADE_TOO_DEEP = "agent_cascade_too_deep", [], "End the turn; agents that message each other in a loop stop here. `[triggers] max_depth` sets the limit.";
    /// The agent sent too many messages within a minute in turns that other agents or triggers started.
    AGENT_CASCADE_RATE_LIMITED = "agent_cascade_rate_limited", [], "Wait a minute. `[triggers] cascade_per_minute` sets the limit.";
    /// The agents of the user, or the agent and those spawned below it, have as many open turns as they may.
    TURNS_FULL = "turns_full", [429], "Retry when some of their turns have ended, or stop some.";
    /// The turn that made the call has ended.
    TURN_ENDED = "turn_ended", [], "Nothing; the result is discarded.";
    /// The daemon is shutting down.
    SHUTTING_DOWN = "shutting_down", [], "Reconnect after the restart; the turn resumes.";
    /// The reader was too slow and a part of the stream is lost.
    STREAM_LAGGED = "stream_lagged", [], "Read the answer from the session.";
}
