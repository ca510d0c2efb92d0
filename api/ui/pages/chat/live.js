// An answer that is being written: it follows the events of a turn.

import { fill, h, hidden } from "../../lib/dom.js";
import { LiveMarkdown } from "../../lib/markdown.js";
import { answerFrame, failure, remark, repeatsOf, saidNode, ToolNode } from "./turn.js";

/** A running turn on the screen. `live.node` may leave the screen and come back. */
export class LiveTurn {
  /** `said` is the person's message, or null when it is not known yet. `onGrow(change)` makes a change and keeps the end in sight. */
  constructor(agentName, said, onGrow) {
    this.onGrow = onGrow;
    this.frame = answerFrame(agentName);
    /** Why nothing comes, where that is known. */
    this.held = h("span", { class: "held", role: "status" });
    this.wait = h("div", { class: "waiting" }, h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")), hidden("The agent is responding"), this.held);
    this.frame.parts.append(this.wait);
    this.node = h("article", { class: "turn live", "aria-busy": "true", data: repeatsOf(said) }, this.frame.node);
    this.tools = [];
    this.text = null;
    this.drawing = 0;
    this.began = Date.now();
    /** When something came last. */
    this.heard = this.began;
    this.isOver = false;
    /** What tells its stored turn: the id, or, where that is not known, the text that was sent. */
    this.turnId = null;
    this.message = "";
    if (said) this.say(said);
  }

  /** What the person said, when it becomes known. */
  say(said) {
    const node = saidNode(said);
    if (this.said) this.said.replaceWith(node);
    else this.node.prepend(node);
    this.said = node;
  }

  /** An event of the turn; gives true with its last one. */
  event(name, event) {
    this.heard = Date.now();
    this.note(null);
    if (name === "chunk") this.chunk(event.content ?? "");
    else if (name === "tool_use") this.toolUse(event.tool);
    else if (name === "tool_result") this.toolResult(event.tool, event.input);
    else if (name === "owner_notice") this.add(remark(event.text, "note"));
    else if (name === "lagged") this.add(remark(`${event.missed} events were missed; the full response appears when it is complete.`, "note"));
    else if (name === "done") return this.end(event.stopped ? remark("Stopped.") : null);
    else if (name === "error") return this.end(event.code === "turn_stopped" ? remark("Stopped.") : failure(event.error || "The turn failed.", event.code));
    return false;
  }

  /** Says why nothing comes: `{ text, clock, link, isBad, isStill, detail }`, or null. Only the clock changes while the text is the same: it is not read aloud. */
  note(words) {
    if ((words?.text ?? "") === (this.heldText ?? "")) {
      if (words) this.clock.textContent = words.clock ?? "";
      return;
    }
    this.heldText = words?.text;
    this.clock = h("span", { "aria-hidden": "true" }, words?.clock ?? "");
    this.onGrow(() => fill(this.held, words ? [words.text, " ", this.clock, " ", words.link] : []));
    this.held.title = words?.detail ?? "";
    this.wait.classList.toggle("is-held", Boolean(words?.isBad));
    this.wait.classList.toggle("is-still", Boolean(words?.isStill));
  }

  chunk(content) {
    if (content === "") return;
    if (!this.text) {
      this.text = { source: "", markdown: new LiveMarkdown() };
      this.add(this.text.markdown.node);
    }
    this.text.source += content;
    // Pieces that come faster than the screen are drawn together.
    this.drawing ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.drawing);
    this.drawing = 0;
    if (this.text) this.onGrow(() => this.text.markdown.set(this.text.source));
  }

  toolUse(name) {
    this.draw();
    this.text = null;
    const tool = new ToolNode(name);
    tool.began = Date.now();
    this.tools.push(tool);
    this.add(tool.node);
  }

  toolResult(name, input) {
    const open = this.tools.find((tool) => tool.name === name && tool.known.status === undefined) ?? this.tools.at(-1);
    if (!open) return;
    open.input(input ?? {});
    open.set({ status: "ok", ms: Date.now() - open.began });
  }

  /** The results that are stored by now complete the tool calls. Calls begin in another order than they were asked for in. */
  results(steps) {
    const inputs = new Map(steps.flatMap((message) => message.tool_calls ?? []).map((called) => [called.id, JSON.stringify(called.input)]));
    const open = [...this.tools];
    for (const result of steps.flatMap((message) => message.tool_results ?? [])) {
      const named = open.filter((tool) => tool.name === result.name);
      const tool = named.find((one) => JSON.stringify(one.known.input) === inputs.get(result.call_id)) ?? named[0];
      if (!tool) continue;
      open.splice(open.indexOf(tool), 1);
      if (tool.known.result === undefined) tool.set({ result: result.content, isError: result.is_error, cut: result.cut_bytes });
    }
  }

  add(node) {
    this.onGrow(() => this.wait.before(node));
  }

  end(node) {
    this.draw();
    this.isOver = true;
    this.wait.remove();
    if (node) this.onGrow(() => this.frame.parts.append(node));
    this.node.classList.remove("live");
    this.node.removeAttribute("aria-busy");
    return true;
  }
}
