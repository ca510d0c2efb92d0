// How the daemon is: the store, the sandbox, warnings, bounds that are near, and how to look deeper.

import { get } from "../../lib/api.js";
import { faultText } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { bytes, duration, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { poll } from "../../lib/poll.js";

/** The numbers of Prometheus text, by name; those with labels add up. */
export function metricsOf(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = /^(\w+)(?:\{[^}]*\})? ([-+.eE\d]+)$/.exec(line);
    if (match) found.set(match[1], (found.get(match[1]) ?? 0) + Number(match[2]));
  }
  return found;
}

export async function mount(root, ctx) {
  const { signal } = ctx;

  async function read() {
    const [detail, status, version, security, config, text] = await Promise.all([
      get("/api/health/detail", { signal }), get("/api/health", { signal }), get("/api/version", { signal }), get("/api/security", { signal }), get("/api/config", { signal }),
      ctx.api.blob("/api/metrics", { signal, accept: "text/plain" }).then((blob) => blob.text()),
    ]);
    const metric = metricsOf(text);
    const value = (name) => metric.get(`agentsvc_${name}`) ?? 0;
    const checks = [
      check(detail.database === "connected", "Store", detail.database === "connected" ? "It takes what is written." : `It is ${detail.database}.`, "Look at the disk of data_dir: room, permissions, errors. Then start the daemon again."),
      check(status.panic_count === 0, "Panics", status.panic_count === 0 ? "None since the start." : `${number(status.panic_count)} since the start.`, "The log says where. Please report it."),
      check(status.restart_count === 0, "Restarts", status.restart_count === 0 ? "None since the last orderly stop." : `${number(status.restart_count)} since the last orderly stop.`, "Something ends the daemon: look at the log, and at memory and disk."),
      check(detail.sandbox.files === "openat2" && (detail.sandbox.landlock_abi ?? 0) > 0, "Sandbox", `Files by ${detail.sandbox.files}, Landlock ${detail.sandbox.landlock_abi ? `version ${detail.sandbox.landlock_abi}` : "is missing"}, commands: ${detail.sandbox.commands}.`, "A kernel with Landlock keeps commands of agents to their place; without one set [exec_policy] mode = \"deny\"."),
      check(config.api_key !== "not set", "API key", config.api_key === "not set" ? "None: whoever reaches the port may do everything. Only this machine can." : "Clients must send it.", "Set api_key in config.toml before the API is reached from elsewhere."),
      check(detail.config_warnings.length === 0, "Configuration", detail.config_warnings.length === 0 ? "No warnings." : detail.config_warnings.join(" "), "See the page Configuration; some keys need a restart."),
      check(security.all_active || !Object.values(security.security_systems).includes("inactive"), "Security systems", `${Object.values(security.security_systems).filter((state) => state === "active").length} of ${security.total_systems} in force.`, "Money & trust, Security says which are off, and why."),
      check(value("store_backlog_bytes") < 16 * 1024 * 1024, "Store backlog", `${bytes(value("store_backlog_bytes"))} wait to be stored.`, "The disk is slower than what is written: at 64 MiB writes are refused."),
      check(value("world_beats_missed_total") < Math.max(10, value("world_beats_total") / 1000), "Beat", `${number(value("world_beats_missed_total"))} of ${number(value("world_beats_total"))} beats missed.`, "The world is busy. World, Live shows which system takes the time."),
    ];
    const bad = checks.filter(({ isGood }) => !isGood).length;
    const facts = [["Version", `${version.version} (${version.git_sha}, ${version.build_date})`], ["Built with", version.rust_version], ["Machine", `${version.platform}, ${version.arch}`], ["Up for", duration(status.uptime_seconds * 1000)], ["Agents", number(detail.agent_count)], ["Connections", number(value("http_connections"))], ["Uploads", bytes(value("uploads_bytes"))], ["Home of data", config.data_dir]];
    fill(root, h("div", { class: "stack" },
      h("p", { class: `notice ${bad > 0 ? "warn" : "good"}`, role: "status" }, icon(bad > 0 ? "alert" : "check"), h("strong", {}, bad > 0 ? `${number(bad)} of ${checks.length} points to look at` : "Everything is well")),
      h("ul", { class: "check-list card", "aria-label": "Checks" }, checks.sort((a, b) => Number(a.isGood) - Number(b.isGood)).map(({ node }) => node)),
      h("section", { class: "card", "aria-label": "Facts" }, h("h2", {}, "This daemon"), h("dl", { class: "pairs" }, facts.filter(([, fact]) => fact).map(([name, fact]) => [h("dt", {}, name), h("dd", {}, String(fact))]))),
      h("section", { class: "card stack tight-stack", "aria-label": "Doctor" }, h("h2", {}, "Look deeper"), h("p", { class: "dim" }, "The doctor also looks at the home, the vault, the disk, clocks and providers, and says what mends it:"), h("pre", { class: "code-box" }, "agentsvc doctor"))));
  }

  await read();
  let isRead = true;
  poll(async () => {
    await read();
    isRead = true;
  }, 10_000, { signal, onFault: (error) => {
    if (error === null || !isRead) return;
    isRead = false;
    // What stands here was so when it was read last.
    root.querySelector(".notice")?.remove();
    root.prepend(h("p", { class: "notice bad", role: "alert" }, icon("alert"), `How the daemon is cannot be read. ${faultText(error)}`));
  } });
}

function check(isGood, name, text, advice) {
  const node = h("li", {}, icon(isGood ? "check" : "alert"), h("div", { class: "grow" }, h("strong", {}, name), h("p", { class: "dim" }, text), isGood ? null : h("p", { class: "advice" }, advice)));
  node.className = isGood ? "check-good" : "check-bad";
  return { isGood, node };
}
