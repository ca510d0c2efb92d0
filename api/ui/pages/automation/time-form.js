// The form of a schedule or cron job, with its next runs as the rule is typed.

import { call, Failure, get, withQuery } from "../../lib/api.js";
import { agentField, nameOf } from "../../lib/agents.js";
import { checkAll, faultAt, needed } from "../../lib/checks.js";
import { choice, offered, textBox, textInput, toggle } from "../../lib/controls.js";
import { HERE, ruleText, whenHere, whenIn } from "../../lib/cron.js";
import { ask } from "../../lib/dialogs.js";
import { debounce, field, fill, h } from "../../lib/dom.js";
import { ago } from "../../lib/format.js";
import { ruleField } from "./rule-field.js";
import { KINDS } from "./times.js";

/** Asks for a new one, which begins as `draft`, or for changes of `item`; gives the record, or null when it was left. */
export async function editTime(item, draft = null) {
  const from = item ?? draft;
  const agent = agentField("Agent", { id: from?.agent_id ?? null });
  const name = field("Name", textInput(from?.name, { maxlength: 256 }), { hint: "Optional. Without one, the list shows the prompt." });
  const rule = ruleField(from?.rule, () => preview());
  const zone = field("Time zone", textInput(item?.timezone ?? HERE, { spellcheck: "false" }));
  zone.append(offered(zone.control, [...new Set(["UTC", HERE, ...(Intl.supportedValuesOf?.("timeZone") ?? [])])]));
  const prompt = field("Prompt", textBox(from?.prompt ?? "", 4, { required: true }), { hint: "The message sent to the agent each time." });
  const missed = field("Missed runs", choice([["one", "Run latest"], ["all", "Run all"], ["skip", "Skip"]], item?.missed_policy ?? "one"), { hint: "For runs that were due while the daemon was off." });
  const overlap = field("If still running", choice([["queue", "Queue"], ["skip", "Skip"], ["parallel", "Run in parallel"]], item?.overlap_policy ?? "queue"), { hint: "When a run is due before the last one has ended." });
  const session = field("Session", choice([["", "Agent default"], ["persistent", "Current session"], ["new", "New session each time"]], item?.session_mode ?? ""), { hint: "The conversation that gets the prompt." });
  const enabled = toggle("Enabled", item?.enabled ?? true);
  const next = h("div", { class: "preview", role: "status", "aria-live": "polite" });

  let round = 0;
  const shown = () => (rule.hasZone() && zone.control.value.trim()) || HERE;
  const preview = debounce(async () => {
    const mine = (round += 1);
    const cron = rule.read();
    zone.hidden = !rule.hasZone();
    rule.fault("");
    zone.fault("");
    if (cron === "") return fill(next);
    try {
      const { next_runs: runs } = await get(withQuery("/api/schedules/preview", { cron, timezone: zone.control.value.trim(), count: 5 }));
      if (mine !== round) return undefined;
      return fill(next, h("strong", {}, [ruleText(cron), "Next runs"].filter(Boolean).join(". ")), h("ol", {}, runs.map((at) => h("li", {}, whenIn(at, shown()), h("span", { class: "faint" }, `${shown() === HERE ? "" : `, ${whenHere(at)} in your time zone`}, ${ago(at)}`)))));
    } catch (error) {
      if (mine !== round || !(error instanceof Failure)) return undefined;
      fill(next);
      return (error.field === "timezone" ? zone : rule).fault(error.message);
    }
  }, 250);
  zone.control.addEventListener("input", preview);
  zone.hidden = !rule.hasZone();
  preview();

  const fields = { agent_id: agent, name, cron: rule, schedule: rule, timezone: zone, prompt, missed_policy: missed, overlap_policy: overlap, session_mode: session };
  return ask({
    title: item ? "Edit schedule" : "New schedule", wide: true, action: item ? "Save" : "Create", fields,
    body: [
      h("div", { class: "form-row" }, agent, name), prompt, rule, h("div", { class: "form-row" }, zone, session), next,
      h("div", { class: "form-row" }, missed, overlap), enabled,
    ],
    submit: async () => {
      const isTimed = () => {
        if (rule.read() === "") throw faultAt(rule, "Enter when it runs, such as 09:00.");
      };
      const [agent_id] = await checkAll(() => agent.read(), () => needed(prompt, "Enter the prompt."), isTimed);
      const kind = item?.kind ?? (name.control.value.trim() === "" ? "schedule" : "job");
      const body = {
        agent_id, prompt: prompt.control.value, timezone: zone.control.value.trim() || "UTC",
        missed_policy: missed.control.value, overlap_policy: overlap.control.value, session_mode: session.control.value || null, enabled: enabled.box.checked,
      };
      body[KINDS[kind].rule] = rule.read();
      if (name.control.value.trim() !== "") body.name = name.control.value.trim();
      // A rule that is sent counts from now: it is left out when it is as it was.
      if (item && body[KINDS[kind].rule] === item.rule && body.timezone === item.timezone) {
        delete body[KINDS[kind].rule];
        delete body.timezone;
      }
      const { path } = KINDS[kind];
      const made = await (item ? call("PUT", `${path}/${item.id}`, body) : call("POST", path, body));
      return { ...made, agent_name: nameOf(made.agent_id) };
    },
  });
}
