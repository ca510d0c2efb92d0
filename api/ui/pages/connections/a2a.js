// Agents of other systems, over A2A: how this daemon is offered to them, and those that its agents can send tasks to.

import { address, call, get } from "../../lib/api.js";
import { copyText } from "../../lib/code.js";
import { textBox, textInput } from "../../lib/controls.js";
import { ask, confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { field, fill, h, refill } from "../../lib/dom.js";
import { ago, count, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { poll } from "../../lib/poll.js";
import { sentence } from "./words.js";

const EVERY_MS = 5000;
/** Skills of an agent that are named. */
const SKILLS_SHOWN = 8;
/** Agents that are shown before the rest is asked for. */
const PAGE = 60;
/** Tasks that were sent from this page and are followed. */
const TASKS_MAX = 20;
const TONES = { completed: "good", failed: "bad", rejected: "bad", unknown: "warn", cancelled: "", working: "accent", submitted: "accent", "input-required": "warn", "auth-required": "warn" };
const ENDED = new Set(["completed", "failed", "rejected", "cancelled", "canceled", "unknown"]);

/** The state of a task, in whichever of its forms. */
const stateOf = (task) => String(task.status?.state ?? task.status ?? task.state ?? "submitted").replaceAll("_", "-");

/** The text of an answer: a text, or parts. */
function textOf(result) {
  if (typeof result === "string") return result;
  const parts = result?.parts ?? [];
  return parts.map((part) => part.text ?? (part.data === undefined ? "" : JSON.stringify(part.data))).filter(Boolean).join("\n");
}

export async function mount(root, ctx) {
  const { signal } = ctx;
  let agents = null;
  let shown = PAGE;
  const tasks = new Map();
  const own = h("section", { class: "card stack", "aria-label": "This daemon" });
  const list = h("ul", { class: "connection-cards", "aria-label": "External agents" });
  const more = h("button", { type: "button", hidden: true, onclick: () => { shown += PAGE; show(); } }, "Show more");
  const sent = h("ul", { class: "tool-list", "aria-label": "Sent tasks" });
  const sentCard = h("section", { class: "card stack", hidden: true, "aria-label": "Tasks sent from this page" }, h("h2", {}, "Sent tasks"), h("p", { class: "hint" }, "Answers come from other systems. They are shown as text."), sent);
  const counts = h("span", { class: "dim" });
  const discoverButton = h("button", { class: "primary", type: "button", onclick: () => discover().catch(showError) }, icon("plus", 18), "Discover an agent");
  const body = h("div", { class: "stack" }, own, h("div", { class: "bar-row" }, h("h2", {}, "External agents"), counts), list, more, sentCard);

  /** How this daemon is offered: read once, for it changes with the configuration. */
  async function readOwn() {
    const { a2a } = await get("/api/config", { signal });
    const isOn = a2a?.enabled === true;
    const card = isOn ? await get("/.well-known/agent-card.json", { signal }) : null;
    const cardUrl = card ? new URL("/.well-known/agent-card.json", card.url).href : address(".well-known/agent-card.json").href;
    refill(own,
      h("div", { class: "bar-row" }, h("h2", {}, "This daemon"), h("span", { class: `badge ${isOn ? "good" : ""}` }, isOn ? "on" : "off")),
      isOn ? [
        h("p", {}, `Other systems can send tasks to ${count(card.skills.length, "agent")} of this daemon, without a key. Their clients know it as “${card.name}”.`),
        h("dl", { class: "pairs" },
          h("dt", {}, "Agent card"), h("dd", { class: "bar-row tight" }, h("code", {}, cardUrl), h("button", { type: "button", class: "small", onclick: () => copyText(cardUrl).then(() => toast("Copied")).catch(showError) }, icon("copy", 16), "Copy")),
          h("dt", {}, "Requests go to"), h("dd", { class: "mono" }, card.url),
          h("dt", {}, "Offered agents"), h("dd", {}, namesOf(card.skills)),
          h("dt", {}, "Limits"), h("dd", {}, `${number(a2a.rate_per_minute)} tasks a minute per client, ${number(a2a.total_rate_per_minute)} in all; ${a2a.daily_limit_usd > 0 ? `$${a2a.daily_limit_usd} a day` : "no daily limit"}`)),
        h("p", { class: "hint" }, "Received tasks are not listed: only a client that knows the id of a task can read it. Their turns appear under World, Events."),
      ] : [
        h("p", {}, "Other systems cannot send tasks to the agents of this daemon."),
        h("p", { class: "hint" }, "To offer agents, add this to config.toml. They can then be used without a key; docs/a2a.md describes the limits."),
        h("pre", { class: "code-box" }, "[a2a]\nenabled = true\nagents = [\"assistant\"]"),
      ]);
  }

  const namesOf = (skills) => {
    const names = skills.slice(0, SKILLS_SHOWN).map((skill) => skill.name || skill.id);
    const rest = skills.length - names.length;
    return names.length === 0 ? "none" : `${names.join(", ")}${rest > 0 ? ` and ${count(rest, "other")}` : ""}`;
  };

  async function read() {
    try {
      ({ agents } = await get("/api/a2a/agents", { signal }));
    } catch (error) {
      if (error.status !== 404) throw error;
      fill(ctx.actions);
      counts.textContent = "";
      refill(list, h("li", { class: "dim" }, "This daemon cannot send tasks to agents of other systems: it has no routes for them. Update it to use this part."));
      return false;
    }
    if (discoverButton.parentNode !== ctx.actions) fill(ctx.actions, discoverButton);
    show();
    await follow();
    return true;
  }

  function show() {
    counts.textContent = agents.length > 0 ? number(agents.length) : "";
    more.hidden = agents.length <= shown;
    refill(list, agents.slice(0, shown).map(card), agents.length === 0 ? h("li", { class: "dim" }, "No external agents yet. Discover one by the address of its daemon or its agent card.") : null);
  }

  // What an agent says of itself is text of others: it stays text.
  function card(agent) {
    const skills = agent.skills ?? [];
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, icon("agents", 20), h("h3", { class: "grow cut" }, agent.name), agent.version ? h("span", { class: "badge" }, agent.version) : null),
      h("p", { class: "mono faint cut" }, agent.url),
      agent.description ? h("p", { class: "server-text clamp" }, agent.description) : null,
      skills.length > 0 ? h("p", { class: "hint clamp" }, `Skills: ${namesOf(skills)}`) : null,
      h("div", { class: "buttons" },
        h("button", { type: "button", data: { key: `send ${agent.id}` }, "aria-label": `Send a task to ${agent.name}`, onclick: () => send(agent).catch(showError) }, icon("send", 16), "Send a task"),
        h("span", { class: "grow" }),
        menuButton({ label: `More for ${agent.name}`, key: `more ${agent.id}`, items: () => [
          { label: "Read its card again", icon: "retry", run: () => refresh(agent) },
          { label: "Remove", icon: "trash", danger: true, run: () => remove(agent) },
        ] })));
  }

  async function discover() {
    const url = field("Address", textInput("", { type: "url", class: "code", spellcheck: "false", placeholder: "https://agents.example.com" }), { hint: "The daemon reads the agent card below this address. Hosts on private networks must be in [web.fetch] ssrf_allowed_hosts." });
    const done = await ask({
      title: "Discover an external agent", action: "Discover", fields: { url },
      body: [url, h("p", { class: "hint" }, "Your agents can send tasks to it from then on.")],
      submit: () => call("POST", "/api/a2a/discover", { url: url.control.value.trim() }),
    });
    if (!done) return;
    toast("Discovered");
    await again();
  }

  async function refresh(agent) {
    await call("POST", "/api/a2a/discover", { url: agent.url });
    toast("Read again");
    await again();
  }

  async function remove(agent) {
    const text = "Your agents can no longer send tasks to it. Tasks that it works on are not cancelled.";
    if (!(await confirm({ title: `Remove ${agent.name}?`, text, action: "Remove", run: () => call("DELETE", `/api/a2a/agents/${encodeURIComponent(agent.id)}`) }))) return;
    toast("Removed");
    await again();
  }

  async function send(agent) {
    const message = field("Message", textBox("", 5), { hint: `Goes to ${agent.url}.` });
    const told = await ask({
      title: `Send a task to ${agent.name}`, action: "Send", fields: { message }, body: [message],
      submit: () => call("POST", "/api/a2a/send", { agent_id: agent.id, message: message.control.value }),
    });
    if (!told) return;
    const id = told.task_id ?? told.id;
    tasks.set(id, { id, name: agent.name, message: message.control.value, at: new Date().toISOString(), ...told });
    while (tasks.size > TASKS_MAX) tasks.delete(tasks.keys().next().value);
    toast("Sent");
    showTasks();
    await again();
  }

  /** Reads the tasks that have not ended. */
  async function follow() {
    for (const task of tasks.values()) {
      if (ENDED.has(stateOf(task))) continue;
      try {
        Object.assign(task, await get(`/api/a2a/tasks/${encodeURIComponent(task.id)}/status`, { signal }), { id: task.id });
      } catch (error) {
        if (error.status !== 404) throw error;
        Object.assign(task, { status: "unknown", error: "the daemon no longer knows this task" });
      }
    }
    showTasks();
  }

  function showTasks() {
    sentCard.hidden = tasks.size === 0;
    refill(sent, [...tasks.values()].reverse().map((task) => {
      const state = stateOf(task);
      const answer = textOf(task.result) || (task.error ? sentence(String(task.error.message ?? task.error)) : "");
      return h("li", {}, h("div", { class: "bar-row tight" }, h("strong", { class: "grow cut" }, task.name), h("span", { class: `badge ${TONES[state] ?? ""}` }, state), h("span", { class: "faint" }, ago(task.at))),
        h("p", { class: "dim clamp" }, task.message), answer ? h("p", { class: "server-text" }, answer) : null);
    }));
  }

  await readOwn();
  let again = read;
  if (await read()) again = poll(read, EVERY_MS, { signal });
  fill(root, body);
}
