// One agent: what it is and does, its settings, its runs, and a chat beside them to try changes in.

import { learn } from "../lib/agents.js";
import { showError } from "../lib/dialogs.js";
import { fill, h, useStyles } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { allowed, can } from "../lib/me.js";
import { mountTabs } from "../lib/tabs.js";
import { avatar } from "./chat/side.js";
import { Trial } from "./agent/trial.js";

export const title = "Agent";

const TABS = [
  { name: "overview", label: "Overview", load: () => import("./agent/overview.js") },
  { name: "settings", label: "Settings", load: () => import("./agent/settings.js") },
  { name: "automation", label: "Automation", scope: "write", load: () => import("./agent/automation.js") },
  { name: "files", label: "Files", load: () => import("./agent/files.js") },
  { name: "runs", label: "Runs", load: () => import("./agent/runs.js") },
];

/** Opens an agent: `#/agent/<id>`, `#/agent/<id>/settings`, `#/agent/<id>/runs/<turn>`. */
export async function mount(root, ctx) {
  await Promise.all([
    useStyles(new URL("../styles/parts.css", import.meta.url)), useStyles(new URL("../styles/chat.css", import.meta.url)), useStyles(new URL("../styles/agent.css", import.meta.url)),
  ]);
  let open = null;

  async function show(path, query) {
    const [id] = path;
    if (!id) return ctx.go(["chat"], {}, { replace: true });
    if (open?.id === id) {
      for (const run of open.routes) run(path, query);
      return undefined;
    }
    open?.life.abort();
    const life = new AbortController();
    const mine = { id, life, routes: [] };
    open = mine;
    ctx.signal.addEventListener("abort", () => life.abort(), { signal: life.signal });
    const agent = await ctx.api.get(`/api/agents/${encodeURIComponent(id)}`, { signal: life.signal });
    if (open === mine) build(mine, agent, path, query);
    return undefined;
  }

  function build(mine, agent, path, query) {
    learn(agent.id, agent.name);
    const name = h("span", {}, agent.name);
    const state = h("span", { class: "badge" });
    const frame = h("div", { class: "agent-frame" });
    const inner = Object.assign(Object.create(ctx), {
      signal: mine.life.signal, path, query, agent, onRoute: (run) => mine.routes.push(run),
      setTitle: (text) => ctx.setTitle(`${text === title ? "" : `${text.replace(` · ${title}`, "")} · `}${inner.agent.name}`),
      /** Another state of the agent: after a change of its settings. */
      changed: (fresh) => {
        inner.agent = fresh;
        learn(fresh.id, fresh.name);
        name.textContent = fresh.name;
        state.className = `badge ${fresh.state === "Running" ? "good" : "warn"}`;
        state.textContent = fresh.state.toLowerCase();
        trial?.agentChanged();
      },
    });
    const trial = can("chat") ? new Trial(inner, () => { frame.classList.remove("trying"); tryButton?.focus(); }) : null;
    const tryButton = trial ? h("button", { type: "button", class: "try-button", onclick: () => { frame.classList.add("trying"); trial.input.focus(); } }, icon("chat", 18), "Try it") : null;
    const place = h("div", { class: "agent-main" });
    fill(frame, place, trial?.node);
    fill(root, frame);
    // The chat stands beside what it tries; a trace needs the width.
    const arrange = (to) => {
      frame.classList.toggle("alone", to[1] === "runs");
      // A run has its own heading, which is its message.
      frame.classList.toggle("in-run", to[1] === "runs" && Boolean(to[2]));
    };
    mine.routes.push(arrange);
    arrange(path);
    mountTabs(place, inner, { name: "agent", title, tabs: allowed(TABS), base: [agent.id], lead: avatar(agent.name), heading: [name, " ", state] });
    place.querySelector(".page-head").append(tryButton ?? "");
    inner.changed(agent);
  }

  ctx.onRoute((path, query) => show(path, query).catch(showError));
  await show(ctx.path, ctx.query);
}
