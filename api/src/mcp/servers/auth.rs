//! Signing in at MCP servers that ask for it (spec 3, MCP servers; facts 4.2): start, status, callback, sign-out.

use std::sync::Arc;

use agentsvc_systems::mcp::limits::MCP_SIGN_IN_SECS_MAX;
use futures_util::future::BoxFuture;
use hyper::header::{CACHE_CONTROL, HOST, HeaderValue, REFERRER_POLICY};
use hyper::{Method, StatusCode, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sign_in::{ServerSignIns, SignInAnswer, SignInStarted, SignInStatus};
use crate::http::blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::plain_page::{self, page};
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What a sign-in costs the client's rate budget: it asks other servers.
const COST: u32 = 10;
/// Bytes of a parameter that an authorization server sends.
const PARAMETER_BYTES_MAX: usize = 4 << 10;

const REMOVED: &[Reply] = &[Reply::json::<SignedOut>(200, "there is no sign-in any more")];

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/mcp/servers/{id}/auth/start", "Start a sign-in at an MCP server", |call| {
        Box::pin(detached(Box::pin(start(call))))
    })
    .cost(COST)
    .body::<StartBody>()
    .replies(&[
        Reply::json::<Started>(200, "where the user signs in"),
        Reply::error(409, "the server has no sign-in"),
        Reply::error(502, "the server or its authorization server failed"),
    ]),
    Route::get("/api/mcp/servers/{id}/auth/status", "Get the state of a sign-in at an MCP server", |call| {
        Box::pin(status(call))
    })
    .replies(&[Reply::json::<ServerAuth>(200, "the state")]),
    Route::get("/api/mcp/servers/{id}/auth/callback", "Complete a sign-in at an MCP server", |call| {
        Box::pin(callback(call))
    })
    .public()
    .linked()
    .with_room()
    .cost(COST)
    .query::<CallbackQuery>()
    .replies(&[
        Reply::json::<ServerAuth>(200, "signed in; a page for `Accept: text/html`"),
        Reply::error(400, "the sign-in is unknown, was completed, has expired or was declined"),
        Reply::error(502, "the authorization server failed"),
    ]),
    Route::post("/api/mcp/servers/{id}/auth/revoke", "Sign out at an MCP server", |call| {
        Box::pin(detached(Box::pin(revoke(call))))
    })
    .cost(COST)
    .without_room()
    .replies(REMOVED),
    Route::delete("/api/mcp/servers/{id}/auth/revoke", "Sign out at an MCP server", |call| {
        Box::pin(detached(Box::pin(revoke(call))))
    })
    .cost(COST)
    .replies(REMOVED),
];

/// How a sign-in is to go.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct StartBody {
    /// Where the user's browser reaches this daemon, such as `https://agents.example.com`. Default: `http` and the `Host` header.
    base_url: Option<String>,
    /// Seconds until the sign-in must be complete, 1 to 600. Default: 600.
    timeout_secs: Option<u64>,
}

/// A sign-in was started.
#[derive(Serialize, JsonSchema)]
struct Started {
    /// The server.
    server: String,
    auth: SignInStatus,
    /// `id` of `last_sign_in` in the state, as soon as the user has completed this sign-in.
    sign_in_id: String,
    /// Open this in a browser.
    auth_url: String,
    /// Seconds until it must be complete.
    expires_in: u64,
}

/// How a server is signed in to.
#[derive(Serialize, JsonSchema)]
struct ServerAuth {
    /// The server.
    server: String,
    auth: SignInStatus,
}

/// A server was signed out of.
#[derive(Serialize, JsonSchema)]
struct SignedOut {
    /// The server.
    server: String,
    /// Whether there was a sign-in.
    revoked: bool,
    auth: SignInStatus,
}

/// What authorization servers send.
#[derive(Deserialize, JsonSchema)]
struct CallbackQuery {
    /// The sign-in.
    state: Option<String>,
    /// What tokens are given for.
    code: Option<String>,
    /// Why there is no code.
    error: Option<String>,
    /// The same as a sentence; not shown.
    error_description: Option<String>,
    /// The authorization server.
    iss: Option<String>,
}

fn sign_ins(call: &Call) -> Result<Arc<dyn ServerSignIns>, Error> {
    call.api.service::<dyn ServerSignIns>()
}

/// Does the work to its end, also when the client goes away: a code and a refresh token are good for one use.
async fn detached<T: Send + 'static>(work: BoxFuture<'static, Result<T, Error>>) -> Result<T, Error> {
    blocking::spawn(work).await.unwrap_or_else(|_| Err(Error::internal("internal error")))
}

fn unknown(server: &str) -> Error {
    Error::not_found(format!("MCP server not found: {server}"))
}

async fn state_of(sign_ins: &Arc<dyn ServerSignIns>, server: &str) -> Result<SignInStatus, Error> {
    Arc::clone(sign_ins).status(server.to_owned()).await.ok_or_else(|| unknown(server))
}

async fn start(call: Call) -> Result<Response, Error> {
    let server = call.param("id")?.into_owned();
    let body: StartBody = call.json_or_default()?;
    let wait_secs = body.timeout_secs.unwrap_or(MCP_SIGN_IN_SECS_MAX);
    if !(1..=MCP_SIGN_IN_SECS_MAX).contains(&wait_secs) {
        let text = format!("timeout_secs must be 1 to {MCP_SIGN_IN_SECS_MAX}");
        return Err(Error::bad_field("timeout_secs", text));
    }
    let base = match body.base_url {
        Some(url) => checked_base(&url).ok_or_else(|| {
            Error::bad_field("base_url", "base_url must be an http or https URL without a query, user or fragment")
        })?,
        None => called_base(&call).ok_or_else(|| Error::bad_field("base_url", "base_url is missing"))?,
    };
    let sign_ins = sign_ins(&call)?;
    let begun = Arc::clone(&sign_ins).start(server.clone(), base, wait_secs).await?;
    let SignInStarted { id: sign_in_id, auth_url, expires_in } = begun;
    let auth = state_of(&sign_ins, &server).await?;
    no_store(reply::ok(&Started { server, auth, sign_in_id, auth_url, expires_in })?)
}

/// A base that browsers can be sent to, without a slash at its end.
fn checked_base(text: &str) -> Option<String> {
    let uri: Uri = text.parse().ok()?;
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let is_bare = !text.contains(['?', '#', '@']) && text.len() <= PARAMETER_BYTES_MAX;
    (is_web && is_bare && uri.host().is_some_and(|host| !host.is_empty()))
        .then(|| text.trim_end_matches('/').to_owned())
}

/// Where this request found the daemon.
fn called_base(call: &Call) -> Option<String> {
    let host = match call.headers().get(HOST) {
        Some(host) => host.to_str().ok()?,
        None => call.parts.uri.authority()?.as_str(),
    };
    checked_base(&format!("http://{host}"))
}

async fn status(call: Call) -> Result<Response, Error> {
    let server = call.param("id")?.into_owned();
    let auth = state_of(&sign_ins(&call)?, &server).await?;
    no_store(reply::ok(&ServerAuth { server, auth })?)
}

async fn revoke(call: Call) -> Result<Response, Error> {
    let server = call.param("id")?.into_owned();
    let sign_ins = sign_ins(&call)?;
    let revoked = Arc::clone(&sign_ins).revoke(server.clone()).await?;
    let auth = state_of(&sign_ins, &server).await?;
    reply::ok(&SignedOut { server, revoked, auth })
}

async fn callback(call: Call) -> Result<Response, Error> {
    let is_page = plain_page::is_wanted(call.headers());
    let server = call.param("id")?.into_owned();
    // Previews of links ask with `HEAD`; a code is good for one use.
    let is_preview = call.parts.method == Method::HEAD;
    let ended = if is_preview { None } else { Some(detached(Box::pin(finish(call))).await) };
    let mut response = match ended {
        None => page(StatusCode::OK, "Sign-in", "Open this page to complete the sign-in.", None),
        Some(Ok(_)) if is_page => page(
            StatusCode::OK,
            "Signed in",
            &format!("The server {server} is signed in. You can close this page."),
            None,
        ),
        Some(Err(error)) if is_page => page(error.status(), "Not signed in", error.message(), None),
        Some(ended) => reply::ok(&ended?)?,
    };
    // The address of the page holds the code.
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    no_store(response)
}

async fn finish(call: Call) -> Result<ServerAuth, Error> {
    let server = call.param("id")?.into_owned();
    let CallbackQuery { state, code, error, error_description, iss } = call.query()?;
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
    let sign_ins = sign_ins(&call)?;
    let answer = SignInAnswer { state, code, error, iss };
    Arc::clone(&sign_ins).finish(server.clone(), answer).await?;
    let auth = state_of(&sign_ins, &server).await?;
    Ok(ServerAuth { server, auth: SignInStatus { auth_url: None, ..auth } })
}

fn no_store(mut response: Response) -> Result<Response, Error> {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bases_are_plain_addresses() {
        assert_eq!(checked_base("https://a.example/x/").as_deref(), Some("https://a.example/x"));
        assert_eq!(checked_base("http://127.0.0.1:4545").as_deref(), Some("http://127.0.0.1:4545"));
        for wrong in ["javascript:alert(1)", "https://u@h", "https://h/?a", "https://h/#a", "ftp://h", "h", ""] {
            assert_eq!(checked_base(wrong), None, "{wrong}");
        }
    }
}
