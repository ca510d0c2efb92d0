// What fields of forms offer, with what it is: tools, models, skills, servers, profiles.

import { get } from "./api.js";
import { count } from "./format.js";
import { seesAll } from "./me.js";
import { inLanes } from "./poll.js";
import { FAMILY_TITLES, familyOf, learnPolicy } from "./rights.js";

const SOURCES = {
  tools: { path: "/api/tools", read: ({ details }) => details },
  models: { path: "/api/models", read: ({ models }) => models },
  profiles: { path: "/api/profiles", read: ({ profiles }) => profiles },
  skills: { path: "/api/skills", read: ({ skills }) => skills, all: true },
  servers: { path: "/api/mcp/servers", read: ({ servers }) => servers, all: true },
};

/** `readOffers(["tools", "skills"])` gives `{ tools, skills }`; a list that this key may not see is empty. */
export async function readOffers(wanted, { signal } = {}) {
  const found = Object.fromEntries(wanted.map((name) => [name, []]));
  // What tools are for is said with what this machine allows.
  const policy = wanted.includes("tools") ? learnPolicy({ signal }) : null;
  await inLanes(wanted.filter((name) => seesAll() || !SOURCES[name].all), wanted.length, async (name) => {
    try {
      found[name] = SOURCES[name].read(await get(SOURCES[name].path, { signal }));
    } catch (error) {
      if (![403, 404, 501].includes(error.status)) throw error;
    }
  });
  await policy;
  return found;
}

/** The first sentence of a text. */
const sentence = (text) => /^.*?[.!?](?=\s|$)/s.exec(text ?? "")?.[0] ?? text ?? "";

/** What a field of tools lets choose: `pickWords` takes it. Tools of MCP servers stand below those of the daemon. */
export const toolChoice = (tools, servers, { all = true, button = "Choose tools" } = {}) => ({
  button,
  rows: [
    ...tools.map(({ name, description, requires_approval: asks }) => ({ name, text: sentence(description), group: familyOf(name).title, note: asks ? "asks first" : "" }))
      .sort((a, b) => FAMILY_TITLES.indexOf(a.group) - FAMILY_TITLES.indexOf(b.group) || a.name.localeCompare(b.name)),
    ...servers.flatMap((server) => (server.tools ?? []).map(({ name, description }) => ({ name, text: sentence(description), group: `MCP server ${server.name}`, note: "" }))),
  ],
  all: all ? { name: "*", title: "All tools", text: "Also those that come later" } : null,
});

/** The same of skills. */
export const skillChoice = (skills) => ({
  button: "Choose skills",
  rows: skills.map(({ name, description, category, enabled }) => ({ name, text: description, group: category, note: enabled ? "" : "lacks something" })),
  none: "No skills are installed. Find some in Library, Find skills.",
});

/** The same of MCP servers. */
export const serverChoice = (servers) => ({
  button: "Choose servers",
  rows: servers.map((server) => ({ name: server.name, text: server.connected ? count(server.tool_count, "tool") : server.error || "Not connected", note: server.connected ? "" : "not connected" })),
  none: "No MCP servers are set up. Add one in Connections.",
});
