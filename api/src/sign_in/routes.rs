//! Single sign-on: where people are sent, and where they come back.

use std::sync::Arc;
use std::time::Instant;

use agentsvc_components::kernel::scope::Scope;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::people::Identity;
use agentsvc_systems::sign_in::{SignIn, SignedIn, Who};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE};
use hyper::{Method, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::audit_kinds;
use super::provider::{Answer, Policy, SignIns, Vouched};
use super::shape::{CallbackBody, IntrospectBody, Introspected, Person, Providers, Session};
use crate::audit::shared::{Gathered, SharedEntries};
use crate::http::blocking;
use crate::http::call::Call;
use crate::http::cookie::{self, Cookie, SESSION};
use crate::http::error::Error;
use crate::http::failures::Failures;
use crate::http::plain_page::{self, page};
use crate::http::query_string;
use crate::http::rate::ClientKey;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::people::keys;
use crate::people::routes::PREFIX as KEY_PREFIX;

/// What a sign-in costs the client's rate budget: it asks other servers.
const COST: u32 = 10;
/// Bytes of a parameter that an identity provider sends, and of a token to look at.
const PARAMETER_BYTES_MAX: usize = 16 << 10;
/// What tokens of sessions begin with, so that people and scanners tell them from other secrets.
const PREFIX: &str = "asvs_";
/// The cookie that binds a sign-in to the browser that began it, and for how long it is kept.
const BINDING: Cookie<'static> = Cookie { name: "agentsvc_sign_in", is_lax: true };
const BINDING_SECS: u64 = 600;

const LOGIN: &[Reply] = &[
    Reply::empty(307, "to the identity provider"),
    Reply::error(404, "there is no such provider"),
    Reply::error(502, "the identity provider cannot be reached"),
    Reply::error(503, "single sign-on is off"),
];
const CALLBACK: &[Reply] = &[
    Reply::json::<Session>(200, "signed in"),
    Reply::empty(303, "signed in, for `Accept: text/html`: to the page, with the cookie of the session"),
    Reply::error(400, "the sign-in is unknown, was completed, or has expired"),
    Reply::error(401, "the person or the identity provider declined"),
    Reply::error(403, "the account may not sign in here, or its mail address is not verified"),
    Reply::error(502, "the identity provider failed"),
];

pub(super) const ROUTES: &[Route] = &[
    Route::get("/api/auth/providers", "List how people can sign in", |call| Box::pin(providers(call)))
        .public()
        .replies(&[Reply::json::<Providers>(200, "the providers")]),
    Route::get("/api/auth/login", "Sign in at the default identity provider", |call| Box::pin(login(call, false)))
        .public()
        .linked()
        .cost(COST)
        .replies(LOGIN),
    Route::get("/api/auth/login/{provider}", "Sign in at an identity provider", |call| Box::pin(login(call, true)))
        .public()
        .linked()
        .cost(COST)
        .replies(LOGIN),
    Route::get("/api/auth/callback", "Complete a sign-in", |call| Box::pin(callback(call)))
        .public()
        .linked()
        .with_room()
        .cost(COST)
        .query::<CallbackBody>()
        .replies(CALLBACK),
    Route::post("/api/auth/callback", "Complete a sign-in with a form or JSON", |call| Box::pin(callback(call)))
        .public()
        .linked()
        .cost(COST)
        .body::<CallbackBody>()
        .replies(CALLBACK),
    Route::post("/api/auth/introspect", "Look at a token", |call| Box::pin(introspect(call)))
        .scoped(Scope::Read)
        .reaching(Reach::All)
        .without_room()
        .cost(COST)
        .body::<IntrospectBody>()
        .replies(&[
            Reply::json::<Introspected>(200, "what it is good for; `active` is false for one that is not accepted"),
            Reply::error(404, "there is no such provider"),
            Reply::error(502, "the identity provider failed"),
        ]),
];

pub(super) fn sign_ins(call: &Call) -> Result<Arc<dyn SignIns>, Error> {
    call.api.service::<dyn SignIns>()
}

async fn providers(call: Call) -> Result<Response, Error> {
    let Policy { providers, is_enabled, has_passwords, .. } = sign_ins(&call)?.policy();
    reply::ok(&Providers { enabled: is_enabled, password: has_passwords, providers })
}

async fn login(call: Call, is_named: bool) -> Result<Response, Error> {
    let is_page = plain_page::is_wanted(call.headers());
    let back = if is_named { "../../../" } else { "../../" };
    match begin(&call, is_named, is_page).await {
        Ok((location, binding)) => {
            let mut response = redirect(StatusCode::TEMPORARY_REDIRECT, &location)?;
            let binding = binding.and_then(|binding| BINDING.set(&call.parts, &binding, BINDING_SECS));
            response.headers_mut().extend(binding.map(|cookie| (SET_COOKIE, cookie)));
            Ok(response)
        }
        Err(error) if is_page => {
            Ok(private(page(error.status(), "Sign-in failed", error.message(), Some((back, "Back to agentsvc")))))
        }
        Err(error) => Err(error),
    }
}

async fn begin(call: &Call, is_named: bool, is_page: bool) -> Result<(String, Option<String>), Error> {
    let provider = if is_named { Some(call.param("provider")?.into_owned()) } else { None };
    let scheme = if cookie::is_this_machine(&call.parts) { "http" } else { "https" };
    let base = format!("{scheme}://{}", cookie::host(&call.parts));
    let binding = if is_page { Some(keys::make(call, "")?.0) } else { None };
    let location = sign_ins(call)?.begin(ClientKey::of(call.peer), provider, base, binding.clone()).await?;
    Ok((location, binding))
}

fn redirect(status: StatusCode, location: &str) -> Result<Response, Error> {
    let location = HeaderValue::from_str(location).map_err(|_| Error::internal("the address cannot be sent"))?;
    let mut response = reply::no_content();
    *response.status_mut() = status;
    response.headers_mut().insert(LOCATION, location);
    Ok(private(response))
}

/// The address of the request, or the answer, holds what is nobody else's.
pub(super) fn private(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

async fn callback(call: Call) -> Result<Response, Error> {
    let is_page = plain_page::is_wanted(call.headers());
    // Previews of links ask with `HEAD`; a code is good for one use.
    if call.parts.method == Method::HEAD {
        return Ok(private(page(StatusCode::OK, "Sign-in", "Open this page to complete the sign-in.", None)));
    }
    let parts = call.parts.clone();
    // To its end, also when the client goes away: a code is good for one use.
    let done = blocking::spawn(async move { finish(&call, is_page).await });
    let done = done.await.unwrap_or_else(|_| Err(Error::internal("internal error")));
    match done {
        Ok(session) if is_page => {
            let mut response = redirect(StatusCode::SEE_OTHER, "../../")?;
            let token = session.token.unwrap_or_default();
            let cookies = [SESSION.set(&parts, &token, session.expires_in), BINDING.set(&parts, "", 0)];
            for cookie in cookies.into_iter().flatten() {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            Ok(response)
        }
        Ok(session) => Ok(private(reply::ok(&session)?)),
        Err(error) if is_page => {
            Ok(private(page(error.status(), "Sign-in failed", error.message(), Some(("../../", "Back to agentsvc")))))
        }
        Err(error) => Err(error),
    }
}

/// What the identity provider sent: in the query, as a form, or as JSON.
fn sent(call: &Call) -> Result<CallbackBody, Error> {
    if call.parts.method == Method::GET {
        return call.query();
    }
    let kind = call.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return call.json();
    }
    let body = std::str::from_utf8(&call.body).map_err(|_| Error::bad_request("the form is not valid UTF-8 text"))?;
    query_string::read(body)
}

async fn finish(call: &Call, is_page: bool) -> Result<Session, Error> {
    let (failures, client) = (call.api.state::<FailedSignIns>(), ClientKey::of(call.peer));
    failures.0.check_for(client, Instant::now(), "failed sign-ins")?;
    let CallbackBody { state, code, error, error_description, iss } = sent(call)?;
    let all = [("state", &state), ("code", &code), ("error", &error), ("iss", &iss)];
    for (name, value) in all.into_iter().chain([("error_description", &error_description)]) {
        if value.as_ref().is_some_and(|value| value.len() > PARAMETER_BYTES_MAX) {
            return Err(Error::bad_field(name, format!("{name} is longer than {PARAMETER_BYTES_MAX} bytes")));
        }
    }
    let state = state.ok_or_else(|| Error::bad_field("state", "state is missing"))?;
    if code.is_none() && error.is_none() {
        return Err(Error::bad_field("code", "code is missing"));
    }
    let binding = BINDING.of(&call.parts).map(str::to_owned);
    let answer = Answer { client, state, code, error, iss, binding, must_be_bound: is_page };
    let vouched = match sign_ins(call)?.finish(answer).await {
        Ok(vouched) => vouched,
        Err(error) => {
            if error.is_clients() {
                failures.0.add(client, Instant::now());
            }
            return Err(refused(call, "", error.into()).await);
        }
    };
    let Vouched { issuer, email, may_join, profile } = vouched;
    let identity = Identity { issuer, subject: profile.subject.to_string(), email, may_join };
    let session = start(call, Who::Identity(identity), profile).await;
    if session.as_ref().is_err_and(|error| error.status() == StatusCode::FORBIDDEN) {
        failures.0.add(client, Instant::now());
    }
    session
}

/// Begins the session of a person who was checked.
pub(super) async fn start(
    call: &Call,
    who: Who,
    profile: agentsvc_components::sign_in::Profile,
) -> Result<Session, Error> {
    let secs = sign_ins(call)?.policy().session_secs;
    let (token, hash) = keys::make(call, PREFIX)?;
    let provider = profile.provider.clone();
    let lasts_ms = i64::try_from(secs.saturating_mul(1_000)).unwrap_or(i64::MAX);
    let command = SignIn { who, profile, hash, client: call.peer.to_string(), lasts_ms };
    let done: SignedIn = match keys::change(call, command).await {
        Ok(done) => done,
        Err(error) => return Err(refused(call, &provider, error).await),
    };
    let session_id = done.session.id.0;
    Ok(Session {
        token: Some(token),
        token_type: "Bearer",
        expires_in: secs,
        session_id,
        provider,
        user: Person::from(done),
    })
}

/// Clients whose sign-ins at identity providers fail; each further one makes the next wait longer. They are not those of wrong keys:
/// a page of another site can have its visitors come back from no sign-in.
#[derive(Default)]
struct FailedSignIns(Failures);

/// Refused sign-ins that wait for their entry.
#[derive(Default)]
struct RefusedSignIns(Arc<SharedEntries>);

/// Puts on record that someone was refused, whoever they are.
pub(super) async fn refused(call: &Call, provider: &str, error: Error) -> Error {
    if matches!(error.status(), StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED) {
        let (kind, of) = (audit_kinds::SIGN_IN_REFUSED, (call.peer, Some(error.message())));
        let shared = |all: Gathered| json!({ "refusals": all.count, "peers": all.peers, "reasons": all.reasons });
        if call.api.state::<RefusedSignIns>().0.is_first(&call.api, of, kind.clone(), shared) {
            let details = json!({ "peer": call.peer.to_string(), "provider": provider, "reason": error.message() });
            if let Err(unrecorded) = call.ask(NoteAction { kind, agent: None, details }).await {
                return unrecorded;
            }
        }
    }
    error
}

async fn introspect(call: Call) -> Result<Response, Error> {
    let IntrospectBody { token, provider } = call.json()?;
    if token.is_empty() || token.len() > PARAMETER_BYTES_MAX {
        let text = format!("token must have 1 to {PARAMETER_BYTES_MAX} bytes");
        return Err(Error::bad_field("token", text));
    }
    let own = if provider.is_none() { call.api.access.keys.find(&Sha256::digest(&token).into()) } else { None };
    let Some(grant) = own else {
        // What is of this daemon, or was, is not sent elsewhere.
        let is_ours =
            token.starts_with(PREFIX) || token.starts_with(KEY_PREFIX) || call.api.access.policy().is_own_key(&token);
        if is_ours {
            return Ok(private(reply::ok(&json!({ "active": false }))?));
        }
        return Ok(private(reply::ok(&sign_ins(&call)?.introspect(ClientKey::of(call.peer), token, provider).await?)?));
    };
    let scopes: Vec<_> = Scope::ALL.into_iter().filter(|scope| grant.has(*scope)).map(|scope| scope.as_str()).collect();
    let introspected = Introspected {
        active: true,
        token_type: if grant.is_session { "session" } else { "api_key" },
        sub: grant.user.map(|user| user.0),
        username: grant.name.clone(),
        scope: scopes.join(" "),
        exp: grant.expires_at.map(|at| at.0 / 1_000),
    };
    Ok(private(reply::ok(&introspected)?))
}
