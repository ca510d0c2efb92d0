// How the daemon is: the store, the sandbox, warnings, bounds that are near, and how to look deeper.

import { Failure, get } from "../../lib/api.js";
import { commandsText } from "../../lib/commands.js";
import { faultText } from "../../lib/dialogs.js";
import { fill, h } from "../../lib/dom.js";
import { bytes, count, duration, number } from "../../lib/format.js";
import { icon } from "../../lib/icons.js";
import { poll } from "../../lib/poll.js";
import { queryRows } from "../../lib/query.js";

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

const listed = (names) => (names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${number(names.length - 3)} more` : names.join(", "));

/** What agents depend on, as `[isGood, name, text, advice]`: providers, schedules and channels. What cannot be read now is left out. */
async function partsOf(config, signal) {
  const parts = [
    async () => {
      const [{ providers }, { default_provider: usual }, used] = await Promise.all([get("/api/providers", { signal }), get("/api/status?limit=1", { signal }), queryRows("agents group by provider select count limit 200", { signal })]);
      const uses = new Set([usual, ...used.map((row) => row.provider).filter(Boolean)]);
      // The default model may have a key of its own.
      if ((await config).default_model?.api_key_env) uses.delete(usual);
      const own = providers.filter(({ name, calls }) => name === usual || uses.has(name) || calls);
      const without = own.filter(({ name, auth_status: auth }) => uses.has(name) && auth === "not_configured").map(({ display_name: name }) => name);
      const failing = own.filter(({ calls }) => ["failing", "paused"].includes(calls?.state)).map(({ display_name: name }) => name);
      const said = [without.length > 0 ? `No API key for ${listed(without)}.` : "", failing.length > 0 ? `The last calls to ${listed(failing)} failed.` : ""].filter(Boolean).join(" ");
      return [said === "", "Providers", said || `${count(own.length, "provider")} in use, none with errors.`, "Test the provider, and set its key."];
    },
    async () => {
      const rows = (await Promise.all(["schedules", "cron_jobs"].map((kind) => queryRows(`${kind} where enabled and last_status = "failed" select id, name, rule limit 50`, { signal })))).flat();
      return [rows.length === 0, "Schedules", rows.length === 0 ? "No last run failed." : `The last run of ${listed(rows.map(({ name, rule }) => name || rule))} failed.`, "Run it again, or read the error in the inbox."];
    },
    async () => {
      const { channels } = await get("/api/channels", { signal });
      const failed = channels.filter(({ enabled, state }) => enabled && state === "failed").map(({ name }) => name);
      return [failed.length === 0, "Channels", failed.length === 0 ? (channels.length === 0 ? "None are set up." : `${count(channels.length, "channel")}, none failed.`) : `${listed(failed)} failed.`, "Open the channel to see its error."];
    },
  ];
  const found = await Promise.all(parts.map((part) => part().catch((error) => {
    if (!(error instanceof Failure) || error.status === 0) throw error;
    return null;
  })));
  return found.filter(Boolean);
}

export async function mount(root, ctx) {
  const { signal } = ctx;

  async function read() {
    const asked = get("/api/config", { signal });
    const [detail, status, version, security, config, { beat }, text, parts] = await Promise.all([
      get("/api/health/detail", { signal }), get("/api/health", { signal }), get("/api/version", { signal }), get("/api/security", { signal }), asked, get("/api/world", { signal }),
      ctx.api.blob("/api/metrics", { signal, accept: "text/plain" }).then((blob) => blob.text()),
      partsOf(asked, signal),
    ]);
    const metric = metricsOf(text);
    const value = (name) => metric.get(`agentsvc_${name}`) ?? 0;
    const ticks = Math.min(beat.total, beat.hz * 60);
    const late = (beat.missed_last_minute / Math.max(1, ticks)) * 100;
    const checks = [
      check(detail.database === "connected", "Store", detail.database === "connected" ? "The store accepts writes." : `It is ${detail.database}.`, "Check the disk of data_dir: free space, permissions and errors. Then restart the daemon."),
      check(status.panic_count === 0, "Panics", status.panic_count === 0 ? "None since the start." : `${number(status.panic_count)} since the start.`, "See the log for details and report the problem."),
      check(status.restart_count === 0, "Restarts", status.restart_count === 0 ? "None since the last orderly stop." : `${number(status.restart_count)} since the last orderly stop.`, "The daemon was killed. Check the log, memory and disk."),
      check(detail.sandbox.files === "openat2" && (detail.sandbox.landlock_abi ?? 0) > 0, "Sandbox", `Files by ${detail.sandbox.files}, Landlock ${detail.sandbox.landlock_abi ? `version ${detail.sandbox.landlock_abi}` : "is missing"}. ${commandsText(config.exec_policy)}`, "Landlock restricts what agents' commands can access. Without it, set [exec_policy] mode = \"deny\"."),
      config.api_key === "not set" && isLoopback(config.api_listen)
        ? note("API key", "Not set, and not needed: only programs on this machine can connect, and each has full access.", "Set api_key in config.toml before you allow access from other machines.")
        : check(config.api_key !== "not set", "API key", config.api_key === "not set" ? "Not set. Everyone who can connect has full access." : "Clients must send the key.", "Set api_key in config.toml."),
      check(detail.config_warnings.length === 0, "Configuration", detail.config_warnings.length === 0 ? "No warnings." : detail.config_warnings.join(" "), "See the Configuration page; some keys need a restart."),
      check(security.all_active || !Object.values(security.security_systems).includes("inactive"), "Security systems", `${Object.values(security.security_systems).filter((state) => state === "active").length} of ${security.total_systems} work as they are set.`, "Cost & control → Security says how each is set."),
      check(value("store_backlog_bytes") < 16 * 1024 * 1024, "Store backlog", `${bytes(value("store_backlog_bytes"))} waiting to be stored.`, "The disk is too slow. At 64 MiB, writes are refused."),
      ...parts.map(([isGood, name, text, advice]) => check(isGood, name, text, advice)),
      check(beat.missed_last_minute <= ticks * MISSED_MAX, "Speed", beat.missed_last_minute === 0 ? "The daemon keeps up with its work." : `${late < 1 ? "Less than 1" : Math.round(late)} % of the work of the last minute was late (${number(beat.missed_last_minute)} of ${number(ticks)} ticks).`, "The daemon or the machine is busy. World → Live shows what takes the time."),
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
const PLACES = { Configuration: "#/settings/config", "API key": "#/settings/people", "Security systems": "#/money/security", Speed: "#/world", Providers: "#/settings", Schedules: "#/automation", Channels: "#/connections/channels" };

function line(style, name, text, advice) {
  return h("li", { class: `check-${style}` }, icon({ good: "check", note: "key", bad: "alert" }[style]),
    h("div", { class: "grow" }, h("strong", {}, name), h("p", { class: "dim" }, text), advice ? h("p", { class: "advice" }, advice, PLACES[name] ? [" ", h("a", { href: PLACES[name] }, "Open")] : null) : null));
}

function check(isGood, name, text, advice) {
  return { isGood, rank: isGood ? 2 : 0, node: line(isGood ? "good" : "bad", name, text, isGood ? null : advice) };
}

/** What is as it should be, and worth knowing. */
const note = (name, text, advice) => ({ isGood: true, rank: 1, node: line("note", name, text, advice) });
