//! Sign-in with a name and a password, and a code of the authenticator where approvals need one.

use agentsvc_components::sign_in::Profile;
use agentsvc_systems::sign_in::Who;
use hyper::header::SET_COOKIE;

use super::error_codes;
use super::routes::{private, refused, sign_ins, start};
use super::shape::{Mode, PasswordBody, Session};
use crate::http::call::Call;
use crate::http::cookie::{self, SESSION};
use crate::http::error::Error;
use crate::http::error_codes::ORIGIN;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::second_factor::factor;

/// What a password costs the client's rate budget: checking one takes time and memory.
const COST: u32 = 50;
/// Bytes of a name or a password.
const TEXT_BYTES_MAX: usize = 1_024;
/// What stands in place of a provider.
const PROVIDER: &str = "password";

pub(super) const ROUTES: &[Route] = &[
    Route::post("/api/auth/dashboard-login", "Sign in with a password", |call| Box::pin(login(call)))
        .public()
        .cost(COST)
        .body::<PasswordBody>()
        .replies(&[
            Reply::json::<Session>(200, "signed in; pages get a cookie in place of the token"),
            Reply::error(401, "the name or the password is wrong"),
        ]),
    Route::get("/api/auth/dashboard-check", "Get what the page needs to sign in", |call| Box::pin(check(call)))
        .public()
        .replies(&[Reply::json::<Mode>(200, "what is needed")]),
];

async fn check(call: Call) -> Result<Response, Error> {
    let policy = sign_ins(&call)?.policy();
    let mode = match (call.api.access.policy().is_open(), policy.has_passwords) {
        (true, _) => "none",
        (false, true) => "hybrid",
        (false, false) => "api_key",
    };
    reply::ok(&Mode { mode, single_sign_on: policy.is_enabled })
}

async fn login(call: Call) -> Result<Response, Error> {
    let PasswordBody { username, password, totp_code } = call.json()?;
    for (name, text) in [("username", &username), ("password", &password)] {
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return Err(Error::bad_field(name, format!("{name} must have 1 to {TEXT_BYTES_MAX} bytes")));
        }
    }
    // A page of another site would have its visitor act as someone else.
    if !cookie::is_own_page(&call.parts, true) {
        return Err(Error::of(ORIGIN, "a page of another site may not sign in here"));
    }
    let (policy, sign_ins) = (call.api.access.policy(), sign_ins(&call)?);
    let guess = policy.begin_guess(call.peer)?;
    let checked = sign_ins.check_password(username.clone(), password).await;
    if !matches!(checked, Ok(false)) {
        policy.undo_guess(&guess);
    }
    if !checked? {
        let wrong = Error::of(error_codes::WRONG_PASSWORD, "the name or the password is wrong");
        return Err(refused(&call, PROVIDER, wrong).await);
    }
    let user = username.clone();
    factor::ask(&call, "totp_code", move |factor| factor.verify(&user, totp_code.as_deref())).await?;
    let profile = Profile { provider: PROVIDER.into(), subject: username.as_str().into(), ..Profile::default() };
    let mut session = start(&call, Who::Configured(username), profile).await?;
    let cookie = SESSION.set(&call.parts, session.token.as_deref().unwrap_or_default(), session.expires_in);
    // Scripts of a page do not see the token.
    let is_page = ["sec-fetch-site", "origin"].iter().any(|name| call.headers().contains_key(*name));
    if is_page {
        session.token = None;
    }
    let mut response = reply::ok(&session)?;
    response.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
    Ok(private(response))
}
