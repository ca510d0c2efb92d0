//! A scripted identity provider.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::changed;
use crate::support::daemon::Daemon;
use crate::support::model_server::{ModelServer, Received, Reply};

/// The key of the configuration.
pub(super) const KEY: &str = "the-key-of-the-configuration-0123456789";
/// The client secret, and the variable that has it.
pub(super) const SECRET: (&str, &str) = ("SIGN_IN_TEST_SECRET", "client-secret-canary");

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// How tokens are signed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Signature {
    Right,
    /// `alg` is `none`.
    None,
    /// With the public key as a shared secret.
    PublicKey,
    /// By a key that is not published.
    Foreign,
}

/// What the provider answers from now on, and what it gave out.
pub(super) struct Script {
    /// Members of identity tokens, of the discovery document and of the profile that are other than usual.
    pub(super) claims: Value,
    pub(super) document: Value,
    pub(super) profile: Value,
    pub(super) signature: Signature,
    /// Answers in place of the usual ones, by path.
    pub(super) instead: BTreeMap<String, Reply>,
    key: EcdsaKeyPair,
    key_id: usize,
    /// Codes with the challenge, the redirect URI and the nonce of their sign-in.
    codes: BTreeMap<String, (String, String, String)>,
    pub(super) nonces: Vec<String>,
    pub(super) tokens: Vec<String>,
}

/// The provider.
pub(super) struct Provider {
    pub(super) server: ModelServer,
    script: Arc<Mutex<Script>>,
}

/// The names and values of a form or query.
pub(super) fn pairs(text: &str) -> BTreeMap<String, String> {
    reqwest::Url::parse(&format!("http://h/?{text}")).unwrap().query_pairs().into_owned().collect()
}

fn new_key() -> EcdsaKeyPair {
    let (of, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let pair = EcdsaKeyPair::generate_pkcs8(of, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(of, pair.as_ref(), &random).unwrap()
}

impl Provider {
    pub(super) fn start() -> Self {
        let script = Script {
            claims: Value::Null,
            document: Value::Null,
            profile: Value::Null,
            signature: Signature::Right,
            instead: BTreeMap::new(),
            key: new_key(),
            key_id: 1,
            codes: BTreeMap::new(),
            nonces: Vec::new(),
            tokens: Vec::new(),
        };
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

    pub(super) fn get<T>(&self, read: impl FnOnce(&Script) -> T) -> T {
        read(&self.script.lock().unwrap())
    }

    /// Signs with another key from now on; the one before is gone.
    pub(super) fn rotate(&self) {
        self.set(|script| (script.key, script.key_id) = (new_key(), script.key_id + 1));
    }

    /// The configuration of a daemon at which people of this provider sign in, followed by `more` keys of `[external_auth]`.
    pub(super) fn config(&self, more: &str) -> String {
        format!(
            "api_key = \"{KEY}\"\nrate_limit_per_second = 1000000\n[web.fetch]\nssrf_allowed_hosts = [\"{}\"]\n[external_auth]\n\
             enabled = true\nissuer_url = \"{}\"\nclient_id = \"me\"\nclient_secret_env = \"{}\"\n{more}",
            self.server.address(),
            self.root(),
            SECRET.0
        )
    }

    /// A daemon at which people of `example.com` sign in; it has no key of its own.
    pub(super) fn daemon(&self, more: &str) -> Daemon {
        let more = format!("allowed_domains = [\"example.com\"]\n{more}");
        Daemon::with_env(&self.config(&more), &[SECRET])
    }

    /// The person agrees at this address: the path and query that the browser is sent back to.
    pub(super) fn agree(&self, location: &str) -> String {
        let (place, query) = location.split_once('?').unwrap();
        assert_eq!(place, format!("{}/authorize", self.root()));
        let asked = pairs(query);
        assert_eq!((asked["response_type"].as_str(), asked["code_challenge_method"].as_str()), ("code", "S256"));
        assert_eq!((asked["client_id"].as_str(), asked["scope"].as_str()), ("me", "openid email profile"));
        let mut script = self.script.lock().unwrap();
        let code = format!("code-canary-{}", script.nonces.len());
        script.nonces.push(asked["nonce"].clone());
        let of = (asked["code_challenge"].clone(), asked["redirect_uri"].clone(), asked["nonce"].clone());
        script.codes.insert(code.clone(), of);
        let path = &asked["redirect_uri"][asked["redirect_uri"].find("/api").unwrap()..];
        format!("{path}?code={code}&state={}", asked["state"])
    }
}

impl Script {
    fn answer(&mut self, root: &str, request: &Received) -> Reply {
        if let Some(reply) = self.instead.get(&request.path) {
            return reply.clone();
        }
        match request.path.as_str() {
            "/.well-known/openid-configuration" => {
                let body = json!({ "issuer": root, "authorization_endpoint": format!("{root}/authorize"),
                    "token_endpoint": format!("{root}/token"), "jwks_uri": format!("{root}/keys"),
                    "userinfo_endpoint": format!("{root}/userinfo"),
                    "introspection_endpoint": format!("{root}/introspect") });
                Reply::json(200, &changed(body, &self.document))
            }
            "/keys" => Reply::json(200, &json!({ "keys": [self.public()] })),
            "/token" => self.token(root, request),
            "/userinfo" => {
                let usual = json!({ "sub": "1", "email": "ann@example.com", "email_verified": true });
                Reply::json(200, &changed(usual, &self.profile))
            }
            "/introspect" => {
                let form = pairs(request.body.as_str().unwrap_or_default());
                let is_known = form["token"] == "opaque-canary";
                Reply::json(200, &json!({ "active": is_known, "sub": "1", "scope": "a", "secret": "not shown" }))
            }
            _ => Reply::raw(404, &[], ""),
        }
    }

    fn public(&self) -> Value {
        let point = self.key.public_key().as_ref();
        json!({ "kty": "EC", "crv": "P-256", "use": "sig", "kid": format!("k{}", self.key_id),
            "x": encoded(&point[1..33]), "y": encoded(&point[33..]) })
    }

    fn token(&mut self, root: &str, request: &Received) -> Reply {
        let form = pairs(request.body.as_str().unwrap_or_default());
        let basic = base64::engine::general_purpose::STANDARD.encode(format!("me:{}", SECRET.1));
        let authorization = request.headers.get("authorization").and_then(|value| value.to_str().ok());
        assert_eq!(authorization, Some(format!("Basic {basic}").as_str()));
        let challenge = encoded(Sha256::digest(form["code_verifier"].as_bytes()));
        let known = self.codes.remove(&form["code"]);
        let Some((_, _, nonce)) = known.filter(|of| of.0 == challenge && of.1 == form["redirect_uri"]) else {
            return Reply::json(400, &json!({ "error": "invalid_grant", "error_description": "echo canary" }));
        };
        let claims = json!({ "iss": root, "aud": "me", "sub": "1", "nonce": nonce, "iat": now(), "exp": now() + 300,
            "email": "Ann@Example.com", "email_verified": true, "name": "Ann" });
        let token = self.sign(&changed(claims, &self.claims));
        self.tokens.push(token.clone());
        Reply::json(200, &json!({ "access_token": "access-canary", "token_type": "Bearer", "id_token": token }))
    }

    /// A token that says this.
    pub(super) fn sign(&self, claims: &Value) -> String {
        let algorithm = match self.signature {
            Signature::None => "none",
            Signature::PublicKey => "HS256",
            Signature::Right | Signature::Foreign => "ES256",
        };
        let header = json!({ "alg": algorithm, "kid": format!("k{}", self.key_id) });
        let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let signature = match self.signature {
            Signature::None => Vec::new(),
            Signature::PublicKey => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.public_key().as_ref());
                hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
            }
            Signature::Right => self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap().as_ref().to_vec(),
            Signature::Foreign => new_key().sign(&SystemRandom::new(), signed.as_bytes()).unwrap().as_ref().to_vec(),
        };
        format!("{signed}.{}", encoded(signature))
    }

    /// The claims of a token that is good now.
    pub(super) fn good(root: &str) -> Value {
        json!({ "iss": root, "aud": "me", "sub": "1", "iat": now(), "exp": now() + 300, "scope": "a b" })
    }
}
