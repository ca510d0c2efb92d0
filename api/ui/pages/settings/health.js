// How the daemon is: the store, the sandbox, warnings, bounds that are near, and how to look deeper.

import { get } from "../../lib/api.js";
import { faultText } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { bytes, duration, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { poll } from "../../lib/poll.js";

/** The metrics are a long text. */
const EVERY_MS = 30_000;
/** So large a part of the ticks of the last minute may be missed. */
const MISSED_MAX = 0.05;

/** Can only programs of this machine reach an address? */
const isLoopback = (listen) => /^(127\.|localhost:|\[::1\])/.test(listen ?? "");

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
    const [detail, status, version, security, config, { beat }, text] = await Promise.all([
      get("/api/health/detail", { signal }), get("/api/health", { signal }), get("/api/version", { signal }), get("/api/security", { signal }), get("/api/config", { signal }), get("/api/world", { signal }),
      ctx.api.blob("/api/metrics", { signal, accept: "text/plain" }).then((blob) => blob.text()),
    ]);
    const metric = metricsOf(text);
    const value = (name) => metric.get(`agentsvc_${name}`) ?? 0;
    const ticks = Math.min(beat.total, beat.hz * 60);
    const checks = [
      check(detail.database === "connected", "Store", detail.database === "connected" ? "The store accepts writes." : `It is ${detail.database}.`, "Check the disk of data_dir: free space, permissions and errors. Then restart the daemon."),
      check(status.panic_count === 0, "Panics", status.panic_count === 0 ? "None since the start." : `${number(status.panic_count)} since the start.`, "See the log for details and report the problem."),
      check(status.restart_count === 0, "Restarts", status.restart_count === 0 ? "None since the last orderly stop." : `${number(status.restart_count)} since the last orderly stop.`, "The daemon was killed. Check the log, memory and disk."),
      check(detail.sandbox.files === "openat2" && (detail.sandbox.landlock_abi ?? 0) > 0, "Sandbox", `Files by ${detail.sandbox.files}, Landlock ${detail.sandbox.landlock_abi ? `version ${detail.sandbox.landlock_abi}` : "is missing"}, commands: ${detail.sandbox.commands}.`, "Landlock restricts what agents' commands can access. Without it, set [exec_policy] mode = \"deny\"."),
      config.api_key === "not set" && isLoopback(config.api_listen)
        ? note("API key", "Not set, and not needed: only programs on this machine can connect, and each has full access.", "Set api_key in config.toml before you allow access from other machines.")
        : check(config.api_key !== "not set", "API key", config.api_key === "not set" ? "Not set. Everyone who can connect has full access." : "Clients must send the key.", "Set api_key in config.toml."),
      check(detail.config_warnings.length === 0, "Configuration", detail.config_warnings.length === 0 ? "No warnings." : detail.config_warnings.join(" "), "See the Configuration page; some keys need a restart."),
      check(security.all_active || !Object.values(security.security_systems).includes("inactive"), "Security systems", `${Object.values(security.security_systems).filter((state) => state === "active").length} of ${security.total_systems} work as they are set.`, "Money & trust → Security says how each is set."),
      check(value("store_backlog_bytes") < 16 * 1024 * 1024, "Store backlog", `${bytes(value("store_backlog_bytes"))} waiting to be stored.`, "The disk is too slow. At 64 MiB, writes are refused."),
      check(beat.missed_last_minute <= ticks * MISSED_MAX, "Ticks", `${number(beat.missed_last_minute)} of ${number(ticks)} ticks of the last minute missed.`, "The world is busy. See World → Live for the slowest systems."),
    ];
    const bad = checks.filter(({ isGood }) => !isGood).length;
    const facts = [["Version", `${version.version} (${version.git_sha}, ${version.build_date})`], ["Built with", version.rust_version], ["Machine", `${version.platform}, ${version.arch}`], ["Uptime", duration(status.uptime_seconds * 1000)], ["Agents", number(detail.agent_count)], ["Connections", number(value("http_connections"))], ["Uploads", bytes(value("uploads_bytes"))], ["Data directory", config.data_dir]];
    fill(root, h("div", { class: "stack" },
      h("p", { class: `notice ${bad > 0 ? "warn" : "good"}`, role: "status" }, icon(bad > 0 ? "alert" : "check"), h("strong", {}, bad > 0 ? `${number(bad)} of ${checks.length} checks ${bad === 1 ? "needs" : "need"} attention` : "All checks passed")),
      h("ul", { class: "check-list card", "aria-label": "Checks" }, checks.sort((a, b) => a.rank - b.rank).map(({ node }) => node)),
      h("section", { class: "card", "aria-label": "Facts" }, h("h2", {}, "This daemon"), h("dl", { class: "pairs" }, facts.filter(([, fact]) => fact).map(([name, fact]) => [h("dt", {}, name), h("dd", {}, String(fact))]))),
      h("section", { class: "card stack tight-stack", "aria-label": "Doctor" }, h("h2", {}, "More checks"), h("p", { class: "dim" }, "The doctor command also checks the home, vault, disk, clock and providers, and suggests fixes:"), h("pre", { class: "code-box" }, "agentsvc doctor"))));
  }

  await read();
  let isRead = true;
  poll(async () => {
    await read();
    isRead = true;
  }, EVERY_MS, { signal, isRead: true, onFault: (error) => {
    if (error === null || !isRead) return;
    isRead = false;
    // What stands here was so when it was read last.
    root.querySelector(".notice")?.remove();
    root.prepend(h("p", { class: "notice bad", role: "alert" }, icon("alert"), `The health could not be loaded. ${faultText(error)}`));
  } });
}

/** Where advice leads to. */
const PLACES = { Configuration: "#/settings/config", "API key": "#/settings/people", "Security systems": "#/money/security", Ticks: "#/world" };

function line(style, name, text, advice) {
  return h("li", { class: `check-${style}` }, icon({ good: "check", note: "key", bad: "alert" }[style]),
    h("div", { class: "grow" }, h("strong", {}, name), h("p", { class: "dim" }, text), advice ? h("p", { class: "advice" }, advice, PLACES[name] ? [" ", h("a", { href: PLACES[name] }, "Open")] : null) : null));
}

function check(isGood, name, text, advice) {
  return { isGood, rank: isGood ? 2 : 0, node: line(isGood ? "good" : "bad", name, text, isGood ? null : advice) };
}

/** What is as it should be, and worth knowing. */
const note = (name, text, advice) => ({ isGood: true, rank: 1, node: line("note", name, text, advice) });
