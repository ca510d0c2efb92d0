// What the sixteen security systems do here, in words: the daemon says whether each holds, and a sentence that tells how it is set.

import { commandsText } from "../../lib/commands.js";

/** What people call the systems; the API has their keys. */
const NAMES = {
  capability_inheritance_validation: "Rights of spawned agents", gcra_rate_limiter: "Rate limit", health_redaction: "Public health response", loop_guard: "Loop guard",
  manifest_signing: "Signed manifests", merkle_audit_trail: "Audit log", ofp_hmac_auth: "Node authentication", path_traversal_prevention: "File path checks",
  prompt_injection_scanning: "Prompt injection scanning", secret_zeroization: "Memory wiping", security_headers: "Security headers", session_repair: "Session repair",
  ssrf_protection: "SSRF protection", subprocess_sandbox: "Command sandbox", taint_tracking: "Taint tracking", wasm_dual_metering: "WASM limits",
};

/** The states, in the order of the page: the style of the badge, and its word. */
export const STATES = {
  off: ["warn", "off"], part: ["warn", "partly on"], idle: ["", "not in use"], on: ["good", "on"], always: ["good", "always on"], absent: ["", "not in this build"],
};

const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) || text === "" ? "" : "."}`;

/** The name of a system. */
export const nameOf = (key) => NAMES[key] ?? sentence(key.replaceAll("_", " ")).slice(0, -1);

/** A value of a `[security]` key, such as "audit" of `[security] taint is "audit"`. */
const valueOf = (detail) => / is "(.*)"$/.exec(detail)?.[1] ?? "";

/** Systems whose state a key decides: what each gives is `{ state, text, key, lines, isAtOnce }`, where `lines` of config.toml turn it on. */
const SET = {
  taint_tracking(detail) {
    const about = {
      off: ["off", "Sensitive calls of turns that have read untrusted content are neither recorded nor blocked."], audit: ["part", "Records tainted calls; does not block them."],
      approve: ["on", "Tainted calls wait for an approval."], deny: ["on", "Refuses tainted calls."],
    }[valueOf(detail)];
    return about && { state: about[0], text: about[1], key: "security.taint", lines: "[security]\ntaint = \"approve\"", isAtOnce: true };
  },
  prompt_injection_scanning(detail) {
    const about = {
      off: ["off", "Untrusted text is not scanned."], mark: ["on", "Marks untrusted text that looks like instructions as data."], block: ["on", "Withholds untrusted text that looks like instructions."],
    }[valueOf(detail)];
    return about && { state: about[0], text: about[1], key: "security.prompt_injection", lines: "[security]\nprompt_injection = \"mark\"" };
  },
  manifest_signing(detail) {
    const keys = /(\d+) trusted keys/.exec(detail)?.[1];
    if (!keys) return { state: "off", text: "Agents are created without a check of signatures: no keys are trusted.", key: "security.manifest_keys", lines: "[security]\nmanifest_keys = [\"<public key>\"]\nrequire_signed_manifests = true" };
    return detail.startsWith("required") ? { state: "on", text: `Only manifests that one of ${keys} trusted keys signed become agents.`, key: "security.require_signed_manifests" }
      : { state: "part", text: `Signatures are checked where there are some (${keys} trusted keys); manifests without one are accepted.`, key: "security.require_signed_manifests", lines: "[security]\nrequire_signed_manifests = true" };
  },
  gcra_rate_limiter: (detail) => ({ state: /^\d/.test(detail) ? "on" : "off", text: sentence(detail), key: "rate_limit_per_second" }),
  ofp_hmac_auth: (detail, { hasNetwork }) => (hasNetwork === false
    ? { state: "idle", text: "This daemon accepts no other nodes, so none can connect. It is on as soon as nodes are.", key: "network_enabled" } : { state: "on", text: sentence(detail), key: "network.shared_secret" }),
  subprocess_sandbox(detail, { policy = null }) {
    const isEmpty = policy?.mode === "allowlist" && policy.allowed_commands?.length === 0;
    const key = isEmpty ? "exec_policy.allowed_commands" : "exec_policy.mode";
    if (detail.startsWith("commands are disabled")) return { state: "idle", text: "Off: agents run no commands.", key };
    if (isEmpty) return { state: "idle", text: commandsText(policy), key };
    const mode = /commands: (\w+)$/.exec(detail)?.[1];
    const allowed = commandsText(policy) || ({ allowlist: "Agents may run the commands of the allowlist.", full: "Agents may run any command." }[mode] ?? "");
    return { state: /no namespaces|no seccomp|not bounded|no Landlock/.test(detail) ? "part" : "on", text: `${sentence(detail.replace(/; commands: \w+$/, ""))} ${allowed}`.trim(), key };
  },
  ssrf_protection: (detail) => ({ state: detail.includes("except hosts") ? "part" : "on", text: sentence(detail), key: "web.fetch.ssrf_allowed_hosts" }),
};

/** One system: `{ key, name, state, text, setting, lines, isAtOnce }`; `facts` has `hasNetwork` and the `policy` of commands as far as they are known. */
export function systemOf(key, status, detail, facts) {
  const name = nameOf(key);
  if (status === "not_available") return { key, name, state: "absent", text: sentence(detail) };
  const found = SET[key]?.(detail, facts) ?? null;
  // The daemon has the last word: what does not hold is off, however it is set.
  const state = status === "inactive" ? "off" : found?.state ?? "always";
  const lines = state === "off" || state === "part" ? found?.lines ?? null : null;
  return { key, name, state, text: found?.text ?? sentence(detail), setting: found?.key ?? null, lines, isAtOnce: found?.isAtOnce ?? false };
}
