// The menu of a conversation: what can be done with its session, and with its agent.

import { can } from "../../lib/me.js";
import { confirm, toast } from "../../lib/dialogs.js";
import { forgetPlace } from "./place.js";
import { exportTrajectory } from "./turn.js";

/** The entries of the menu; `chat` is the page. */
export function menuOf(chat) {
  const { agent, sessionId } = chat;
  const { api } = chat.ctx;
  const isRunning = agent.state === "Running";
  return [
    { heading: "Session" },
    { label: "Rename this session", icon: "tag", scope: "write", run: () => chat.rename() },
    { label: "Make this the default session", icon: "flag", scope: "write", run: async () => { await api.call("POST", `/api/agents/${agent.id}/sessions/${sessionId}/switch`); await chat.side.sessions.reload(); toast("Messages from schedules, triggers and other clients now go to this session."); } },
    { label: "Copy as Markdown", icon: "copy", run: () => share(chat, "copyConversation") },
    { label: "Export as Markdown", icon: "download", run: () => share(chat, "saveConversation") },
    { label: "Export as JSON", icon: "download", run: () => exportTrajectory(agent, sessionId, "json") },
    { label: "Export as JSON lines", icon: "download", run: () => exportTrajectory(agent, sessionId, "jsonl") },
    { label: "Compact the history", icon: "branch", scope: "chat", run: () => chat.command("/compact") },
    { heading: "Agent" },
    { label: "Overview and settings", icon: "settings", run: () => chat.ctx.go(["agent", agent.id]) },
    { label: "Memory of the agent", icon: "database", all: true, run: () => chat.ctx.go(["memory"], { agent: agent.id }) },
    { label: isRunning ? "Stop the agent" : "Start the agent", icon: isRunning ? "pause" : "play", scope: isRunning || !can("write") ? "write" : "chat", all: true, run: async () => { await api.call("POST", `/api/agents/bulk/${isRunning ? "stop" : "start"}`, { agent_ids: [agent.id] }); await chat.changedAgent(); } },
    { label: "Clone the agent", icon: "copy", scope: "write", run: async () => { const made = await api.call("POST", `/api/agents/${agent.id}/clone`, {}); await chat.side.agents.reload(); chat.open(made.agent_id); } },
    { heading: "Delete" },
    { label: "Delete this session", icon: "trash", scope: "write", danger: true, run: () => removeSession(chat) },
    { label: "Delete the agent", icon: "trash", scope: "write", danger: true, run: () => removeAgent(chat) },
  ];
}

/** Runs one of share.js for the open conversation. */
async function share(chat, name) {
  const module = await import("./share.js");
  await module[name](chat);
}

async function removeSession(chat) {
  const session = chat.sessionId;
  const run = () => chat.ctx.api.call("DELETE", `/api/sessions/${session}`);
  if (!(await confirm({ title: "Delete this session?", text: "Its messages are deleted permanently. Other sessions of the agent are kept.", run }))) return;
  await chat.side.sessions.reload();
  chat.open(chat.agent.id);
}

async function removeAgent(chat) {
  const { id, name } = chat.agent;
  const run = () => chat.ctx.api.call("DELETE", `/api/agents/${id}`);
  if (!(await confirm({ title: `Delete ${name}?`, text: "This deletes the agent with its sessions, memory and uploads. It cannot be undone.", action: "Delete agent", run }))) return;
  chat.agent = null;
  chat.sessionId = null;
  forgetPlace();
  await chat.side.agents.reload();
  chat.ctx.go(["chat"], {}, { replace: true });
}
