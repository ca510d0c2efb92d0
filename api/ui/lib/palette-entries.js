// What the palette offers: actions, pages and their parts, and what the daemon finds beside agents and messages.

import { PAGES } from "../pages.js";
import { Failure, get } from "./api.js";
import { useStyles } from "./dom.js";
import { allowed, seesAll } from "./me.js";
import { INSIDE, openPalette, rank } from "./palette.js";
import { inLanes } from "./poll.js";
import { queryRows } from "./query.js";

/** Rows of each kind. */
const FOUND_MAX = 4;
/** Queries at once: the daemon runs four. */
const LANES = 2;

/** Something new, from anywhere. */
const NEW = [
  { label: "New agent", scope: "write", path: ["chat"], query: { new: "agent" } },
  { label: "New schedule", scope: "write", path: ["automation"], query: { new: "1" }, isFirst: false },
  { label: "New trigger", scope: "write", path: ["automation", "triggers"], query: { new: "1" }, isFirst: false },
  { label: "New workflow", scope: "write", all: true, path: ["automation", "workflows", "new"], isFirst: false },
  { label: "New task", scope: "write", path: ["automation", "tasks"], query: { new: "1" }, isFirst: false },
  { label: "Add a provider", hint: "set an API key", icon: "key", scope: "admin", all: true, path: ["settings"], isFirst: false },
  { label: "Set the budget", icon: "money", scope: "admin", all: true, path: ["money"], isFirst: false },
  { label: "Add a channel", icon: "send", scope: "admin", all: true, path: ["connections", "channels"], isFirst: false },
];

/** The parts of all pages, read once. */
let parts = null;
function partsOf(go) {
  parts ??= Promise.all(allowed(PAGES).filter(({ hasParts }) => hasParts).map(async (page) => {
    const { TABS } = await page.load();
    return allowed(TABS).map((tab, at) => ({ group: page.label, label: tab.label, hint: tab.text, icon: page.icon, isFirst: false, run: () => go(at === 0 ? [page.name] : [page.name, tab.name]) }));
  })).then((lists) => lists.flat()).catch((error) => {
    parts = null;
    throw error;
  });
  return parts;
}

/** What is found by its name: the query, and how a row is shown and opened. */
const KINDS = [
  { scope: "write", q: (text) => `cron_jobs where name contains ${text} or rule contains ${text} select id, name, rule, agent.name`, row: (row) => ({ group: "Schedules", label: row.name, icon: "automation", path: ["automation"], query: { filter: row.name } }) },
  { scope: "write", q: (text) => `schedules where name contains ${text} or rule contains ${text} or agent.name contains ${text} select id, name, rule, agent.name`, row: (row) => ({ group: "Schedules", label: row.name || row.rule, icon: "automation", path: ["automation"], query: { filter: row.name || row["agent.name"] } }) },
  { scope: "write", q: (text) => `triggers where pattern contains ${text} or agent.name contains ${text} select id, pattern, agent.name`, row: (row, { patternText }) => ({ group: "Triggers", label: patternText(JSON.parse(row.pattern)), icon: "flag", path: ["automation", "triggers"], query: { filter: row["agent.name"] } }) },
  { scope: "write", q: (text) => `workflows where name contains ${text} or description contains ${text} select id, name`, row: (row) => ({ group: "Workflows", label: row.name, icon: "branch", path: ["automation", "workflows", row.id] }) },
  { scope: "write", q: (text) => `tasks where title contains ${text} select id, title, state sort by created_at desc`, row: (row) => ({ group: "Tasks", label: row.title, hint: row.state, icon: "check", path: ["automation", "tasks"], query: { task: row.id } }) },
];

/** The models of the catalog, read once. */
let models = null;
async function findModels(typed, go) {
  models ??= get("/api/models").catch((error) => {
    models = null;
    throw error;
  });
  const words = typed.toLowerCase().split(/\s+/);
  // At the beginning of a word: the middle of one would find too much.
  const hasAll = (text) => words.every((word) => (rank(text, word) ?? INSIDE) < INSIDE);
  const found = (await models).models.filter(({ id, display_name: name, provider }) => hasAll(`${id} ${name} ${provider}`));
  return found.slice(0, FOUND_MAX).map((model) => ({ group: "Models", label: model.display_name || model.id, hint: model.provider, icon: "world", run: () => go(["settings", "models"], { filter: model.id }) }));
}

/** What a source finds; one that is refused, busy or fails leaves the others as they are. */
async function orNone(found) {
  try {
    return await found;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (!(error instanceof Failure)) console.error(error);
    return [];
  }
}

/** Asks the daemon for what has the words. */
async function find(typed, signal, go) {
  if (!seesAll()) return [];
  const words = await import("../pages/automation/trigger-form.js");
  const found = new Map();
  await inLanes(allowed(KINDS), LANES, async (kind) => {
    found.set(kind, await orNone(queryRows(`${kind.q(JSON.stringify(typed))} limit ${FOUND_MAX}`, { signal }).then((rows) => rows.map((row) => {
      const { path, query, ...entry } = kind.row(row, words);
      return { hint: row["agent.name"] ?? "", ...entry, run: () => go(path, query) };
    }))));
  });
  return [...KINDS.flatMap((kind) => found.get(kind) ?? []), ...(await orNone(findModels(typed, go)))];
}

/** Opens the palette; `pages` are those of the navigation, `actions` those of the shell. */
export async function openWith({ go, pages, actions }) {
  const [own] = await Promise.all([orNone(partsOf(go)), useStyles(new URL("../styles/palette.css", import.meta.url))]);
  const inner = allowed(PAGES).filter(({ isInner, key }) => isInner && key);
  const made = allowed(NEW).map(({ path, query, ...entry }) => ({ icon: "plus", ...entry, run: () => go(path, query) }));
  const all = [
    ...[...made, ...allowed(actions)].map((action) => ({ group: "Actions", ...action })),
    ...[...pages, ...inner].map((page) => ({ group: "Pages", label: page.label, hint: page.key ? `g ${page.key}` : "", icon: page.icon, run: () => go([page.name]) })),
    ...own,
  ];
  openPalette({ entries: () => all, find: (typed, signal) => find(typed, signal, go), go });
}
