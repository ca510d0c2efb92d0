// What the policy of this machine lets agents run.

/** Names that are said one by one. */
const NAMED_MAX = 6;

/** `[exec_policy]` in words; `GET /api/config` shows it. "" where it is not known. */
export function commandsText(policy) {
  if (!policy?.mode) return "";
  if (policy.mode === "full") return "Agents may run any command.";
  if (policy.mode === "deny") return "Off: agents run no commands.";
  const names = policy.allowed_commands ?? [];
  if (names.length === 0) return "Off: no commands are on the allowlist.";
  return `Agents may run ${names.slice(0, NAMED_MAX).join(", ")}${names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : ""}.`;
}
