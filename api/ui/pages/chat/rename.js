// The name of a session.

import { ask } from "../../lib/dialogs.js";
import { field, h } from "../../lib/dom.js";

/** Asks for another name of the open session. `chat` is the page. */
export async function renameSession(chat) {
  const control = h("input", { type: "text", value: chat.label ?? "", maxlength: "128" });
  const label = field("Name", control, { hint: "Unique within the agent. Leave empty to remove the name." });
  const done = await ask({
    title: "Rename this session", body: [label], fields: { label },
    submit: () => chat.ctx.api.call("PUT", `/api/sessions/${chat.sessionId}/label`, { label: control.value.trim() }),
  });
  if (!done) return;
  chat.label = control.value.trim() || null;
  chat.drawHead();
  await chat.side.sessions.reload();
}
