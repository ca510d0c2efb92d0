//! A scripted MCP server over HTTP that asks for a sign-in, and its authorization server, on one address.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::daemon::{Daemon, text};
use crate::support::http::{Client, Reply as Answer};
use crate::support::model_server::{Gate, ModelServer, Received, Reply};
use crate::support::{changed, until};

/// What the servers answer from now on, and what they gave out.
#[derive(Default)]
pub(super) struct Script {
    /// Members of metadata that are other than usual: of the resource, and of the authorization server.
    pub(super) resource: Value,
    pub(super) issuer: Value,
    /// The challenge in place of the usual one.
    pub(super) challenge: Option<String>,
    /// Answers in place of the usual ones, by path.
    pub(super) instead: BTreeMap<String, Reply>,
    /// Seconds that access tokens are said to last.
    pub(super) expires_in: u64,
    /// Members of the answer to a registration.
    pub(super) client: Value,
    /// What a refresh is answered with.
    pub(super) refresh: Option<(u16, Value)>,
    /// Token requests wait here.
    pub(super) gate: Option<Gate>,
    /// Access tokens that are good.
    pub(super) good: BTreeSet<String>,
    /// Every refresh token is good for one use.
    pub(super) refresh_tokens: BTreeSet<String>,
    /// Codes with the challenge of their verifier and the redirect URI.
    codes: BTreeMap<String, (String, String)>,
    count: usize,
}

/// The servers.
pub(super) struct Server {
    pub(super) server: ModelServer,
    pub(super) script: Arc<Mutex<Script>>,
}

fn form(request: &Received) -> BTreeMap<String, String> {
    let body = request.body.as_str().unwrap_or_default();
    pairs(body)
}

/// The names and values of a form or query.
pub(super) fn pairs(text: &str) -> BTreeMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://h/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

impl Server {
    pub(super) fn start() -> Self {
        let script = Script { expires_in: 3_600, ..Script::default() };
        let (server, script) = (ModelServer::start(), Arc::new(Mutex::new(script)));
        let (root, shared) = (format!("http://{}", server.address()), Arc::clone(&script));
        server.respond(move |request| shared.lock().unwrap().answer(&root, request));
        Self { server, script }
    }

    pub(super) fn root(&self) -> String {
        format!("http://{}", self.server.address())
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap());
    }

    /// The lines of the configuration that make it the server `name`.
    pub(super) fn config(&self, name: &str, rest: &str) -> String {
        format!(
            "\n[[mcp_servers]]\nname = \"{name}\"\n[mcp_servers.transport]\ntype = \"http\"\nurl = \"{}/mcp?key=url-canary\"\n{rest}",
            self.root()
        )
    }

    /// The forms that were posted to `path` so far.
    pub(super) fn forms(&self, path: &str) -> Vec<BTreeMap<String, String>> {
        self.requests(path).iter().map(form).collect()
    }

    pub(super) fn requests(&self, path: &str) -> Vec<Received> {
        self.server.requests().into_iter().filter(|request| request.path == path).collect()
    }

    /// How many token requests of this kind came.
    pub(super) fn grants(&self, kind: &str) -> usize {
        self.forms("/token").iter().filter(|form| form.get("grant_type").is_some_and(|it| it == kind)).count()
    }

    /// The user signs in at this URL and agrees: the path and query that the browser is sent to.
    pub(super) fn agree(&self, auth_url: &str) -> String {
        let (place, query) = auth_url.split_once('?').unwrap();
        assert_eq!(place, format!("{}/authorize", self.root()));
        let asked = pairs(query);
        let mut script = self.script.lock().unwrap();
        script.count += 1;
        let code = format!("code-canary-{}", script.count);
        script.codes.insert(code.clone(), (asked["code_challenge"].clone(), asked["redirect_uri"].clone()));
        format!("{}?code={code}&state={}", path_of(&asked["redirect_uri"]), asked["state"])
    }
}

/// A URL without its scheme and host.
pub(super) fn path_of(url: &str) -> String {
    let rest = url.split_once("://").unwrap().1;
    rest[rest.find('/').unwrap()..].to_owned()
}

impl Script {
    fn answer(&mut self, root: &str, request: &Received) -> Reply {
        if let Some(reply) = self.instead.get(&request.path) {
            return reply.clone();
        }
        match request.path.as_str() {
            "/.well-known/oauth-protected-resource/mcp" => {
                let body = json!({ "resource": format!("{root}/mcp"), "authorization_servers": [root],
                    "scopes_supported": ["read", "write"] });
                Reply::json(200, &changed(body, &self.resource))
            }
            "/.well-known/oauth-authorization-server" => {
                let body = json!({ "issuer": root, "authorization_endpoint": format!("{root}/authorize"),
                    "token_endpoint": format!("{root}/token"), "registration_endpoint": format!("{root}/register"),
                    "revocation_endpoint": format!("{root}/revoke"), "code_challenge_methods_supported": ["S256"] });
                Reply::json(200, &changed(body, &self.issuer))
            }
            "/register" => {
                self.count += 1;
                Reply::json(201, &changed(json!({ "client_id": format!("client-{}", self.count) }), &self.client))
            }
            "/token" => {
                let (status, body) = self.token(&form(request));
                let reply = Reply::json(status, &body);
                self.gate.as_ref().map_or(reply.clone(), |gate| reply.gated(gate))
            }
            "/revoke" => {
                self.refresh_tokens.remove(&form(request)["token"]);
                self.good.clear();
                Reply::raw(200, &[], "")
            }
            "/mcp" => self.mcp(root, request),
            _ => Reply::raw(404, &[], ""),
        }
    }

    fn token(&mut self, form: &BTreeMap<String, String>) -> (u16, Value) {
        let refused = || (400, json!({ "error": "invalid_grant", "error_description": "echo canary" }));
        match form["grant_type"].as_str() {
            "authorization_code" => {
                let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
                let known = self.codes.remove(&form["code"]);
                if known != Some((challenge, form["redirect_uri"].clone())) {
                    return refused();
                }
            }
            "refresh_token" => {
                if let Some((status, body)) = &self.refresh {
                    return (*status, body.clone());
                }
                if !self.refresh_tokens.remove(&form["refresh_token"]) {
                    return refused();
                }
            }
            _ => return refused(),
        }
        self.count += 1;
        let (access, refresh) = (format!("access-canary-{}", self.count), format!("refresh-canary-{}", self.count));
        self.good.insert(access.clone());
        self.refresh_tokens.insert(refresh.clone());
        let body = json!({ "access_token": access, "token_type": "Bearer", "refresh_token": refresh,
            "expires_in": self.expires_in, "scope": "read write" });
        (200, body)
    }

    fn mcp(&self, root: &str, request: &Received) -> Reply {
        let token = request.headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        if !token.is_some_and(|token| self.good.contains(token)) {
            let usual = format!("Bearer resource_metadata=\"{root}/.well-known/oauth-protected-resource/mcp\"");
            let challenge = self.challenge.clone().unwrap_or(usual);
            return Reply::raw(401, &[("www-authenticate", &challenge)], "");
        }
        let result = match request.body["method"].as_str() {
            Some("initialize") => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" } }),
            Some("tools/list") => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
            Some("tools/call") => json!({ "content": [{ "type": "text", "text": "called" }] }),
            Some("ping") => json!({}),
            Some(_) => return Reply::raw(202, &[], ""),
            None => return Reply::raw(405, &[], ""),
        };
        Reply::json(200, &json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": result }))
    }
}

/// The state of a sign-in.
#[track_caller]
pub(super) fn auth(client: &Client, name: &str) -> Value {
    let answer = client.get(&format!("/api/mcp/servers/{name}/auth/status")).expect(200);
    assert_eq!(answer["server"], name);
    answer["auth"].clone()
}

#[track_caller]
pub(super) fn until_state(client: &Client, name: &str, state: &str) -> Value {
    // Servers of the configuration begin a moment after the daemon answers.
    let path = format!("/api/mcp/servers/{name}/auth/status");
    until(state, || {
        let answer = client.get(&path);
        (answer.status == 200).then(|| answer.expect(200)["auth"].clone()).filter(|auth| auth["state"] == state)
    })
}

/// Starts a sign-in; gives where the user signs in.
#[track_caller]
pub(super) fn start(client: &Client, name: &str) -> String {
    text(&client.poke(&format!("/api/mcp/servers/{name}/auth/start")).expect(200)["auth_url"])
}

/// Signs in, all the way.
#[track_caller]
pub(super) fn sign_in(server: &Server, daemon: &Daemon, name: &str) -> Answer {
    until_state(daemon, name, "needs_auth");
    let reply = daemon.get(&server.agree(&start(daemon, name)));
    assert_eq!(reply.expect(200)["auth"]["state"], "authorized", "{}", reply.text());
    connected(daemon, name);
    reply
}

#[track_caller]
pub(super) fn connected(daemon: &Daemon, name: &str) -> Value {
    until("the server is connected", || {
        let answer = daemon.get(&format!("/api/mcp/servers/{name}"));
        (answer.status == 200).then(|| answer.expect(200)).filter(|server| server["connected"] == true)
    })
}
