// Agents of other systems, over A2A: how this daemon is offered to them, and those that its agents can send tasks to.

import { call, get, page } from "../../lib/api.js";
import { faultAt } from "../../lib/checks.js";
import { copyText } from "../../lib/code.js";
import { textBox, textInput } from "../../lib/controls.js";
import { ask, confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { field, fill, h, refill } from "../../lib/dom.js";
import { ago, count, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { turnOn } from "../../lib/off.js";
import { poll } from "../../lib/poll.js";
import { sentence } from "./words.js";

const EVERY_MS = 5000;
const CARD = "/.well-known/agent-card.json";
/** Skills of an agent that are named. */
const SKILLS_SHOWN = 8;
/** Agents that are shown before the rest is asked for. */
const PAGE = 60;
/** Sent tasks that are shown. */
const TASKS_MAX = 20;
/** Items of a page of a list. */
const READ = 200;
/** Characters of an answer that are shown at once. */
const ANSWER_MAX = 600;
const TONES = { completed: "good", failed: "bad", rejected: "bad", unknown: "warn", cancelled: "", working: "accent", submitted: "accent", "input-required": "warn", "auth-required": "warn" };
const ENDED = new Set(["completed", "failed", "rejected", "cancelled", "unknown"]);

const stateOf = (task) => task.status ?? "submitted";

/** The text of an answer. */
const textOf = (result) => (result?.parts ?? []).map((part) => part.text ?? "").filter(Boolean).join("\n");

export async function mount(root, ctx) {
  const { signal } = ctx;
  let agents = null;
  let shown = PAGE;
  let drawn = "";
  const tasks = new Map();
  const own = h("section", { class: "card stack", "aria-label": "This daemon" });
  const list = h("ul", { class: "connection-cards", "aria-label": "External agents" });
  const more = h("button", { type: "button", hidden: true, onclick: () => { shown += PAGE; show(); } }, "Show more");
  const sent = h("ul", { class: "tool-list", "aria-label": "Sent tasks" });
  const earlier = h("button", { type: "button", class: "small", onclick: () => readTasks().catch(showError) }, "Show earlier tasks");
  const sentCard = h("section", { class: "card stack", hidden: true, "aria-label": "Tasks for external agents" }, h("div", { class: "bar-row" }, h("h2", { class: "grow" }, "Sent tasks"), earlier), h("p", { class: "hint" }, "Answers come from other systems. They are shown as text."), sent);
  const counts = h("span", { class: "dim" });
  const discoverButton = h("button", { class: "primary", type: "button", onclick: () => discover().catch(showError) }, icon("plus", 18), "Discover an agent");
  const body = h("div", { class: "stack" }, own, h("div", { class: "bar-row" }, h("h2", {}, "Known agents"), counts), list, more, sentCard);

  /** How this daemon is offered: read once, for it changes with the configuration. */
  async function readOwn() {
    const { a2a } = await get("/api/config", { signal });
    const isOn = a2a?.enabled === true;
    const card = isOn ? await get(CARD, { signal }) : null;
    // The card is beside the place where requests go, also behind a proxy.
    const cardUrl = card ? card.url.replace(/\/[^/]*$/, CARD) : "";
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
        h("p", {}, "Agents that you offer can be used without a key; docs/a2a.md describes the limits."),
        turnOn({ key: "a2a.enabled", lines: "[a2a]\nenabled = true\nagents = [\"assistant\"]", again: readOwn }),
      ]);
  }

  const namesOf = (skills) => {
    const names = skills.slice(0, SKILLS_SHOWN).map((skill) => skill.name || skill.id);
    const rest = skills.length - names.length;
    return names.length === 0 ? "none" : `${names.join(", ")}${rest > 0 ? ` and ${count(rest, "other")}` : ""}`;
  };

  /** All items of a list; `keep(items)` may leave some out after each page. */
  async function readPages(path, name, keep = (items) => items) {
    let items = [];
    let next = null;
    do {
      const part = await page(path, name, { limit: READ, cursor: next }, { signal });
      items = keep([...items, ...part.items]);
      next = part.next;
    } while (next);
    return items;
  }

  /** Reads which tasks agents and clients have sent; the newest come last. */
  async function readTasks() {
    for (const task of await readPages("/api/a2a/tasks", "tasks", (items) => items.slice(-TASKS_MAX))) keep(task);
    earlier.hidden = true;
    showTasks();
  }

  /** Keeps what is known of a task; of too many, the oldest go. */
  function keep(task) {
    const id = task.task_id ?? task.id;
    tasks.set(id, { ...tasks.get(id), ...task, id });
    const ids = [...tasks.values()].sort((a, b) => ((a.created_at ?? "") < (b.created_at ?? "") ? -1 : 1)).map((one) => one.id);
    for (const old of ids.slice(0, -TASKS_MAX)) tasks.delete(old);
  }

  async function read() {
    try {
      agents = await readPages("/api/a2a/agents", "agents");
    } catch (error) {
      if (error.status !== 404) throw error;
      fill(ctx.actions);
      counts.textContent = "";
      refill(list, h("li", { class: "dim" }, "This daemon cannot send tasks to agents of other systems: it has no routes for them. Update it to use this part."));
      return false;
    }
    if (can("admin") && discoverButton.parentNode !== ctx.actions) fill(ctx.actions, discoverButton);
    show();
    await follow();
    return true;
  }

  function show() {
    counts.textContent = agents.length > 0 ? number(agents.length) : "";
    more.hidden = agents.length <= shown;
    sentCard.hidden = agents.length === 0 && tasks.size === 0;
    const text = JSON.stringify([agents, shown]);
    // An open menu stays; what is new is shown when it is closed.
    if (text === drawn || list.querySelector(":popover-open")) return;
    drawn = text;
    refill(list, agents.slice(0, shown).map(card), agents.length === 0 ? h("li", { class: "dim" }, "No external agents yet. Discover one by the address of its daemon or its agent card.") : null);
  }

  // What an agent says of itself is text of others: it stays text.
  function card(agent) {
    const skills = agent.skills ?? [];
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, icon("agents", 20), h("h3", { class: "grow cut" }, agent.name), agent.version ? h("span", { class: "badge" }, agent.version) : null),
      h("p", { class: "mono faint cut" }, agent.url),
      agent.header ? h("p", { class: "hint" }, `Requests carry the header ${agent.header}.`) : null,
      agent.card_changed_at ? h("p", { class: "hint" }, `Its card changed ${ago(agent.card_changed_at)}.`) : null,
      agent.description ? h("p", { class: "server-text clamp" }, agent.description) : null,
      skills.length > 0 ? h("p", { class: "hint clamp" }, `Skills: ${namesOf(skills)}`) : null,
      can("admin") && h("div", { class: "buttons" },
        h("button", { type: "button", data: { key: `send ${agent.id}` }, "aria-label": `Send a task to ${agent.name}`, onclick: () => send(agent).catch(showError) }, icon("send", 16), "Send a task"),
        h("span", { class: "grow" }),
        menuButton({ label: `More for ${agent.name}`, key: `more ${agent.id}`, items: () => [
          { label: "Read its card again", icon: "retry", run: () => refresh(agent) },
          { label: "Remove", icon: "trash", danger: true, run: () => remove(agent) },
        ] })));
  }

  async function discover() {
    const url = field("Address", textInput("", { type: "url", class: "code", spellcheck: "false", placeholder: "https://agents.example.com" }), { hint: "The daemon reads the agent card below this address. Hosts on private networks must be in [web.fetch] ssrf_allowed_hosts." });
    const name = field("Name", textInput("", { placeholder: "as its card says" }), { hint: "How your agents call it." });
    const header = field("Header", textInput("", { class: "code", spellcheck: "false", placeholder: "Authorization" }), { hint: "If it needs a key." });
    const value = field("Value", textInput("", { type: "password", class: "code", spellcheck: "false", placeholder: "Bearer …" }), { hint: "Encrypted and never shown again. Sent to this origin only." });
    const found = await ask({
      title: "Discover an external agent", action: "Discover", fields: { url, name, headers: header },
      body: [url, name, h("div", { class: "form-row" }, header, value), h("p", { class: "hint" }, "Your agents can send tasks to it from then on.")],
      submit: () => {
        const [key, secret] = [header.control.value.trim(), value.control.value];
        if (key === "" && secret !== "") throw faultAt(header, "Enter the name of the header.");
        return call("POST", "/api/a2a/discover", { url: url.control.value.trim(), name: name.control.value.trim() || undefined, headers: key === "" ? undefined : { [key]: secret } });
      },
    });
    if (!found) return;
    toast(`Discovered ${found.name}`);
    await again();
  }

  async function refresh(agent) {
    await call("POST", "/api/a2a/discover", { url: agent.url });
    toast("Read again");
    await again();
  }

  async function remove(agent) {
    const text = "Your agents can no longer send tasks to it. Open tasks end here; it is not told.";
    if (!(await confirm({ title: `Remove ${agent.name}?`, text, action: "Remove", run: () => call("DELETE", `/api/a2a/agents/${encodeURIComponent(agent.id)}`) }))) return;
    toast("Removed");
    await again();
  }

  /** Sends a task to an agent, or goes on with `task`, which waits for more. */
  async function send(agent, task = null) {
    const message = field("Message", textBox("", 5), { hint: agent.url ? `Goes to ${agent.url}.` : "" });
    const told = await ask({
      title: task ? `Answer ${agent.name}` : `Send a task to ${agent.name}`, action: "Send", fields: { message }, body: [message],
      // The end of the task is not waited for: it is followed.
      submit: () => call("POST", "/api/a2a/send", { agent_id: agent.id, message: message.control.value, blocking: false, task_id: task?.id }),
    });
    if (!told) return;
    keep({ agent_id: agent.id, agent_name: agent.name, message: message.control.value, created_at: new Date().toISOString(), ...told });
    toast("Sent");
    showTasks();
    await again();
  }

  /** Reads the tasks that have not ended. */
  async function follow() {
    for (const task of [...tasks.values()]) {
      if (ENDED.has(stateOf(task))) continue;
      try {
        keep({ ...await get(`/api/a2a/tasks/${encodeURIComponent(task.id)}/status`, { signal }), task_id: task.id });
      } catch (error) {
        if (error.status !== 404) throw error;
        keep({ task_id: task.id, status: "unknown", error: "the daemon no longer knows this task" });
      }
    }
    showTasks();
  }

  function showTasks() {
    const newest = [...tasks.values()].sort((a, b) => ((a.created_at ?? "") < (b.created_at ?? "") ? 1 : -1));
    refill(sent, newest.map((task) => {
      const state = stateOf(task);
      const answer = textOf(task.result) || (task.error ? sentence(task.error) : "");
      const agent = agents.find((one) => one.id === task.agent_id);
      return h("li", {}, h("div", { class: "bar-row tight" }, h("strong", { class: "grow cut" }, task.agent_name), h("span", { class: `badge ${TONES[state] ?? ""}` }, state.replace("-", " ")), h("span", { class: "faint" }, ago(task.created_at))),
        h("p", { class: "dim clamp" }, task.message), answerNodes(answer),
        state === "input-required" && agent && can("admin") ? h("div", { class: "buttons" }, h("button", { type: "button", class: "small", data: { key: `answer ${task.id}` }, "aria-label": `Answer ${agent.name}`, onclick: () => send(agent, task).catch(showError) }, "Answer")) : null);
    }), tasks.size === 0 ? h("li", { class: "dim" }, "No tasks were sent from this page.") : null);
  }

  /** A long answer is cut, with the whole of it behind. */
  function answerNodes(answer) {
    if (answer.length <= ANSWER_MAX) return answer ? h("p", { class: "server-text" }, answer) : null;
    return [h("p", { class: "server-text" }, `${answer.slice(0, ANSWER_MAX)}…`), h("details", {}, h("summary", {}, "Whole answer"), h("pre", { class: "code-box tall", tabindex: "0", role: "region", "aria-label": "Whole answer" }, answer))];
  }

  await readOwn();
  let again = read;
  if (await read()) again = poll(read, EVERY_MS, { signal, isRead: true });
  fill(root, body);
}
