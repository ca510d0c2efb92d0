// Another way on from an earlier place in a conversation: a new session with a copy of the turns before it. The original stays.

import { toast } from "../../lib/dialogs.js";
import { can } from "../../lib/me.js";

/** May this key branch a session? */
export const mayBranch = () => can("write");

/** Opens a new session with the first `turns` turns of the open one. `chat` is the page. */
export async function branchAt(chat, turns) {
  const { api } = chat.ctx;
  const made = await api.call("POST", `/api/sessions/${chat.sessionId}/branch`, { turns });
  await chat.side.sessions.reload("");
  chat.isNew = true;
  await chat.show(made.agent_id, made.session_id);
  toast("This is a new session with the conversation up to here. The original is unchanged.");
}

/** Sends a message in place of the one of `turn`, in a branch that begins before it. */
export async function sendEdited(chat, turn, text, files) {
  if (mayBranch()) await branchAt(chat, chat.log.variantsOf(turn)[0]?.ordinal ?? turn.ordinal);
  const pictures = (turn.said?.images ?? []).map(({ file_id, filename, media_type }) => ({ file_id, filename, content_type: media_type }));
  return chat.send(text, [...pictures, ...files]);
}
