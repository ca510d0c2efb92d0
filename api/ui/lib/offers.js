// Names that fields of forms offer: tools, models, skills, servers, profiles.

import { get } from "./api.js";
import { seesAll } from "./me.js";
import { inLanes } from "./poll.js";

const SOURCES = {
  tools: { path: "/api/tools", read: ({ tools }) => tools },
  models: { path: "/api/models", read: ({ models }) => models },
  profiles: { path: "/api/profiles", read: ({ profiles }) => profiles },
  skills: { path: "/api/skills", read: ({ skills }) => skills.map(({ name }) => name), all: true },
  servers: { path: "/api/mcp/servers", read: ({ configured }) => configured, all: true },
};

/** `readOffers(["tools", "skills"])` gives `{ tools, skills }`; a list that this key may not see is empty. */
export async function readOffers(wanted, { signal } = {}) {
  const found = Object.fromEntries(wanted.map((name) => [name, []]));
  await inLanes(wanted.filter((name) => seesAll() || !SOURCES[name].all), wanted.length, async (name) => {
    try {
      found[name] = SOURCES[name].read(await get(SOURCES[name].path, { signal }));
    } catch (error) {
      if (![403, 404, 501].includes(error.status)) throw error;
    }
  });
  return found;
}
