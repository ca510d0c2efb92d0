// The form of an MCP server that is described by hand, and the change of one that is there.

import { call, get } from "../../lib/api.js";
import { faultAt } from "../../lib/checks.js";
import { choice, numberInput, numberOf, textBox, textInput, toggle } from "../../lib/controls.js";
import { ask } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";
import { credentialFields } from "./catalog.js";
import { valuesField } from "./values.js";

const KINDS = [
  ["stdio", "Program on this machine"],
  ["http", "HTTP (streamable)"],
  ["sse", "HTTP with server-sent events (older servers)"],
  ["http_compat", "Plain HTTP API"],
];
const TIMEOUT_SECS = 30;
const EXAMPLE = '[{ "name": "forecast", "description": "…", "path": "/forecast/{city}", "method": "get" }]';

/** Arguments as lines; one that has a line break itself is shown as a JSON string. */
const linesOf = (args) => (args ?? []).map((arg) => (/[\n"]/.test(arg) || arg.trim() !== arg || arg === "" ? JSON.stringify(arg) : arg)).join("\n");

/** The lines as arguments. */
function argsOf(text) {
  return text.split("\n").filter((line) => line.trim() !== "").map((line) => {
    if (!line.trim().startsWith('"')) return line.trim();
    try {
      const read = JSON.parse(line);
      return typeof read === "string" ? read : line.trim();
    } catch {
      return line.trim();
    }
  });
}

/** Asks for a server that is described by hand, or for changes of `server`; gives the reply, or null when it was left. A new one begins as `draft`, with the keys of a server. */
export function editServer(server, draft = null) {
  return server?.template_id ? editInstalled(server) : editDescribed(server, draft);
}

function editDescribed(server, draft) {
  const from = server ?? draft;
  const before = from?.transport ?? { type: "stdio" };
  const name = field("Name", textInput(from?.name, { class: "code", spellcheck: "false", readonly: server !== null, placeholder: "docs" }), { hint: server ? "The name cannot be changed." : "Letters, digits, - and _. It becomes part of the tool names: mcp_docs_search." });
  const kind = field("Transport", choice(KINDS, before.type));
  const command = field("Command", textInput(before.command, { class: "code", spellcheck: "false", placeholder: "npx" }), { hint: "A name or an absolute path. Starts only if [exec_policy] mode is \"full\"." });
  const args = field("Arguments", textBox(linesOf(before.args), 3, { class: "code", spellcheck: "false", placeholder: "-y\n@modelcontextprotocol/server-filesystem\n/srv/docs" }), { hint: "One per line." });
  const url = field("URL", textInput(before.url ?? before.base_url, { type: "url", class: "code", spellcheck: "false", placeholder: "https://mcp.example.com/mcp" }), { hint: "Hosts on private networks must be in [web.fetch] ssrf_allowed_hosts." });
  const tools = field("Tools", textBox(before.tools ? JSON.stringify(before.tools, null, 2) : "", 6, { class: "code", spellcheck: "false", placeholder: EXAMPLE }), { hint: "A JSON list: name, description, path, method, request_mode, response_mode, input_schema." });
  const env = valuesField("Environment variables", { known: server?.env ?? [], add: "Add a variable", hint: "Values are encrypted and never shown again." });
  const headers = valuesField("Headers", { known: server?.headers ?? [], add: "Add a header", placeholder: "Authorization", hint: "Sent with every request. Values are encrypted and never shown again." });
  const oauth = oauthPart(server);
  const timeout = field("Timeout", numberInput(server?.timeout_secs ?? TIMEOUT_SECS, { min: 1, max: 600 }), { hint: "Seconds per call, 1 to 600." });
  const network = toggle("The program can use the network", server?.network ?? false);
  const arrange = () => {
    const isProgram = kind.control.value === "stdio";
    for (const part of [command, args, env, network]) part.hidden = !isProgram;
    for (const part of [url, headers]) part.hidden = isProgram;
    oauth.node.hidden = !["http", "sse"].includes(kind.control.value);
    tools.hidden = kind.control.value !== "http_compat";
    url.querySelector("label").textContent = tools.hidden ? "URL" : "Base URL";
  };
  kind.control.addEventListener("change", arrange);
  arrange();

  const transport = () => {
    const type = kind.control.value;
    if (type !== "stdio" && url.control.value.trim().endsWith("?***")) throw faultAt(url, "Enter the whole address: the part behind the question mark is hidden.");
    if (type === "stdio") return { type, command: command.control.value.trim(), args: argsOf(args.control.value) };
    if (type !== "http_compat") return { type, url: url.control.value.trim() };
    return { type, base_url: url.control.value.trim(), tools: toolsOf(tools) };
  };
  const described = () => JSON.stringify([kind, command, args, url, tools].map((part) => part.control.value));
  const was = described();

  return ask({
    title: server ? `Edit ${server.name}` : "Add an MCP server", wide: true, action: server ? "Save" : "Add",
    // The daemon names the transport as a whole: what is shown of it gets the fault.
    fields: { name, get transport() { return kind.control.value === "stdio" ? command : url; }, env, headers, oauth: oauth.authUrl, timeout_secs: timeout },
    body: [h("div", { class: "form-row" }, name, kind), command, args, url, tools, env, headers, oauth.node, h("div", { class: "form-row" }, timeout, h("div", { class: "switch-place" }, network))],
    submit: async () => {
      if (!server && name.control.value.trim() === "") throw faultAt(name, "Enter a name.");
      const isProgram = kind.control.value === "stdio";
      const body = { timeout_secs: numberOf(timeout.control) ?? TIMEOUT_SECS };
      if (isProgram) body.network = network.box.checked;
      body[isProgram ? "env" : "headers"] = (isProgram ? env : headers).read();
      if (!oauth.node.hidden) body.oauth = oauth.read();
      // What was not changed is not sent: the query of an address is hidden here.
      if (!server || described() !== was) body.transport = transport();
      if (server) return call("PUT", pathOf(server.id), body);
      return call("POST", "/api/mcp/servers", { name: name.control.value.trim(), ...body });
    },
  });
}

/** The settings of a sign-in that a server does not give itself: `read()` gives them, null to remove them, or undefined for no change. */
function oauthPart(server) {
  const text = (label, hint, props) => field(label, textInput("", { class: "code", spellcheck: "false", ...props }), { hint });
  const clientId = text("Client id", "Leave empty if the server registers clients itself.");
  const scopes = text("Scopes", "Separated by spaces.", { placeholder: "read write" });
  const authUrl = text("Authorization URL", "Where users sign in.", { type: "url" });
  const tokenUrl = text("Token URL", "Where tokens are issued.", { type: "url" });
  const remove = toggle("Remove the stored settings", false);
  const hasStored = server?.has_oauth === true;
  const node = h("details", { class: "oauth-part" }, h("summary", {}, "Sign-in settings (OAuth)"),
    h("div", { class: "stack" }, h("p", { class: "hint" }, hasStored ? "Settings are stored. What you enter here replaces them." : "Most servers give these themselves: leave them empty."),
      h("div", { class: "form-row" }, clientId, scopes), h("div", { class: "form-row" }, authUrl, tokenUrl), hasStored ? remove : null));
  const value = (part) => part.control.value.trim() || undefined;
  const read = () => {
    if (remove.box.checked) return null;
    const given = { client_id: value(clientId), auth_url: value(authUrl), token_url: value(tokenUrl), scopes: value(scopes)?.split(/\s+/) };
    return Object.values(given).some((one) => one !== undefined) ? given : undefined;
  };
  // A fault must not be hidden.
  const fault = authUrl.fault;
  authUrl.fault = (said) => {
    fault(said);
    if (said) node.open = true;
  };
  return { node, authUrl, read };
}

/** The path of a server's routes. */
export const pathOf = (id) => `/api/mcp/servers/${encodeURIComponent(id)}`;

function toolsOf(part) {
  try {
    const tools = JSON.parse(part.control.value.trim() || "[]");
    if (Array.isArray(tools)) return tools;
  } catch {
    // Told below.
  }
  throw faultAt(part, "Enter a JSON list of tools.");
}

/** A server from the catalog has credentials and a timeout; how it is reached is in its entry. */
async function editInstalled(server) {
  const entry = await get(`/api/mcp/catalog/${encodeURIComponent(server.template_id)}`);
  const credentials = credentialFields(entry, { known: server.env ?? [] });
  const timeout = field("Timeout", numberInput(server.timeout_secs, { min: 1, max: 600 }), { hint: "Seconds per call, 1 to 600." });
  return ask({
    title: `Edit ${server.name}`, wide: true, fields: { credentials: credentials.first ?? timeout, env: credentials.first ?? timeout, timeout_secs: timeout },
    body: [h("p", { class: "dim" }, `Installed from the catalog entry ${server.template_id}.`), credentials.nodes, timeout],
    submit: () => call("PUT", pathOf(server.id), { credentials: credentials.read(), timeout_secs: numberOf(timeout.control) ?? TIMEOUT_SECS }),
  });
}
