// An identity provider that other people wrote (npm oidc-provider), for one client; anyone may sign in. It prints its port, and
// answers commands of standard input: "rotate" signs with another key from then on, "expire" gives identity tokens that have
// expired, and "renew" such as have not.
//
// usage: node provider.mjs <folder with node_modules> <port of the daemon>

import { createRequire } from "node:module";
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder, daemon] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));

/** Seconds that an identity token lasts. */
let lasts = 300;
let count = 0;
function newKey() {
  count += 1;
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid: `key-${count}`, use: "sig", alg: "RS256" };
}

const server = createServer();
server.listen(0, "127.0.0.1");
await new Promise((resolve) => server.on("listening", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

function start() {
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "me", client_secret: "client-secret-canary", redirect_uris: ["127.0.0.1", "localhost"].map((host) => `http://${host}:${daemon}/api/auth/callback`),
      response_types: ["code"], grant_types: ["authorization_code"],
    }],
    jwks: { keys: [newKey()] },
    cookies: { keys: ["a key of a test"] },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, name: "A person" }),
    }),
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true }, introspection: { enabled: true } },
    ttl: { AccessToken: 300, AuthorizationCode: 60, IdToken: () => lasts, Interaction: 300, Session: 300, Grant: 300 },
  });
  return provider.callback();
}

let answer = start();
server.on("request", (request, response) => answer(request, response));
console.log(server.address().port);
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "rotate") answer = start();
  // More than the clocks may differ.
  if (line === "expire") lasts = -120;
  if (line === "renew") lasts = 300;
  console.log(line);
}
process.exit(0);
