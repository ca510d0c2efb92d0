// Where the chat was left in this tab: the conversation that was open, and the texts that were not sent.

const KEY = "agentsvc-chat";
const DRAFTS_MAX = 50;

function read() {
  try {
    return { last: [], drafts: [], ...JSON.parse(sessionStorage.getItem(KEY)) };
  } catch {
    return { last: [], drafts: [] };
  }
}

function write(change) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ ...read(), ...change }));
  } catch {
    // No room: the text is in the box only.
  }
}

/** The agent and session that were open last: `[agent, session]`, or nothing. */
export const lastPlace = () => read().last;

export const keepPlace = (agent, session) => write({ last: [agent, session] });

/** The agent that was open last is deleted. */
export const forgetPlace = () => write({ last: [] });

/** The text that was not sent to a session. */
export const draftOf = (session) => read().drafts.find(([of]) => of === session)?.[1] ?? "";

export function keepDraft(session, text) {
  const drafts = read().drafts.filter(([of]) => of !== session);
  if (text !== "") drafts.push([session, text]);
  write({ drafts: drafts.slice(-DRAFTS_MAX) });
}
