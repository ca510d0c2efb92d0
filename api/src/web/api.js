// The HTTP API as this page uses it: JSON calls, lists by pages, and event streams over fetch.

const KEY = "agentsvc-api-key";

/** A refused or failed call; `message` is for people. */
export class Failure extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let askForKey = async () => null;
let asking = null;

/** Says how to get a key: an async function that takes a reason and gives a key, or null when there is none. */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

/** Sends a request; asks for the key and sends again for as long as the answer is 401. */
async function send(method, path, { body, signal, accept = "application/json" } = {}) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = { accept };
    if (key) headers.authorization = `Bearer ${key}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    let response;
    try {
      const sent = body === undefined ? undefined : JSON.stringify(body);
      response = await fetch(new URL(path, document.baseURI), { method, headers, body: sent, signal, cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Failure("The daemon cannot be reached. Is it running?", 0);
    }
    if (response.ok) return response;
    if (response.status !== 401) throw await failure(response);
    // Another call may have got a better key meanwhile: then just try that one.
    if (sessionStorage.getItem(KEY) === key && !(await newKey(key))) throw await failure(response);
  }
}

/** Calls that need a key at the same time wait for one dialog. */
function newKey(old) {
  asking ??= askForKey(old ? "That key was not accepted." : "")
    .then((key) => {
      if (key) sessionStorage.setItem(KEY, key);
      return Boolean(key);
    })
    .finally(() => {
      asking = null;
    });
  return asking;
}

async function failure(response) {
  let message = "";
  try {
    message = (await response.json()).error;
  } catch {
    // Not JSON: something between this page and the daemon answered.
  }
  if (typeof message !== "string" || message === "") message = `The daemon answered ${response.status}.`;
  const wait = response.headers.get("retry-after");
  return new Failure(wait ? `${message} (try again in ${wait} s)` : message, response.status);
}

/** A JSON call; gives the parsed body. */
export async function call(method, path, body) {
  const response = await send(method, path, { body });
  return response.status === 204 ? null : response.json();
}

/** One page of a list that is an array, or an object that has it under `key`. */
export async function page(path, key, { limit, cursor, ...filters }, signal) {
  const query = new URLSearchParams({ limit });
  if (cursor) query.set("cursor", cursor);
  for (const [name, value] of Object.entries(filters)) if (value) query.set(name, value);
  const response = await send("GET", `${path}?${query}`, { signal });
  const body = await response.json();
  return { items: Array.isArray(body) ? body : (body[key] ?? []), next: response.headers.get("x-next-cursor") };
}

/** Types a command of the chat, such as "/usage", to an agent; gives what the daemon answers. */
export function command(agentId, text) {
  return new Promise((resolve, reject) => {
    const url = new URL(`api/agents/${encodeURIComponent(agentId)}/ws`, document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    const key = sessionStorage.getItem(KEY);
    // A key that a subprotocol cannot carry goes into the query.
    const isToken = key && /^[\w!#$%&'*+.^`|~-]+$/.test(key);
    if (key && !isToken) url.searchParams.set("token", key);
    const socket = new WebSocket(url, isToken ? ["bearer", key] : []);
    socket.onopen = () => socket.send(JSON.stringify({ type: "message", content: text }));
    socket.onmessage = ({ data }) => {
      const { type, content } = parse(data);
      if (type === "response") resolve(content);
      else if (type === "error") reject(new Failure(content, 400));
      else return;
      socket.close();
    };
    socket.onclose = () => reject(new Failure("The daemon closed the connection before it answered.", 0));
  });
}

/** Sends `body` and gives each event of the answer to `onEvent(name, data)`, in order. */
export async function stream(path, body, onEvent) {
  const response = await send("POST", path, { body, accept: "text/event-stream" });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser(onEvent);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.push(value);
    }
  } catch {
    throw new Failure("The connection broke off. The agent goes on; its answer will be in the session.", 0);
  }
}

/** The lines of an event stream, however they are cut. */
class EventParser {
  constructor(onEvent) {
    this.onEvent = onEvent;
    this.rest = "";
    this.name = "";
    this.data = [];
  }

  push(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  line(line) {
    if (line === "") {
      if (this.data.length > 0) this.onEvent(this.name || "message", parse(this.data.join("\n")));
      this.name = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.name = value;
    if (field === "data") this.data.push(value);
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
