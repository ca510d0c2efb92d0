// The TypeScript client against a daemon, and against a server that refuses requests: <daemon> <key> <server>.

import {
  type Answer,
  ApiError,
  AuthenticationError,
  Client,
  ConflictError,
  ConnectionFailedError,
  InvalidRequestError,
  NotFoundError,
  RateLimitError,
  StreamError,
  TimedOutError,
  UnavailableError,
} from "agentsvc-client";

declare const process: { argv: string[] };
const [url, key, refusingUrl] = process.argv.slice(2) as [string, string, string];
const MODEL = '[model]\nprovider = "builtin"\nmodel = "builtin"\n';

function assert(holds: unknown, seen?: unknown): asserts holds {
  if (!holds) throw new Error(`does not hold: ${JSON.stringify(seen)}`);
}

function equal(seen: unknown, expected: unknown): void {
  assert(JSON.stringify(seen) === JSON.stringify(expected), [seen, expected]);
}

async function thrown<E extends Error>(kind: new (...given: never[]) => E, call: () => Promise<unknown>): Promise<E> {
  try {
    await call();
  } catch (error) {
    assert(error instanceof kind && error.name === kind.name, String(error));
    return error;
  }
  throw new Error(`no ${kind.name}`);
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function daemon(client: Client): Promise<void> {
  const agents: string[] = [];
  for (let n = 0; n < 5; n += 1) {
    agents.push((await client.agents.create({ manifest_toml: `name = "ts${n}"\n${MODEL}` })).agent_id);
  }
  const agent = agents[0]!;
  const reply: Answer = await client.agents.sendMessage(agent, { message: "hello", thinking: false });
  assert(reply.response.includes("offline model") && reply.input_tokens > 0, reply);

  const events = await all(await client.agents.streamMessage(agent, { message: "hello" }));
  equal(events.slice(-2).map((event) => event.name), ["chunk", "done"]);
  equal(events.map((event) => (event.name === "chunk" ? event.data.content : "")).join(""), reply.response);
  equal((await all((await client.agents.streamMessage(agent, { message: "hello" })).text())).join(""), reply.response);
  for await (const event of await client.world.stream()) {
    equal(event.name, "world");
    break;
  }
  const aborted = client.world.stream({ signal: AbortSignal.timeout(50) });
  equal(await aborted.then(all).catch((error: Error) => error.name), "TimeoutError");

  const names = (await all(client.agents.listAll({ limit: 2 }))).map((item) => item.name);
  equal(names, (await client.agents.list()).map((item) => item.name));
  assert(names.includes("ts4") && names.length > 4, names);
  for (const label of ["a", "b", "ü/%?"]) await client.agents.createSession(agent, { label });
  const labels = (await all(client.sessions.listAll({ agent_id: agent, limit: 1 }))).map((session) => session.label);
  assert(["a", "b", "ü/%?"].every((label) => labels.includes(label)), labels);
  equal((await client.agents.getSessionByLabel(agent, "ü/%?")).label, "ü/%?");
  equal((await all(client.sessions.listAllMessages(reply.session_id, { limit: 1 }))).length, 6);

  const upload = await client.agents.uploadFile(agent, new File(["text"], "ü.txt", { type: "text/plain" }));
  equal(upload.filename, "ü.txt");
  equal(new TextDecoder().decode(await client.system.getUpload(upload.file_id)), "text");
  await client.agents.writeFile(agent, "SOUL.md", new TextEncoder().encode("kind"));
  equal(new TextDecoder().decode(await client.agents.getFile(agent, "SOUL.md")), "kind");
  assert((await client.system.getMetrics()).includes("agentsvc_"));
  equal(await client.keys.delete((await client.keys.create({ name: "k2", role: "admin" })).id), null);

  const wrong = await thrown(InvalidRequestError, () => client.agents.create({ manifest_toml: "name = 3" }));
  equal([wrong.status, wrong.field, wrong.body.line], [400, "manifest_toml", 1]);
  assert(wrong.requestId && wrong.message.includes("expected a string"), wrong);
  await thrown(ConflictError, () => client.agents.create({ manifest_toml: 'name = "ts0"' }));
  const gone = await thrown(NotFoundError, () => client.agents.get("00000000-0000-0000-0000-000000000000"));
  assert(gone instanceof ApiError && gone.status === 404, gone);
  await thrown(AuthenticationError, () => new Client({ apiKey: "wrong", baseUrl: url }).agents.list());
}

async function refusing(client: Client): Promise<void> {
  const start = performance.now();
  equal(await client.agents.list(), []);
  assert(performance.now() - start >= 1000, "it waits as long as it is told");
  await thrown(UnavailableError, () => client.agents.create({ manifest_toml: "" }));
  await client.hooks.wake({ text: "hello" }, { idempotencyKey: "build-1" });
  await thrown(UnavailableError, () => client.system.getVersion());
  const limited = await thrown(RateLimitError, () => client.system.getStatus());
  equal([limited.retryAfter, limited.code, limited.message], [3600, "too_many", "slow down"]);
  await thrown(TimedOutError, () => client.system.getReady({ timeout: 200 }));
  const seen: unknown[] = [];
  await thrown(ConnectionFailedError, async () => {
    for await (const event of await client.logs.streamLogs()) seen.push(event);
  });
  equal(seen, [{ name: "log", data: { n: 1 } }]);
  const broken = await thrown(StreamError, async () => all(await client.world.stream()));
  equal([broken.message, broken.code], ["it broke", "broken"]);
  const nowhere = new Client({ baseUrl: "http://127.0.0.1:9", retries: 0 });
  await thrown(ConnectionFailedError, () => nowhere.system.getHealth());
}

await daemon(new Client({ apiKey: key, baseUrl: url }));
await refusing(new Client({ baseUrl: refusingUrl }));
console.log("passed");
