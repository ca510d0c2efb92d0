// What stands in a conversation without messages: how to set up a model while there is none, and what to ask first.

import { SAMPLE, WAYS, wayCard } from "../../lib/connect.js";
import { showError, toast } from "../../lib/dialogs.js";
import { h } from "../../lib/dom.js";
import { icon } from "../../lib/icons.js";
import { can, seesAll } from "../../lib/me.js";
import { avatar } from "./side.js";

/** What the built-in model can do without a network. */
const OFFLINE = [
  { label: SAMPLE, text: SAMPLE, tool: "system_time" },
  { label: "What can you do here?", text: "What can you do without a model provider?" },
];
/** First messages that show a tool at work, each offered where the agent has the tool. */
const SUGGESTIONS = [
  { label: "What time is it in Tokyo?", text: "What time is it in Tokyo right now?", tool: "system_time" },
  { label: "Remember something about me", text: "Remember that I prefer short answers with an example.", tool: "memory_store" },
  { label: "Read a web page", text: "Read https://www.rust-lang.org and summarize it in three sentences.", tool: "web_fetch" },
  { label: "Write a file", text: "Write three ideas for a weekend project into ideas.md and show me the file.", tool: "file_write" },
  { label: "What can you do?", text: "What can you help me with, and which tools do you have?" },
];
const SHOWN_MAX = 4;

/** `chat` is the page. */
export class Welcome {
  constructor(chat) {
    this.chat = chat;
  }

  /** Is the open agent answered by the model in the daemon, which is no language model? */
  isOffline() {
    return this.chat.agent.model?.provider === "builtin";
  }

  has(tool) {
    const { capabilities, tool_allowlist: only, tool_blocklist: never } = this.chat.agent;
    const names = (list) => list.includes("*") || list.includes(tool);
    return !tool || (names(capabilities?.tools ?? []) && (!only?.length || names(only)) && !names(never ?? []));
  }

  node() {
    const { agent } = this.chat;
    const isNew = this.isOffline() && seesAll() && can("admin");
    const suggestions = !can("chat") ? [] : (isNew ? OFFLINE.slice(1) : this.isOffline() ? OFFLINE : SUGGESTIONS).filter(({ tool }) => this.has(tool)).slice(0, SHOWN_MAX);
    return h("div", { class: "empty welcome" },
      isNew ? h("img", { src: new URL("../../icon.svg", import.meta.url), alt: "", width: 44, height: 44 }) : avatar(agent.name),
      h("h2", {}, isNew ? "Welcome to agentsvc" : `Start a conversation with ${agent.name}`),
      h("p", {}, isNew ? "Run and supervise AI agents on your own machine. It takes a minute: choose how your agents think." : agent.description || "This session has no messages yet."),
      isNew ? this.setup() : null,
      suggestions.length > 0 ? h("ul", { class: "suggestions", "aria-label": "Suggestions" }, suggestions.map(({ label, text }) => h("li", {},
        h("button", { type: "button", onclick: () => this.chat.send(text).catch(showError) }, icon("chat", 16), h("span", {}, label))))) : null);
  }

  setup() {
    return h("section", { class: "setup", "aria-label": "Set up a model" },
      h("ul", { class: "ways" }, WAYS.map((way) => wayCard(way, () => this.run(way))),
        wayCard({ icon: "play", label: "Try it offline", text: "No account needed. A scripted model shows a tool call." }, () => this.chat.send(SAMPLE))),
      h("p", { class: "setup-note" }, "No language model is set up. Until then, the built-in offline model repeats what you write and runs tools on request."));
  }

  async run(way) {
    if (!(await way.run())) return;
    toast("The model is ready. Say something.");
    await this.chat.changedAgent();
    await this.chat.reload();
  }
}
