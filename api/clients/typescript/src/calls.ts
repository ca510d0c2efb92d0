// Requests, retries, streams and pages.

import { ApiError, ConnectionFailedError, StreamError, TimedOutError, errorOf } from "./errors.js";

/** How a request is sent. */
export interface Options {
  /** Milliseconds without a byte of a reply after which a request fails. Default: 600,000, since a turn may take minutes. */
  timeout?: number;
  /** How often a request is sent again after 429, 503 or a broken connection. Default: 2. */
  retries?: number;
  /** Sent as `Idempotency-Key`, which `client.hooks` understands; such a request is also sent again. */
  idempotencyKey?: string;
  headers?: Record<string, string>;
  /** Ends the request, or its stream. */
  signal?: AbortSignal;
}

interface Given {
  query?: object;
  body?: unknown;
  content?: Uint8Array<ArrayBuffer> | Blob;
  file?: File;
}

/** A server-sent event; the route says what its data is. */
export interface StreamEvent {
  name: string;
  data: any;
}

const RETRIED = [429, 503];
// Requests that have the same result when they are sent twice.
const IDEMPOTENT = ["GET", "PUT", "DELETE"];
const WAIT_FIRST = 500;
const WAIT_MAX = 60_000;
const TIMEOUT = 600_000;
const PAGE_LIMIT = 100;

/** Fails a request when no byte comes for a while. */
class Patience {
  readonly #abort = new AbortController();
  readonly #timeout: number;
  readonly signal: AbortSignal;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: Options) {
    this.#timeout = options.timeout ?? TIMEOUT;
    this.signal = options.signal ? AbortSignal.any([options.signal, this.#abort.signal]) : this.#abort.signal;
    this.start();
  }

  start(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(new TimedOutError("no reply came in time")), this.#timeout);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  /** What to throw instead of `cause`. */
  error(cause: unknown): unknown {
    if (this.signal.aborted) return this.signal.reason;
    if (!(cause instanceof TypeError)) return cause;
    const inner = cause.cause instanceof Error ? cause.cause : cause;
    return new ConnectionFailedError(`cannot talk to the daemon: ${inner.message}`, { cause });
  }
}

/** The events of a stream as they come. Leaving the loop closes it. */
export class Stream<E extends StreamEvent = StreamEvent> implements AsyncIterable<E> {
  readonly #response: Response;
  readonly #patience: Patience;

  constructor(response: Response, patience: Patience) {
    this.#response = response;
    this.#patience = patience;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<E> {
    let rest = "";
    try {
      for await (const piece of this.#response.body!.pipeThrough(new TextDecoderStream())) {
        this.#patience.start();
        const blocks = (rest + piece).split("\n\n");
        rest = blocks.pop()!;
        for (const block of blocks) {
          const event = eventOf(block);
          if (event) yield event as E;
        }
      }
    } catch (cause) {
      throw this.#patience.error(cause);
    } finally {
      this.#patience.end();
    }
  }

  /** The pieces of the response of an agent. */
  async *text(): AsyncGenerator<string> {
    for await (const event of this) {
      if (event.name === "chunk") yield event.data.content;
    }
  }

  /** Closes it without reading it. */
  async close(): Promise<void> {
    this.#patience.end();
    await this.#response.body?.cancel();
  }
}

/** `undefined` for comments. */
function eventOf(block: string): StreamEvent | undefined {
  let name = "message";
  const lines: string[] = [];
  for (const line of block.split("\n")) {
    const [, key, value = ""] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
    if (key === "event") name = value;
    if (key === "data") lines.push(value);
  }
  if (lines.length === 0) return undefined;
  const data: unknown = JSON.parse(lines.join("\n"));
  if (name === "error") {
    const { error, code } = data as { error: string; code?: string };
    throw new StreamError(error, code);
  }
  return { name, data };
}

/** What the methods of the groups call. */
export class Calls {
  readonly #baseUrl: string;
  readonly #headers: Record<string, string>;
  readonly #options: Options;

  constructor(baseUrl: string, headers: Record<string, string>, options: Options) {
    this.#baseUrl = baseUrl;
    this.#headers = headers;
    this.#options = options;
  }

  async json<T>(method: string, path: string, given: Given, options?: Options): Promise<T> {
    const text = await this.text(method, path, given, options);
    return (text === "" ? null : JSON.parse(text)) as T;
  }

  text(method: string, path: string, given: Given, options?: Options): Promise<string> {
    return this.#send(method, path, given, options, (response) => response.text());
  }

  content(method: string, path: string, given: Given, options?: Options): Promise<Uint8Array> {
    return this.#send(method, path, given, options, async (response) => new Uint8Array(await response.arrayBuffer()));
  }

  stream<E extends StreamEvent>(method: string, path: string, given: Given, options?: Options): Promise<Stream<E>> {
    return this.#send(method, path, given, options, async (response, patience) => new Stream<E>(response, patience));
  }

  async *pages<T>(path: string, key: string, query: object, options?: Options): AsyncGenerator<T> {
    const wanted: Record<string, unknown> = { limit: PAGE_LIMIT, ...query };
    for (;;) {
      const [page, cursor] = await this.#send("GET", path, { query: wanted }, options, async (response) => [
        (await response.json()) as T[] | Record<string, T[]>,
        response.headers.get("x-next-cursor"),
      ] as const);
      yield* Array.isArray(page) ? page : (page[key] ?? []);
      if (!cursor) return;
      wanted.cursor = cursor;
    }
  }

  async #send<T>(
    method: string,
    path: string,
    given: Given,
    changed: Options | undefined,
    read: (response: Response, patience: Patience) => Promise<T>,
  ): Promise<T> {
    const options = { ...this.#options, ...changed };
    const url = this.#baseUrl + path + queryOf(given.query);
    const request = this.#request(method, given, options);
    for (let attempt = 0; ; attempt += 1) {
      const patience = new Patience(options);
      let error: unknown;
      try {
        const response = await fetch(url, { ...request, signal: patience.signal });
        if (response.ok) {
          const found = await read(response, patience);
          if (!(found instanceof Stream)) patience.end();
          return found;
        }
        error = await errorOf(response);
      } catch (cause) {
        error = patience.error(cause);
      }
      patience.end();
      await sleep(waitBeforeRetry(method, options, attempt, error), options.signal);
    }
  }

  #request(method: string, given: Given, options: Options): RequestInit {
    const headers: Record<string, string> = { ...this.#headers, ...options.headers };
    if (options.idempotencyKey !== undefined) headers["idempotency-key"] = options.idempotencyKey;
    const request: RequestInit = { method, headers };
    if (given.body !== undefined) {
      headers["content-type"] = "application/json";
      request.body = JSON.stringify(given.body);
    } else if (given.file) {
      request.body = new FormData();
      request.body.append("file", given.file);
    } else if (given.content) {
      request.body = given.content;
    }
    return request;
  }
}

function queryOf(query: object = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text && `?${text}`;
}

/** Milliseconds; throws `error` if the request is not sent again. `attempt` counts from 0. */
function waitBeforeRetry(method: string, options: Options, attempt: number, error: unknown): number {
  const isRepeatable = IDEMPOTENT.includes(method) || options.idempotencyKey !== undefined;
  if (attempt >= (options.retries ?? 2) || !isRepeatable) throw error;
  const wait = Math.min(WAIT_MAX, WAIT_FIRST * 2 ** attempt) * (0.5 + Math.random() / 2);
  if (error instanceof ApiError) {
    const wanted = error.retryAfter === undefined ? undefined : error.retryAfter * 1000;
    if (!RETRIED.includes(error.status) || (wanted ?? 0) > WAIT_MAX) throw error;
    return wanted ?? wait;
  }
  if (!(error instanceof ConnectionFailedError) || error instanceof TimedOutError) throw error;
  return wait;
}

function sleep(wait: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, wait);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
  });
}
