//! The sessions of people: who one is, which there are, and how they end.

use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_components::sign_in::{SignInId, SignInSession};
use agentsvc_systems::kernel::entities::{Get, Remove};
use agentsvc_systems::people::UserView;
use agentsvc_systems::sign_in::{SignInView, SignedIn};
use hyper::header::SET_COOKIE;

use super::routes::private;
use super::shape::{Done, Person, SignInItem, UserInfo};
use crate::http::call::Call;
use crate::http::cookie::SESSION;
use crate::http::crud;
use crate::http::error::Error;
use crate::http::principal::Principal;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::http::timestamp::Moment;
use crate::people::keys;

const LOGGED_OUT: &[Reply] = &[Reply::json::<Done>(200, "there is no session any more, and the cookie is removed")];

pub(super) const ROUTES: &[Route] = &[
    Route::get("/api/auth/userinfo", "Get your profile at the identity provider", |call| Box::pin(userinfo(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<UserInfo>(200, "the profile as it was at the sign-in")]),
    crud::list::<SignInItem>("/api/auth/sessions", "List sessions of people").reaching(Reach::Filtered),
    Route::delete("/api/auth/sessions/{id}", "End a session of a person", |call| Box::pin(end(call)))
        .scoped(Scope::Read)
        .reaching(Reach::Filtered)
        .replies(&[
            Reply::empty(204, "ended"),
            Reply::error(
                403,
                "the key lacks the scope `write`; only admins end the sessions of others, and only owners those of owners",
            ),
        ]),
    Route::post("/auth/logout", "Sign out", |call| Box::pin(logout(call))).public().without_room().replies(LOGGED_OUT),
    Route::post("/api/auth/logout", "Sign out", |call| Box::pin(logout(call)))
        .public()
        .without_room()
        .replies(LOGGED_OUT),
];

/// The session by which a request was let in.
fn session_of(call: &Call) -> Option<SignInId> {
    match &call.principal {
        Principal::Key(grant) if grant.is_session => Some(SignInId(grant.key.0)),
        _ => None,
    }
}

fn user_of(call: &Call) -> Option<UserId> {
    if let Principal::Key(grant) = &call.principal { grant.user } else { None }
}

async fn userinfo(call: Call) -> Result<Response, Error> {
    let Some(role) = call.principal.role() else { return Err(Error::unauthorized()) };
    let info = match session_of(&call) {
        Some(session) => {
            let session = call.ask(Get::<SignInView>(session)).await?;
            let (provider, expires_at) = (session.session.profile.provider.clone(), session.session.expires_at);
            UserInfo {
                auth_method: if &*provider == "password" { "password" } else { "oidc" },
                provider: Some(provider),
                expires_at: Some(Moment(expires_at)),
                person: Person::from(SignedIn { session, role }),
            }
        }
        None => of_key(&call, role),
    };
    Ok(private(reply::ok(&info)?))
}

fn of_key(call: &Call, role: Role) -> UserInfo {
    let (username, user_id) = match &call.principal {
        Principal::Key(grant) => (grant.name.clone(), grant.user.map(|user| user.0)),
        _ => (Box::from(role.as_str()), None),
    };
    let (sub, role) = (username.clone(), role.into());
    let person = Person { user_id, username, role, sub, email: None, name: None, picture: None };
    UserInfo { auth_method: "api_key", provider: None, expires_at: None, person }
}

async fn end(call: Call) -> Result<Response, Error> {
    let id: SignInId = call.id("id")?;
    let user = call.ask(Get::<SignInView>(id)).await?.session.user;
    // People end their own sessions whatever their role is; a key that only reads changes nothing.
    if session_of(&call).is_none() && !call.principal.has(Scope::Write) {
        return Err(Error::forbidden("this key may not end sessions, which needs the scope write"));
    }
    if user.is_none() || user != user_of(&call) {
        if !call.principal.has(Scope::Admin) {
            return Err(Error::forbidden("only admins end the sessions of others"));
        }
        if let Some(user) = user {
            keys::check_rank(&call, call.ask(Get::<UserView>(user)).await?.user.role)?;
        }
    }
    keys::change(&call, Remove::<SignInSession>(id)).await?;
    Ok(reply::no_content())
}

async fn logout(call: Call) -> Result<Response, Error> {
    if let Some(session) = session_of(&call)
        && let Err(error) = keys::change(&call, Remove::<SignInSession>(session)).await
        && error.status() != hyper::StatusCode::NOT_FOUND
    {
        return Err(error);
    }
    let mut response = reply::ok(&Done { ok: true })?;
    response.headers_mut().extend(SESSION.set(&call.parts, "", 0).map(|cookie| (SET_COOKIE, cookie)));
    Ok(private(response))
}
