// A page of several parts: a title, a row of tabs that are addresses of their own, and the part that is open.

import { faultText } from "./dialogs.js";
import { emptyState, fill, h, skeleton } from "./dom.js";
import { CLOCK } from "./format.js";
import { icon } from "./icons.js";
import { partOff } from "./off.js";
import { tellFaults } from "./poll.js";

/**
 * Builds the page `name` in `root`. A tab is `{ name, label, text, load }`: `load()` gives a module with
 * `mount(panel, ctx)`, as of a page; `text` is one sentence below the title. The first tab is the page's own address.
 *
 * The `ctx` of a part is the page's, but its `signal` ends with the part, `path` is what follows the tab in the address,
 * `actions` is the place beside the title for the part's buttons, `badge(name, text)` marks a tab, and `onNew(run)` calls `run` where
 * the address asks for something new (`?new=1`), with what it asks for. Below the title
 * stands since when what the part polls could not be read. The heading is the label of the tab.
 *
 * `base` is what stands between the page and the tab in the address, as for one of many agents; `lead` is a node before the title, and
 * `heading` takes the place of that label. `badges(badge)` may mark tabs that are not open.
 */
export function mountTabs(root, ctx, { name, title, tabs, base = [], lead = null, heading = null, badges = () => {} }) {
  const head = h("h1", {}, heading);
  const text = h("p", { class: "tab-text" });
  /** Since when the numbers of the open part are old. */
  const note = h("p", { class: "tab-note", role: "status" });
  const actions = h("div", { class: "buttons tab-actions" });
  const panel = h("section", { class: "tab-panel", tabindex: "-1" });
  const links = new Map(tabs.map((tab) => [tab.name, h("a", { href: addressOf(tab) }, h("span", {}, tab.label))]));
  const nav = h("nav", { class: "tabs", "aria-label": `Sections of ${title}` }, [...links.values()]);
  const view = h("div", { class: "scroll" }, h("div", { class: "page-body" },
    h("header", { class: "page-head" }, lead, h("div", { class: "grow" }, head, text, note), actions), nav, panel));
  fill(root, view);

  let open = null;
  let unmount = null;

  function addressOf(tab) {
    return `#/${[name, ...base, ...(tab === tabs[0] ? [] : [tab.name])].map(encodeURIComponent).join("/")}`;
  }

  function leave() {
    open?.ending.abort();
    unmount?.();
    unmount = null;
    open = null;
    note.textContent = "";
  }

  async function show(whole, query) {
    const path = whole.slice(base.length);
    const tab = tabs.find((tab) => tab.name === path[0]) ?? tabs[0];
    const rest = tab.name === path[0] ? path.slice(1) : path;
    if (open?.tab === tab) {
      open.path = rest;
      open.query = query;
      for (const run of open.routes) run(rest, query);
      return;
    }
    leave();
    const ending = new AbortController();
    const part = Object.assign(Object.create(ctx), { tab, ending, signal: ending.signal, path: rest, query, routes: [], actions, badge });
    part.onRoute = (run) => part.routes.push(run);
    part.onNew = (run) => {
      const take = (_, query) => {
        if (!query.has("new")) return;
        ctx.go([name, ...base, ...(tab === tabs[0] ? [] : [tab.name])], {}, { replace: true });
        run(query.get("new"));
      };
      part.onRoute(take);
      take([], part.query);
    };
    open = part;
    tellFaults(ending.signal, (fault) => {
      const said = fault ? `Not updated since ${fault.since.toLocaleTimeString(undefined, CLOCK)}: ${faultText(fault.error)}` : "";
      if (note.textContent !== said) note.textContent = said;
    });
    for (const [key, link] of links) {
      if (key === tab.name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    links.get(tab.name).scrollIntoView({ block: "nearest", inline: "nearest" });
    if (heading === null) head.textContent = tab.label;
    text.textContent = tab.text ?? "";
    panel.setAttribute("aria-label", tab.label);
    fill(actions);
    fill(panel, skeleton(5));
    ctx.setTitle(tab === tabs[0] ? title : `${tab.label} · ${title}`);
    view.scrollTop = 0;
    try {
      const module = await tab.load();
      if (open !== part) return;
      const place = h("div", { class: `tab-${tab.name}` });
      const wait = skeleton(5);
      fill(panel, wait, place);
      // Some parts read first, and build then.
      const filled = new MutationObserver(() => wait.remove());
      filled.observe(place, { childList: true });
      ending.signal.addEventListener("abort", () => filled.disconnect());
      const end = await module.mount(place, part);
      wait.remove();
      if (open === part) unmount = end ?? null;
      else end?.();
    } catch (error) {
      if (open !== part || error?.name === "AbortError") return;
      fill(actions);
      fill(panel, failed(error, () => {
        leave();
        show(whole, query);
      }, tab.absent));
    }
  }

  function badge(tab, label) {
    const link = links.get(tab);
    link.querySelector(".badge")?.remove();
    if (label) link.append(h("span", { class: "badge accent" }, label));
  }

  badges(badge);
  ctx.onRoute(show);
  show(ctx.path, ctx.query);
  return leave;
}

/**
 * What stands where a part did not come: the reason, and what to do. `absent` says why a route may not be there: as a sentence, or for a
 * part that is switched off as what `partOff` takes.
 */
export function failed(error, again, absent = "") {
  if (error?.status === 404 && typeof absent === "object") return partOff({ ...absent, again });
  const isAbsent = error?.status === 404 && absent !== "";
  const title = isAbsent ? "Not available in this daemon" : "Could not load this";
  const button = h("button", { class: "primary", type: "button", onclick: again }, icon("retry", 18), "Try again");
  return emptyState({ icon: icon(isAbsent ? "database" : "alert", 28), title, text: isAbsent ? absent : faultText(error), actions: [button] });
}
