// The sixteen security systems: what each does here, whether it is on, and what turns it on.

import { get } from "../../lib/api.js";
import { h, refill } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { configAddress, turnOn } from "../../lib/off.js";
import { nameOf, STATES, systemOf } from "./security-states.js";

/** What else decides on a system; a key that may not see it learns nothing. */
async function factsOf(signal) {
  const [network, config] = await Promise.all(["/api/network/status", "/api/config"].map((path) => get(path, { signal }).catch((error) => {
    if (error.name === "AbortError" || error.status === 0) throw error;
    return {};
  })));
  return { hasNetwork: network.enabled, policy: config.exec_policy };
}

/** A system; `open` has the names of those whose lines are shown, and `again` looks at all once more. */
function card({ key, name, state, text, setting, lines, isAtOnce }, open, again) {
  const [style, word] = STATES[state];
  const link = setting ? h("p", {}, h("a", { class: "more-link", href: configAddress(setting), title: setting }, "Open setting", icon("chevron", 14)))
    : state === "off" ? h("p", {}, h("a", { href: "#/settings/config" }, "Open the configuration")) : null;
  return h("li", { class: `card security-item ${state}` },
    h("div", { class: "bar-row" }, h("h2", { class: "grow", title: key }, name), h("span", { class: `badge ${style}` }, word)),
    h("p", { class: "dim" }, text),
    lines === null ? link : h("details", { open: open.has(key), ontoggle: ({ target }) => open[target.open ? "add" : "delete"](key) }, h("summary", {}, icon("chevron", 14), state === "off" ? "How to turn it on" : "How to turn it on fully"),
      h("div", { class: "stack" }, turnOn({ key: setting, lines, again: isAtOnce ? again : null }))));
}

export async function mount(root, ctx) {
  const { signal } = ctx;
  const open = new Set();

  async function read() {
    const [{ security_systems: told, details = {} }, facts] = await Promise.all([get("/api/security", { signal }), factsOf(signal)]);
    const order = Object.keys(STATES);
    const all = Object.keys(told).map((key) => systemOf(key, told[key], details[key] ?? "", facts))
      .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.name.localeCompare(b.name));
    const of = (...states) => all.filter(({ state }) => states.includes(state));
    const [on, absent, built] = [of("on", "always"), of("absent"), all.filter(({ state }) => state !== "absent")];
    const rest = [["off", "off"], ["part", "partly on"], ["idle", "not in use"]].map(([state, word]) => [of(state).length, word]).filter(([number]) => number > 0).map(([number, word]) => `${number} ${word}`);
    const isOpen = root.querySelector(".security-absent")?.open ?? false;
    refill(root, h("div", { class: "stack" },
      h("section", { class: "card security-sum" }, icon("shield", 36),
        h("div", { class: "stat grow" }, h("strong", {}, `${on.length} of ${built.length} on`), h("small", {}, rest.length > 0 ? `${rest.join(", ")}. Those come first, with the key that changes them.` : "Every feature of this build is on.")),
        h("div", { class: "security-bar", role: "img", "aria-label": [`${on.length} on`, ...rest].join(", ") }, [...all].reverse().map(({ state, name }) => h("i", { class: state, title: name })))),
      h("ul", { class: "security-grid", "aria-label": "Security systems" }, built.map((one) => card(one, open, read))),
      absent.length > 0 ? h("details", { class: "security-absent", open: isOpen }, h("summary", {}, icon("chevron", 14), `Not in this build: ${absent.map(({ key }) => nameOf(key)).join(", ")}`), h("ul", { class: "security-grid", "aria-label": "Systems that are not in this build" }, absent.map((one) => card(one, open, read)))) : null));
  }

  await read();
  ctx.every(30_000, read);
}
