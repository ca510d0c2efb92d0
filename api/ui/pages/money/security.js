// The sixteen security systems: what each does here, and whether it is in force.

import { get } from "../../lib/api.js";
import { fill, h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { configAddress } from "../../lib/off.js";

const WORDS = { active: ["good", "active"], inactive: ["warn", "off"], not_available: ["", "not in this build"] };
const ORDER = ["inactive", "active", "not_available"];
/** What people call the systems; the API has their keys. */
const NAMES = {
  capability_inheritance_validation: "Rights of spawned agents", gcra_rate_limiter: "Rate limit", health_redaction: "Public health response", loop_guard: "Loop guard",
  manifest_signing: "Signed manifests", merkle_audit_trail: "Audit log", ofp_hmac_auth: "Node authentication", path_traversal_prevention: "File path checks",
  prompt_injection_scanning: "Prompt injection scanning", secret_zeroization: "Memory wiping", security_headers: "Security headers", session_repair: "Session repair",
  ssrf_protection: "SSRF protection", subprocess_sandbox: "Command sandbox", taint_tracking: "Taint tracking", wasm_dual_metering: "WASM limits",
};

/** What the daemon does under each value of a key. */
const POLICIES = {
  "security.taint": {
    off: "Sensitive calls of turns that have read untrusted content are neither recorded nor blocked.", audit: "Records tainted calls; does not block them.",
    approve: "Tainted calls wait for an approval.", deny: "Refuses tainted calls.",
  },
  "security.prompt_injection": {
    off: "Untrusted text is not scanned.", mark: "Marks untrusted text that looks like instructions as data.", block: "Withholds untrusted text that looks like instructions.",
  },
};

const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

/** The name of a system. */
const nameOf = (key) => NAMES[key] ?? sentence(key.replaceAll("_", " "));

/** What the daemon says of a system; one that a key decides leads to that key. */
function detailOf(text) {
  const setting = /^\[(\w+)\] (\w+) is "(.*)"$/.exec(text);
  if (!setting) return [h("p", { class: "dim" }, sentence(text))];
  const key = `${setting[1]}.${setting[2]}`;
  return [h("p", { class: "dim" }, POLICIES[key]?.[setting[3]] ?? sentence(setting[3])), h("p", {}, h("a", { href: configAddress(key) }, "Change ", h("code", {}, key)))];
}

export async function mount(root, ctx) {
  const { signal } = ctx;

  async function read() {
    const { security_systems: systems, details = {}, total_systems: total } = await get("/api/security", { signal });
    const keys = Object.keys(systems).sort((a, b) => ORDER.indexOf(systems[a]) - ORDER.indexOf(systems[b]) || nameOf(a).localeCompare(nameOf(b)));
    const active = keys.filter((key) => systems[key] === "active").length;
    const off = keys.filter((key) => systems[key] === "inactive").length;
    const parts = ORDER.slice().reverse().map((state) => keys.filter((key) => systems[key] === state).length);
    const absent = keys.filter((key) => systems[key] === "not_available");
    const isOpen = root.querySelector(".security-absent")?.open ?? false;
    const card = (key) => {
      const [style, word] = WORDS[systems[key]] ?? ["", systems[key]];
      const detail = detailOf(details[key] ?? "");
      return h("li", { class: `card security-item ${systems[key]}` }, h("div", { class: "bar-row" }, h("h2", { class: "grow", title: key }, nameOf(key)), h("span", { class: `badge ${style}` }, word)), detail,
        systems[key] === "inactive" && detail.length === 1 ? h("p", {}, h("a", { href: "#/settings/config" }, "Open the configuration")) : null);
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
