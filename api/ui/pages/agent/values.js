// The settings of an agent that can be changed, as one flat object: what its manifest says, how two of them differ, and the request for it.

/** How the settings are called, in the order of the form. */
export const LABELS = {
  name: "Name", description: "Description", tags: "Tags", system_prompt: "System prompt",
  provider: "Provider", model: "Model", temperature: "Temperature", max_tokens: "Max output tokens", max_history_messages: "History messages",
  tools: "Tools", network: "Internet", shell: "Commands", file_system: "Files", agent_spawn: "Create agents", tool_allowlist: "Only these tools", tool_blocklist: "Blocked tools", skills: "Skills", mcp_servers: "MCP servers",
  daily_limit_usd: "Daily limit (USD)", monthly_limit_usd: "Monthly limit (USD)", hourly_token_limit: "Hourly limit (tokens)",
  avatar: "Avatar", persona: "Tone", mode: "Mode",
};
/** Limits that are saved as the budget of the agent. */
export const LIMITS = ["daily_limit_usd", "monthly_limit_usd", "hourly_token_limit"];

/** Settings that stand under `[capabilities]`. */
const RIGHTS = new Set(["network", "shell", "file_system", "agent_spawn"]);

/** The values of a manifest as `POST /api/agents/check` gives it. */
export function valuesOf(name, manifest, mode) {
  const { model, capabilities, identity } = manifest;
  return {
    name, mode, description: manifest.description, tags: manifest.tags, system_prompt: manifest.system_prompt,
    provider: model.provider, model: model.model, temperature: model.temperature, max_tokens: model.max_tokens, max_history_messages: manifest.max_history_messages,
    tools: capabilities.tools, network: capabilities.network, shell: capabilities.shell, file_system: capabilities.file_system !== false, agent_spawn: capabilities.agent_spawn === true, tool_allowlist: manifest.tool_allowlist, tool_blocklist: manifest.tool_blocklist,
    skills: manifest.skills, mcp_servers: manifest.mcp_servers, avatar: identity.avatar, persona: identity.persona,
  };
}

/** A manifest without what `valuesOf` takes of it: what an agent has from its creation on. */
export function restOf(manifest) {
  const { description, tags, system_prompt, max_history_messages, tool_allowlist, tool_blocklist, skills, mcp_servers, identity, model, capabilities, ...rest } = manifest;
  const { provider, model: id, temperature, max_tokens, ...ofModel } = model;
  const { tools, network, shell, file_system, agent_spawn, ...ofCapabilities } = capabilities;
  return { ...rest, ...under("model", ofModel), ...under("capabilities", ofCapabilities) };
}

const under = (name, values) => Object.fromEntries(Object.entries(values).map(([key, value]) => [`${name}.${key}`, value]));
const same = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

/** What differs: `[{ key, before, after }]`. */
export function changesOf(before, after) {
  return Object.keys(LABELS).filter((key) => !same(before[key], after[key])).map((key) => ({ key, before: before[key], after: after[key] }));
}

/** The keys of `restOf` that differ between two manifests. */
export function fixedBetween(before, after) {
  const [a, b] = [restOf(before), restOf(after)];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => !same(a[key], b[key]));
}

/** The body of the PATCH for `changes`, the mode where that changes, and whether a limit does. */
export function bodyOf(changes) {
  const patch = {};
  let mode = null;
  let isBudget = false;
  for (const { key, after } of changes) {
    if (key === "mode") mode = after;
    else if (LIMITS.includes(key)) isBudget = true;
    else if (RIGHTS.has(key)) patch.capabilities = { ...patch.capabilities, [key]: after };
    else if (key === "avatar" || key === "persona") patch.identity = { ...patch.identity, [key]: after };
    else patch[key] = after;
  }
  return { patch, mode, isBudget };
}
