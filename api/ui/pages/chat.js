// Chat: agents, their sessions, and the conversation.

import { emptyState } from "../lib/dom.js";
import { icon } from "../lib/icons.js";

export const title = "Chat";

export async function mount(root) {
  root.append(emptyState({ icon: icon("chat", 32), title: "Chat" }));
}
