// Skills of the registry and of ClawHub: searching, and installing what was found.

import { Failure, call, get, withQuery } from "../../lib/api.js";
import { ask, faultText, showError } from "../../lib/dialogs.js";
import { emptyState, fill, h, refill } from "../../lib/dom.js";
import { count, short } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { can } from "../../lib/me.js";
import { tellInstalled } from "./skills.js";

const PLACES = [["marketplace", "Registry"], ["clawhub", "ClawHub"], ["clawhub-cn", "ClawHub mirror"]];

export async function mount(root, ctx) {
  const { signal } = ctx;
  let place = "marketplace";
  let results = [];
  let fault = "";
  let asked = "";
  const counts = h("p", { class: "dim", role: "status" });
  const input = h("input", { type: "search", placeholder: "What should the skill do?", "aria-label": "Search for skills" });
  const form = h("form", { class: "bar-row", onsubmit: (event) => { event.preventDefault(); find().catch(showError); } },
    h("div", { class: "search-field" }, input), h("button", { class: "primary", type: "submit" }, icon("search", 18), "Search"));
  const places = h("div", { class: "segments", role: "group", "aria-label": "Where to search" }, PLACES.map(([name, label]) => h("button", { type: "button", data: { place: name }, "aria-pressed": String(name === place), onclick: () => choose(name) }, label)));
  const list = h("ul", { class: "connection-cards", "aria-label": "Results" });
  const empty = h("div", {});
  fill(root, h("div", { class: "stack" }, form, h("div", { class: "bar-row" }, places, counts), list, empty));

  function choose(name) {
    place = name;
    for (const button of places.children) button.setAttribute("aria-pressed", String(button.dataset.place === name));
    if (asked) find().catch(showError);
    else show();
  }

  async function find() {
    const q = input.value.trim();
    if (q === "") return void input.focus();
    asked = q;
    fault = "";
    counts.textContent = "Searching…";
    const from = place;
    try {
      const told = await get(withQuery(`/api/${from}/search`, { q }), { signal });
      if (from !== place || q !== asked) return;
      results = told.items ?? told.results;
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      results = [];
      fault = faultText(error);
    }
    show();
  }

  function show() {
    counts.textContent = asked && !fault ? count(results.length, "skill") : "";
    refill(list, results.map(card));
    if (fault) fill(empty, emptyState({ icon: icon("alert", 28), title: "The search failed", text: fault, actions: [h("button", { type: "button", onclick: () => find().catch(showError) }, icon("retry", 18), "Try again")] }));
    else if (asked && results.length === 0) fill(empty, emptyState({ icon: icon("search", 28), title: "No skill found", text: "Try other words, or another place." }));
    else if (!asked) fill(empty, emptyState({ icon: icon("search", 28), title: "Search for a skill", text: "Type what an agent should be able to do. Nothing is installed before you have seen where it comes from." }));
    else fill(empty);
  }

  function card(item) {
    const name = item.name || item.slug;
    return h("li", { class: "card connection-card" },
      h("div", { class: "bar-row tight" }, icon("file", 20), h("h2", { class: "grow cut" }, name)),
      h("p", { class: "dim clamp" }, item.description),
      h("p", { class: "faint" }, [item.version, item.author, item.downloads ? `${short(item.downloads)} downloads` : null].filter(Boolean).join(" · ")),
      h("div", { class: "buttons" }, item.is_installed ? h("span", { class: "badge good" }, "installed")
        : can("admin") && h("button", { type: "button", "aria-label": `Install ${name}`, onclick: () => install(item).catch(showError) }, icon("plus", 16), "Install")));
  }

  async function install(item) {
    const isHub = place !== "marketplace";
    const name = item.name || item.slug;
    const told = await ask({
      title: `Install ${name}?`, action: "Install",
      body: [h("p", {}, item.description), h("p", { class: "dim" }, `It comes from ${isHub ? "ClawHub" : "the registry"}${item.author ? `, by ${item.author}` : ""}. Its files are checked and its text is scanned first.`)],
      submit: () => call("POST", "/api/skills/install", { source: isHub ? `${place}:${item.slug}` : (item.install_id ?? item.name) }),
    });
    if (!told) return;
    await tellInstalled(told);
    ctx.go(["library", "skills", told.skill]);
  }

  show();
  input.focus();
}
