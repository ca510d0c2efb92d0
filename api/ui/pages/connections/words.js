// What is said of an MCP server: its state, how it is reached, and what to do when it is not connected.

import { h } from "../../lib/dom.js";

/** Reasons as the daemon gives them, and what to do. The first that matches counts. */
const ADVICE = [
  [/needs a value for/, "Edit the server and enter the value."],
  [/cannot be decrypted|send it again/, "Edit the server and enter the value again."],
  [/\[exec_policy\] mode/, "Set mode = \"full\" under [exec_policy] in config.toml, or install the server from the catalog. Then reconnect."],
  [/asks for a sign-in|status 40[13]/, "Edit the server and add a header with a token, such as Authorization."],
  [/MCP catalog/, "Restore or correct the file in mcp/catalog, then reload."],
  [/redirect/, "Edit the server and enter the address it redirects to."],
  [/ssrf_allowed_hosts|private/, "Add the host to ssrf_allowed_hosts under [web.fetch] in config.toml."],
  [/version/, "Update the server. The daemon supports protocol versions from 2024-11-05 on."],
  [/message of more than|bytes of memory/, "Ask the server's author to send smaller messages."],
];
const STDIO_ADVICE = "Read its error output below, correct the cause, then reconnect.";
const URL_ADVICE = "Check the address and that the server is running, then reconnect.";

/** What a person can do about `reason`, for a server that is a program or not. */
export function adviceFor(reason, isProgram) {
  return ADVICE.find(([pattern]) => pattern.test(reason))?.[1] ?? (isProgram ? STDIO_ADVICE : URL_ADVICE);
}

/** The words of the daemon as a sentence. */
export const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}` : "");

/** The state of a server as a badge. `health` is its entry of `GET /api/mcp/health`. */
export function stateBadge(server, health) {
  const status = health?.status ?? server.status;
  const isWanted = status === "disconnected" && ["needs_auth", "pending_auth", "expired"].includes(server.auth?.state);
  const [style, word] = isWanted ? ["warn", "sign in"] : {
    connected: ["good", "connected"],
    connecting: ["accent", "connecting"],
    disconnected: health?.reconnecting ? ["warn", "reconnecting"] : ["bad", "disconnected"],
  }[status] ?? ["", status];
  return h("span", { class: `badge ${style}` }, word);
}

const KINDS = { stdio: "Program", http: "HTTP", sse: "HTTP with server-sent events", http_compat: "Plain HTTP" };

/** How a server is reached: `stdio` is "Program". */
export const kindText = (transport) => KINDS[transport?.type] ?? "Unknown";

/** Its command line or address. */
export function targetText(transport) {
  if (!transport) return "Its catalog entry is missing.";
  return transport.url ?? transport.base_url ?? commandText(transport);
}

/** A command line to be read: arguments with blanks are quoted, long ones are cut. */
export function commandText({ command = "", args = [] }) {
  const shown = (args ?? []).map((arg) => (arg.length > 120 ? `${arg.slice(0, 120)}…` : arg)).map((arg) => (/\s/.test(arg) || arg === "" ? JSON.stringify(arg) : arg));
  return [command, ...shown].join(" ");
}

/** A link out of this page. */
export const elsewhere = (href, text) => h("a", { href, target: "_blank", rel: "noopener noreferrer" }, text);
