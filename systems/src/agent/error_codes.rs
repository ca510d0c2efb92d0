//! Error codes of agents and their manifests.

agentsvc_components::error_codes! {
    /// No agent exists yet.
    NO_AGENT = "no_agent", [404], "Create an agent first.";
    /// The limit for agents, or for the bytes of their manifests, is reached.
    AGENTS_FULL = "agents_full", [429], "Delete agents.";
    /// The user has as many agents as a user may have.
    USER_AGENTS_FULL = "user_agents_full", [429], "Delete agents of the user, or raise `[people] agents_per_user_max`.";
    /// The agent belongs to a user who was deleted.
    AGENT_USER_GONE = "agent_user_gone", [409], "Give the agent to another user: `PUT /api/agents/{id}/owner`.";
    /// An agent with this name exists.
    AGENT_NAME_TAKEN = "agent_name_taken", [409], "Choose another name or delete the other agent.";
    /// The agent is in mode `Stable`, which pins this setting.
    AGENT_STABLE = "agent_stable", [409], "Set the mode to `Normal` first.";
    /// The agent is stopped.
    AGENT_NOT_RUNNING = "agent_not_running", [409], "Start the agent.";
    /// The daemon accepts signed manifests only.
    MANIFEST_UNSIGNED = "manifest_unsigned", [403], "Send `manifest_signature`.";
    /// The manifest is signed, but no key is configured to check it with.
    MANIFEST_KEYS_MISSING = "manifest_keys_missing", [403], "Add the public key to `[security] manifest_keys`.";
    /// No trusted key signed this manifest.
    MANIFEST_SIGNATURE_INVALID = "manifest_signature_invalid", [403], "Sign exactly this text with a trusted key.";
}
