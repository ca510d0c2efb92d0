// The task board: a column for each state, read by pages.

import { call, get, page } from "../../lib/api.js";
import { agentField, agentLink, nameOf, learnAll } from "../../lib/agents.js";
import { textBox, textInput } from "../../lib/controls.js";
import { ask, confirm, menuButton, showError, toast } from "../../lib/dialogs.js";
import { emptyState, field, fill, h, refill } from "../../lib/dom.js";
import { ago, number, when } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { seesAll } from "../../lib/me.js";
import { poll } from "../../lib/poll.js";

const PAGE = 50;
/** Cards that a column may have; the others are counted. */
const CARDS_MAX = 500;
const EVERY_MS = 4000;
const COLUMNS = [["pending", "Pending"], ["running", "Running"], ["completed", "Completed"], ["failed", "Failed"]];

export async function mount(root, ctx) {
  const { signal } = ctx;
  const numbers = h("div", { class: "stat-row" });
  const columns = new Map(COLUMNS.map(([state, label]) => [state, column(state, label)]));
  const board = h("div", { class: "board" }, [...columns.values()].map(({ node }) => node));
  const nothing = emptyState({
    icon: icon("check", 28), title: "The queue is empty", text: "Create a task. Its assignee, or any agent that looks for work, will claim it.",
    actions: [h("button", { class: "primary", type: "button", onclick: () => post().catch(showError) }, icon("plus", 18), "New task")],
  });
  fill(ctx.actions, h("button", { class: "primary", type: "button", onclick: () => post().catch(showError) }, icon("plus", 18), "New task"));
  fill(root, h("div", { class: "stack" }, numbers, board));

  function column(state, label) {
    const total = h("span", { class: "badge" });
    const cards = h("ul", { class: "board-cards", "aria-label": label });
    const more = h("button", { type: "button", class: "small", hidden: true, onclick: () => { made.pages += 1; again().catch(showError); } }, "Show more");
    const node = h("section", { class: `board-column board-${state}`, "aria-label": label }, h("header", { class: "bar-row" }, h("h2", { class: "grow" }, label), total), cards, more);
    const made = { state, node, cards, total, more, pages: 1, items: [], text: "" };
    return made;
  }

  /** Reads the numbers of the queue, which are of the tasks of all: others count what they see. */
  async function readNumbers() {
    if (!seesAll()) return {};
    const [status, queue] = await Promise.all([get("/api/tasks/status", { signal }), get("/api/queue/status", { signal })]);
    const { throughput = {} } = queue;
    const stat = (name, value, note) => h("div", { class: "stat" }, h("span", {}, name), h("strong", {}, value), note ? h("small", {}, note) : null);
    fill(numbers,
      stat("Pending", number(queue.depth), queue.oldest_pending_at ? `oldest ${ago(queue.oldest_pending_at)}` : "no tasks"),
      stat("Running", number(queue.running), `${number(queue.claims_expired)} claims expired`),
      stat("Completed in the last hour", number(throughput.completed_last_hour), `${number(throughput.completed_last_minute)} in the last minute`),
      stat("Failed in the last hour", number(throughput.failed_last_hour), `${number(throughput.failed_last_minute)} in the last minute`));
    return status;
  }

  async function read() {
    const status = await readNumbers();
    const shows = await Promise.all([...columns.values()].map((one) => readColumn(one, status[one.state])));
    // All at once: a task that has moved would stand in two columns for a moment, or in none.
    for (const show of shows) show();
    const isEmpty = [...columns.values()].every(({ items }) => items.length === 0);
    if (isEmpty && nothing.parentNode === null) board.after(nothing);
    else if (!isEmpty) nothing.remove();
    board.hidden = isEmpty;
  }

  /** Reads a column; what comes back shows it. `total` is how many tasks it has, where that is known. */
  async function readColumn(one, total) {
    const items = [];
    let cursor = null;
    const pages = Math.min(one.pages, CARDS_MAX / PAGE);
    for (let n = 0; n < pages; n += 1) {
      const found = await page("/api/tasks", "tasks", { status: one.state, limit: PAGE, cursor }, { signal });
      items.push(...found.items);
      cursor = found.next;
      if (!cursor) break;
    }
    return () => {
      one.total.textContent = total === undefined ? `${number(items.length)}${cursor === null ? "" : "+"}` : number(total);
      one.more.hidden = cursor === null || pages >= CARDS_MAX / PAGE;
      const text = JSON.stringify(items);
      // Nothing changed: nothing is built, and what has the focus keeps it.
      if (text === one.text) return;
      one.items = items;
      one.text = text;
      draw(one);
      learnAll(items.map((item) => item.claimed_by), () => draw(one), { signal });
    };
  }

  /** Shows what a column has; not while a menu of it is open, which would be gone: the next read does then. */
  function draw(one) {
    if (one.cards.querySelector(".menu:popover-open")) {
      one.text = "";
      return;
    }
    refill(one.cards, one.items.map(card), one.items.length === 0 ? h("li", { class: "board-none" }, "None") : null);
  }

  function card(task) {
    const who = task.assignee || "Any agent";
    return h("li", { class: "board-card" },
      h("div", { class: "bar-row tight" }, h("button", { type: "button", class: "link-button grow", onclick: () => details(task) }, task.title), menuButton({ label: `More for ${task.title}`, class: "quiet small only-icon", items: () => acts(task) })),
      task.description ? h("p", { class: "board-about" }, task.description) : null,
      task.error ? h("p", { class: "board-about danger-text" }, task.error) : null,
      h("footer", { class: "bar-row tight faint" }, icon("user", 14), h("span", { class: "grow cut" }, task.claimed_by ? agentLink(task.claimed_by) : who), task.attempts > 1 ? h("span", { class: "badge warn" }, `attempt ${task.attempts}`) : null, h("time", { datetime: task.updated_at, title: when(task.updated_at) }, ago(task.updated_at))));
  }

  function acts(task) {
    const at = (rest, body) => run(`/api/tasks/${task.id}/${rest}`, body);
    return [
      ...(task.status === "pending" ? [{ label: "Assign to an agent", icon: "user", run: () => claim(task) }] : []),
      ...(task.status === "running" ? [
        { label: "Mark as completed", icon: "check", run: () => finish(task, "complete", "result", "Result") },
        { label: "Mark as failed", icon: "close", run: () => finish(task, "fail", "error", "Error") },
      ] : []),
      ...(task.status === "failed" ? [{ label: "Try again", icon: "retry", run: () => at("retry", {}) }] : []),
      { label: task.status === "pending" || task.status === "running" ? "Cancel" : "Remove", icon: "trash", danger: true, run: () => remove(task) },
    ];
  }

  async function run(path, body) {
    await call("POST", path, body);
    toast("Done");
    await again();
  }

  async function claim(task) {
    const agent = agentField("Agent");
    if (await ask({ title: "Assign this task to an agent", action: "Assign", body: [h("p", { class: "dim" }, task.title), agent], fields: { agent_id: agent }, submit: async () => call("POST", `/api/tasks/${task.id}/claim`, { agent_id: await agent.read() }) })) await again();
  }

  async function finish(task, word, key, label) {
    const text = field(label, textBox("", 4));
    if (await ask({ title: label, action: "Save", body: [h("p", { class: "dim" }, task.title), text], fields: { [key]: text }, submit: () => call("POST", `/api/tasks/${task.id}/${word}`, { [key]: text.control.value }) })) await again();
  }

  async function remove(task) {
    const isOpen = task.status === "pending" || task.status === "running";
    const text = isOpen ? `“${task.title}” is removed from the queue. An agent working on it will get an error.` : `“${task.title}” is deleted from the list.`;
    if (await confirm({ title: isOpen ? "Cancel this task?" : "Remove this task?", text, action: isOpen ? "Cancel the task" : "Remove", run: () => call("DELETE", `/api/tasks/${task.id}`) })) await again();
  }

  function details(task) {
    const rows = [["Status", task.status], ["Assignee", task.assignee || "Any agent"], ["Created by", task.posted_by && nameOf(task.posted_by)], ["Claimed by", task.claimed_by && nameOf(task.claimed_by)], ["Claimed", task.claimed_at && when(task.claimed_at)], ["Attempts", task.attempts], ["Created", when(task.created_at)], ["Ended", task.ended_at && when(task.ended_at)]];
    const text = (name, value) => (value ? h("div", { class: "field" }, h("strong", {}, name), h("pre", { class: "code-box" }, value)) : null);
    return ask({
      title: task.title, action: "Close", cancel: null, wide: true,
      body: [h("dl", { class: "pairs" }, rows.filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))])), text("Description", task.description), text("Result", task.result), text("Error", task.error)],
    });
  }

  async function post() {
    const title = field("Title", textInput("", { required: true }));
    const about = field("Description", textBox("", 5));
    const assignee = agentField("Assignee", { optional: true, hint: "Without an assignee, any agent can claim it." });
    const made = await ask({
      title: "New task", action: "Create", fields: { title, description: about, assignee }, body: [title, about, assignee],
      // An agent that does not live yet may be named: the task waits for it.
      submit: () => call("POST", "/api/tasks", { title: title.control.value.trim(), description: about.control.value, ...(assignee.control.value.trim() ? { assignee: assignee.control.value.trim() } : {}) }),
    });
    if (!made) return;
    toast("Created");
    await again();
  }

  await read();
  const again = poll(read, EVERY_MS, { signal, isRead: true });
  ctx.key("n", "New task", () => post().catch(showError));
  ctx.onNew(() => post().catch(showError));
  /** One that the address names is shown. */
  const showNamed = async (_, query) => {
    if (!query.has("task")) return;
    const task = await get(`/api/tasks/${encodeURIComponent(query.get("task"))}`, { signal });
    ctx.go(["automation", "tasks"], {}, { replace: true });
    await details(task);
  };
  ctx.onRoute((path, query) => showNamed(path, query).catch(showError));
  showNamed([], ctx.query).catch(showError);
}
