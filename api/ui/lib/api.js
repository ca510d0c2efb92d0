// The HTTP API as the pages use it: JSON calls, lists by pages, event streams, uploads and files. Every call waits
// for the API key when the daemon asks for one, and fails with a `Failure` that says what to do.

import { readEvents } from "./sse.js";

const KEY = "agentsvc-api-key";
/** How long a call waits for a world that is being exchanged for another (a restore), in milliseconds. */
const EXCHANGE_MS_MAX = 120_000;

/** A refused or failed call. */
export class Failure extends Error {
  /** `message` is for people; `status` 0 means that the daemon was not reached; `body` is the answer's JSON. */
  constructor(message, status, body = {}) {
    super(message);
    this.status = status;
    /** The JSON of the answer: `code`, `field` and what else the route documents. */
    this.body = body;
    /** The stable word of the answer, such as `budget_exceeded`; "" without one. */
    this.code = body?.code ?? "";
    /** The key at fault, such as `tags[1]`; "" without one. */
    this.field = body?.field ?? "";
  }
}

/** The API key of this tab, or null. It is kept in the session storage only and goes with the tab. */
export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

let askForKey = async () => null;
let asking = null;
let reached = () => {};
/** The key that the daemon took last. */
let taken = null;

/** Says how to get a key: an async function that takes a reason, checks a key and stores it; false when given up. */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

/** Calls `tell("up")` when the daemon answered a call, `tell("away")` when it could not be reached, and `tell("exchanging")` when its world is being exchanged. */
export function onReach(tell) {
  reached = tell;
}

/** The address of an API path, below the address of the page. */
export function address(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI);
}

/**
 * Sends a request and gives the `Response`. On 401 it waits for a key and sends again. `body` is sent as JSON, but a
 * FormData, Blob or string as it is, with `type` for its content type, `headers` are further ones. While a restore is in progress, what
 * only reads waits and is sent again, and so does what is `patient`; everything else is refused as the daemon refused it.
 */
export async function send(method, path, { body, type, signal, accept = "application/json", patient = method === "GET", headers: more = {} } = {}) {
  const began = Date.now();
  for (;;) {
    const used = key.get();
    const headers = { accept, ...more };
    if (used) headers.authorization = `Bearer ${used}`;
    const isRaw = body instanceof FormData || body instanceof Blob || typeof body === "string";
    if (body !== undefined && !isRaw) headers["content-type"] = "application/json";
    if (type) headers["content-type"] = type;
    let response;
    try {
      const sent = body === undefined || isRaw ? body : JSON.stringify(body);
      response = await fetch(address(path), { method, headers, body: sent, signal, cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError" || error.name === "TimeoutError") throw error;
      reached("away");
      throw new Failure("The daemon is unreachable. Check that it is running. This page retries automatically.", 0);
    }
    if (response.ok) {
      reached("up");
      taken = used;
      return response;
    }
    if (response.status === 503) {
      const refusal = await failure(response);
      if (refusal.code !== "exchanging") throw refusal;
      reached("exchanging");
      if (!patient || Date.now() - began > EXCHANGE_MS_MAX) throw refusal;
      await pause(1000 * (Number(response.headers.get("retry-after")) || 1), signal);
      continue;
    }
    reached("up");
    if (response.status !== 401) throw await failure(response);
    // Another call may have got a better key meanwhile: then just try that one.
    if (key.get() === used && !(await newKey(used))) throw await failure(response);
  }
}

/** Calls that need a key at the same time wait for one question. */
function newKey(old) {
  const reason = old === null ? "" : old === taken ? "The API key of this tab is no longer valid. Enter the current key." : "The key is not valid.";
  asking ??= askForKey(reason).finally(() => {
    asking = null;
  });
  return asking;
}

/** Waits `ms`; fails as an aborted call does when `signal` ends. */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(new DOMException("The page was left.", "AbortError"));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve();
    }, ms);
    if (signal?.aborted) leave();
    else signal?.addEventListener("abort", leave, { once: true });
  });
}

/** The `Failure` that a refused response means. */
export async function failure(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // Not JSON: something between this page and the daemon answered.
  }
  let message = typeof body?.error === "string" && body.error !== "" ? body.error : `The daemon returned ${response.status}.`;
  const wait = response.headers.get("retry-after");
  if (wait) message += ` (try again in ${wait} s)`;
  return new Failure(message, response.status, body ?? {});
}

/** A JSON call; gives the parsed body, null for one without. */
export async function call(method, path, body, { signal } = {}) {
  const response = await send(method, path, { body, signal });
  return response.status === 204 ? null : response.json();
}

/** `api.get("/api/status")`: a JSON call without a body. */
export const get = (path, options) => call("GET", path, undefined, options);

/** `path` with the `values` that are not empty as its query. */
export function withQuery(path, values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

/**
 * One page of a list: `page("/api/agents", "agents", { limit: 100, cursor, q })`. The list is an array, or stands under
 * `name`. Gives `items`, `next` (the cursor of the next page, or null), `total` (or null) and the whole `body`.
 */
export async function page(path, name, values = {}, { signal } = {}) {
  const response = await send("GET", withQuery(path, values), { signal });
  const body = await response.json();
  const items = Array.isArray(body) ? body : (body[name] ?? []);
  const total = response.headers.get("x-total-count") ?? body.total ?? null;
  const next = response.headers.get("x-next-cursor") ?? body.next_cursor ?? null;
  return { items, next, total: total === null ? null : Number(total), body };
}

/** Posts `body` and gives each event of the answer to `onEvent(name, data)`, in order, until the stream ends. */
export async function stream(path, body, onEvent, { signal } = {}) {
  const response = await send("POST", path, { body, signal, accept: "text/event-stream", patient: true });
  await follow(response, onEvent);
}

/**
 * Follows a stream of events that a GET gives, until it ends or `signal` does; `onOpen()` is called when it has begun, and
 * `onEvent(name, data, id)` for each event. It goes on behind the event `lastId`, where the route can do so.
 */
export async function events(path, onEvent, { signal, onOpen = () => {}, lastId = null } = {}) {
  const headers = lastId === null ? {} : { "last-event-id": lastId };
  const response = await send("GET", path, { signal, headers, accept: "text/event-stream" });
  onOpen();
  await follow(response, onEvent);
}

async function follow(response, onEvent) {
  try {
    await readEvents(response, onEvent);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    // What was asked for has begun at the daemon.
    throw Object.assign(new Failure("The connection was lost.", 0), { hasBegun: true });
  }
}

/** Sends a file to an agent; gives `file_id`, `filename`, `content_type`, `size`, `path`. */
export async function upload(agentId, file, { signal } = {}) {
  const form = new FormData();
  form.append("file", file, file.name || "pasted");
  return call("POST", `/api/agents/${encodeURIComponent(agentId)}/upload`, form, { signal });
}

/** What a GET answers, as a Blob: for pictures and downloads, which need the key like everything else. */
export async function blob(path, { signal, accept = "*/*" } = {}) {
  return (await send("GET", path, { signal, accept })).blob();
}

/** Offers what a GET answers as a download called `filename`. */
export async function download(path, filename, options) {
  saveAs(await blob(path, options), filename);
}

/** Offers `content` (a Blob) as a download called `filename`. */
export function saveAs(content, filename) {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Types a command of the chat, such as "/usage", to an agent; gives `response` and `thinking`. */
export async function command(agentId, text, sessionId = null, thinking = false) {
  const body = { command: text, session_id: sessionId ?? undefined, thinking };
  return call("POST", `/api/agents/${encodeURIComponent(agentId)}/command`, body);
}
