// Entries of the audit log as sentences: "Set the daily limit of the global budget to $5.00".

import { nameOf } from "../../lib/agents.js";
import { count, money } from "../../lib/format.js";

/** The details of an entry; none where they cannot be read. */
export const details = (entry) => {
  try {
    return JSON.parse(entry.details);
  } catch {
    return {};
  }
};

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
const quoted = (text) => (text ? `“${text}”` : "");
/** A thing by its name: an id without a known name is not said. */
const named = (kind, id) => (id && !(UUID.test(id) && nameOf(id) === id.slice(0, 8)) ? `${kind} ${quoted(nameOf(id).length < id.length && UUID.test(id) ? nameOf(id) : id)}` : `a ${kind}`);
const listed = (words, max = 4) => (words.length > max ? `${words.slice(0, max).join(", ")} and ${words.length - max} more` : words.join(", "));
const because = (reason) => (reason ? `: ${String(reason).replaceAll("_", " ")}` : "");
const agent = (entry) => (entry.agent_id ? `agent ${quoted(nameOf(entry.agent_id))}` : "the agent");
const toolList = (what) => (what?.count > 0 ? listed(what.names ?? [], 3) : "none");

const LIMITS = [["daily_limit_usd", "daily limit", money], ["monthly_limit_usd", "monthly limit", money], ["hourly_token_limit", "hourly token limit", (value) => count(value, "token")]];
/** The limits that were set; "" where none is left. */
const limits = (found) => LIMITS.filter(([key]) => found[key] > 0).map(([key, name, text]) => `${name} to ${text(found[key])}`).join(" and the ");
const budgetOf = (entry, { user }) => (entry.agent_id ? agent(entry) : user ? "a user" : "the global budget");

/** What was done, by the type of the entry: of the details and the entry. */
const DEEDS = {
  agent_cloned: (found, entry) => `Copied ${agent(entry)}`,
  agent_mode_changed: ({ mode }, entry) => `Set the mode of ${agent(entry)} to ${mode}`,
  agent_model_changed: ({ provider, model }, entry) => `Changed the model of ${agent(entry)}${model ? ` to ${[provider, model].filter(Boolean).join("/")}` : ""}`,
  agent_skills_changed: ({ skills }, entry) => `Changed the skills of ${agent(entry)}: ${toolList(skills)}`,
  agent_spawned: ({ name }) => `Created agent ${quoted(name)}`,
  agent_started: (found, entry) => `Started ${agent(entry)}`,
  agent_stopped: (found, entry) => `Stopped ${agent(entry)}`,
  agent_terminated: ({ name }) => `Deleted agent ${quoted(name)}`,
  agent_updated: ({ fields, name }) => `Changed agent ${quoted(name)}${fields?.length > 0 ? `: ${listed(fields.map((field) => field.replaceAll("_", " ")))}` : ""}`,
  approval_decided: ({ action, decision, reason }) => `${{ approved: "Approved", rejected: "Rejected" }[decision] ?? "Let expire"} ${action ?? "a tool call"}${because(reason)}`,
  approval_requested: ({ action }) => `Asked for approval of ${action ?? "a tool call"}`,
  auth_failed: ({ failures, peers }) => `Refused ${count(failures ?? 1, "request")} without a valid API key${peers?.length > 0 ? ` from ${listed(peers)}` : ""}`,
  backup_created: ({ filename }) => `Created backup ${filename}`,
  backup_deleted: ({ filename }) => `Deleted backup ${filename}`,
  backup_downloaded: ({ filename }) => `Downloaded backup ${filename}`,
  backup_restored: ({ filename }) => `Restored backup ${filename}`,
  budget_set: (found, entry) => (limits(found) ? `Set the ${limits(found)} for ${budgetOf(entry, found)}` : `Removed all limits of ${budgetOf(entry, found)}`),
  channel_configured: ({ channel, adapter, agent: who, keys }) => `Set up channel ${quoted(channel)}${adapter ? ` (${adapter})` : ""}${who ? ` for agent ${quoted(nameOf(who))}` : ""}${keys?.length > 0 ? `, with ${listed(keys)}` : ""}`,
  channel_removed: ({ channel }) => `Removed channel ${quoted(channel)}`,
  channel_tested: ({ channel, recipient }) => `Sent a test message on ${quoted(channel)}${recipient ? ` to ${recipient}` : ""}`,
  chat_message_sent: ({ channel, conversation }) => `Sent a message on ${channel}${conversation ? ` to ${conversation}` : ""}`,
  config_reloaded: ({ changed }) => `Reloaded the configuration: ${changed?.length > 0 ? listed(changed) : "no changes"}`,
  config_set: ({ path, value }) => `Set ${path} to ${typeof value === "string" ? value : JSON.stringify(value)}`,
  daemon_started: ({ version }) => `Started agentsvc${version ? ` ${version}` : ""}`,
  daemon_stopped: () => "Stopped agentsvc",
  event_published: ({ event_type: type }) => `Published event ${quoted(type)}`,
  file_deleted: ({ filename }) => `Deleted file ${filename}`,
  file_uploaded: ({ filename }) => `Uploaded file ${filename}`,
  file_written: ({ filename }) => `Wrote file ${filename}`,
  goal_created: ({ goal }) => `Created ${named("goal", goal)}`,
  goal_updated: ({ goal, status }) => `Updated ${named("goal", goal)}${status ? `: ${status.replaceAll("_", " ")}` : ""}`,
  history_cleared: ({ messages }, entry) => `Cleared the history of ${agent(entry)}${messages ? ` (${count(messages, "message")})` : ""}`,
  injection_found: ({ source, withheld }) => `Found what looks like a prompt injection${source ? ` in ${source}` : ""}${withheld ? ", and withheld it" : ""}`,
  key_created: ({ name, role }) => `Created API key ${quoted(name)}${role ? ` with role ${role}` : ""}`,
  key_revoked: ({ name }) => `Revoked API key ${quoted(name)}`,
  mcp_server_created: ({ name, target }) => `Added MCP server ${quoted(name)}${target ? ` (${target})` : ""}`,
  mcp_server_removed: ({ name }) => `Removed MCP server ${quoted(name)}`,
  mcp_server_updated: ({ name }) => `Changed MCP server ${quoted(name)}`,
  memory_deleted: ({ entries }, entry) => `Deleted ${count(entries ?? 1, "memory entry", "memory entries")} of ${agent(entry)}`,
  memory_written: ({ entries }, entry) => `Wrote ${count(entries ?? 1, "memory entry", "memory entries")} of ${agent(entry)}`,
  provider_key_removed: ({ provider }) => `Deleted the key of provider ${provider}`,
  provider_key_set: ({ provider }) => `Set the key of provider ${provider}`,
  provider_signed_in: ({ provider }) => `Signed in to provider ${provider}`,
  provider_url_set: ({ provider, base_url: url, status }) => (status === "removed" ? `Reset the endpoint of provider ${provider}` : `Set the endpoint of provider ${provider} to ${url}`),
  schedule_created: ({ id, kind = "schedule" }) => `Created ${named(kind, id)}`,
  schedule_deleted: ({ kind = "schedule" }) => `Deleted a ${kind}`,
  schedule_run: ({ id, kind = "schedule" }) => `Ran ${named(kind, id)} by hand`,
  schedule_updated: ({ id, kind = "schedule", enabled }) => `${enabled === false ? "Switched off" : enabled === true ? "Switched on" : "Changed"} ${named(kind, id)}`,
  session_removed: () => "Deleted a session",
  session_reset: () => "Reset a session",
  shutdown_requested: () => "Asked agentsvc to stop",
  sign_in_refused: ({ provider, reason }) => `Refused a sign-in${provider ? ` with ${provider}` : ""}${because(reason)}`,
  skill_changed: ({ skill, action }) => `Changed skill ${quoted(skill)}${action ? ` (${action})` : ""}`,
  skill_installed: ({ skill, version }) => `Installed skill ${quoted(skill)}${version ? ` ${version}` : ""}`,
  skill_uninstalled: ({ skill }) => `Removed skill ${quoted(skill)}`,
  snapshot_deleted: () => "Deleted a snapshot",
  snapshot_taken: ({ label }) => `Took a snapshot${label ? ` ${quoted(label)}` : ""}`,
  task_claimed: ({ task }) => `Claimed ${named("task", task)}`,
  task_completed: ({ task }) => `Completed ${named("task", task)}`,
  task_deleted: ({ task }) => `Deleted ${named("task", task)}`,
  task_failed: ({ task }) => `Failed ${named("task", task)}`,
  task_posted: ({ task }) => `Posted ${named("task", task)}`,
  task_retried: ({ task }) => `Retried ${named("task", task)}`,
  tool_called: ({ tool, calls, resumed, direct }) => `Called ${tool}${calls > 1 ? ` ${calls} times` : ""}${resumed ? ", again after a restart" : ""}${direct ? ", directly" : ""}`,
  tool_refused: ({ tool, reason }) => `Was refused ${tool}${because(reason)}`,
  tool_tainted: ({ tool, decision }) => `Called ${tool} after reading untrusted content${decision ? ` (${decision})` : ""}`,
  tool_unknown: ({ tool }) => `Called ${tool}; its outcome is unknown after a restart`,
  trigger_created: (found, entry) => `Created a trigger of ${agent(entry)}`,
  trigger_deleted: (found, entry) => `Deleted a trigger of ${agent(entry)}`,
  trigger_updated: ({ enabled }, entry) => `${enabled === false ? "Switched off" : enabled === true ? "Switched on" : "Changed"} a trigger of ${agent(entry)}`,
  user_created: ({ name, role }) => `Added user ${quoted(name)}${role ? ` with role ${role}` : ""}`,
  user_deleted: ({ name }) => `Deleted user ${quoted(name)}`,
  workflow_created: ({ name }) => `Created workflow ${quoted(name)}`,
  workflow_deleted: ({ workflow }) => `Deleted ${named("workflow", workflow)}`,
  workflow_run_cancelled: ({ workflow }) => `Cancelled a run of ${named("workflow", workflow)}`,
  workflow_run_started: ({ workflow }) => `Started a run of ${named("workflow", workflow)}`,
  workflow_updated: ({ workflow, name }) => `Changed ${name ? `workflow ${quoted(name)}` : named("workflow", workflow)}`,
};

/** What an entry says was done; null where this page has no sentence for it. */
export const deedOf = (entry) => DEEDS[entry.event_type]?.(details(entry), entry) ?? null;
