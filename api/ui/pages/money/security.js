// The sixteen security systems: what each does here, and whether it is in force.

import { get } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";

const WORDS = { active: ["good", "active"], inactive: ["warn", "off"], not_available: ["", "not in this build"] };
const ORDER = ["inactive", "active", "not_available"];
const SMALL = new Map([["merkle", "Merkle"], ["wasm", "WASM"], ["gcra", "GCRA"], ["ssrf", "SSRF"], ["ofp", "OFP"], ["hmac", "HMAC"]]);

/** "gcra_rate_limiter" as "GCRA rate limiter". */
function nameOf(key) {
  const words = key.split("_").map((word) => SMALL.get(word) ?? word).join(" ");
  return words[0].toUpperCase() + words.slice(1);
}

/** What the daemon says of a system: a sentence, with the key of the configuration as it is written there. */
function detailOf(text) {
  const setting = /^\[(\w+)\] (\w+) is "(.*)"$/.exec(text);
  if (setting) return [h("code", {}, `${setting[1]}.${setting[2]}`), ` is ${setting[3]}.`];
  return /^[a-z]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
}

export async function mount(root, ctx) {
  const { signal } = ctx;

  async function read() {
    const { security_systems: systems, details = {}, total_systems: total } = await get("/api/security", { signal });
    const keys = Object.keys(systems).sort((a, b) => ORDER.indexOf(systems[a]) - ORDER.indexOf(systems[b]) || a.localeCompare(b));
    const active = keys.filter((key) => systems[key] === "active").length;
    const off = keys.filter((key) => systems[key] === "inactive").length;
    const parts = ORDER.slice().reverse().map((state) => keys.filter((key) => systems[key] === state).length);
    const absent = keys.filter((key) => systems[key] === "not_available");
    const isOpen = root.querySelector(".security-absent")?.open ?? false;
    const card = (key) => {
      const [style, word] = WORDS[systems[key]] ?? ["", systems[key]];
      return h("li", { class: `card security-item ${systems[key]}` }, h("div", { class: "bar-row" }, h("h2", { class: "grow" }, nameOf(key)), h("span", { class: `badge ${style}` }, word)), h("p", { class: "dim" }, detailOf(details[key] ?? "")),
        systems[key] === "inactive" ? h("p", {}, h("a", { href: "#/settings/config" }, "Open the configuration")) : null);
    };
    fill(root, h("div", { class: "stack" },
      h("section", { class: "card security-sum" }, icon("shield", 36),
        h("div", { class: "stat grow" }, h("strong", {}, `${active} of ${total} active`), h("small", {}, off > 0 ? `${off} can be enabled; see the details below.` : "All features of this build are active.")),
        h("div", { class: "security-bar", role: "img", "aria-label": `${active} active, ${off} off, ${parts[0]} not in this build` }, keys.map((key) => h("i", { class: systems[key], title: nameOf(key) })))),
      h("ul", { class: "security-grid", "aria-label": "Security systems" }, keys.filter((key) => !absent.includes(key)).map(card)),
      absent.length > 0 ? h("details", { class: "security-absent", open: isOpen }, h("summary", {}, icon("chevron", 14), `Not in this build: ${absent.map(nameOf).join(", ")}`), h("ul", { class: "security-grid", "aria-label": "Systems that are not in this build" }, absent.map(card))) : null));
  }

  await read();
  ctx.every(30_000, read);
}
