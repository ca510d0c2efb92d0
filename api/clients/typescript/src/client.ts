import { Groups } from "./api/index.js";
import { Calls, type Options } from "./calls.js";

export interface ClientOptions extends Omit<Options, "idempotencyKey"> {
  /** Default: the environment variable `AGENTSVC_API_KEY`. */
  apiKey?: string;
  /** Default: the environment variable `AGENTSVC_URL`, else `http://127.0.0.1:4545`. */
  baseUrl?: string;
}

/** A client of one daemon. It has one property for each group of routes: `client.agents.list()`. */
export class Client extends Groups {
  constructor({ apiKey, baseUrl, ...options }: ClientOptions = {}) {
    // Browsers have none.
    const { process } = globalThis as { process?: { env: Record<string, string | undefined> } };
    const key = apiKey ?? process?.env.AGENTSVC_API_KEY;
    const url = baseUrl ?? process?.env.AGENTSVC_URL ?? "http://127.0.0.1:4545";
    super(new Calls(url.replace(/\/+$/, ""), key ? { authorization: `Bearer ${key}` } : {}, options));
  }
}
