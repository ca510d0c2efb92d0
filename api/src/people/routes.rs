//! Users and API keys.

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_components::people::{ApiKey, User};
use agentsvc_systems::agent::SetOwner;
use agentsvc_systems::kernel::entities::{Get, Remove};
use agentsvc_systems::people::{CreateKey, CreateUser, KeyView, UpdateUser, UserView, error_codes};

use super::keys::{self, Changing, change, check_rank};
use super::shape::{KeyBody, KeyItem, KeyMade, OwnerBody, ScopeWord, UserBody, UserItem, Whoami};
use crate::http::call::Call;
use crate::http::crud;
use crate::http::error::Error;
use crate::http::principal::Principal;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::http::timestamp::timestamp_now;

/// What keys begin with, so that people and scanners tell them from other secrets.
pub(crate) const PREFIX: &str = "asvc_";

const OWNERS: Reply =
    Reply::error(403, "only an owner may change owners, and no key may do more than the one that makes it");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/whoami", "Get who you are and what you may do", |call| Box::pin(whoami(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<Whoami>(200, "the client")]),
    crud::list::<KeyItem>("/api/keys", "List API keys"),
    Route::post("/api/keys", "Create an API key, shown once", |call| Box::pin(create_key(call)))
        .body::<KeyBody>()
        .replies(&[
            Reply::json::<KeyMade>(201, "the key"),
            OWNERS,
            Reply::error(409, "the name is already taken"),
            Reply::error(429, "the limit of keys is reached"),
        ]),
    crud::get::<KeyItem>("/api/keys/{id}", "Get an API key"),
    Route::delete("/api/keys/{id}", "Revoke an API key", |call| Box::pin(revoke_key(call)))
        .replies(&[Reply::empty(204, "revoked"), OWNERS]),
    crud::list::<UserItem>("/api/users", "List users"),
    Route::post("/api/users", "Add a user", |call| Box::pin(create_user(call))).body::<UserBody>().replies(&[
        Reply::json::<UserItem>(201, "the user"),
        OWNERS,
        Reply::error(409, "the name or an identity in a chat is already taken"),
        Reply::error(429, "the limit of users is reached"),
    ]),
    crud::get::<UserItem>("/api/users/{id}", "Get a user"),
    Route::put("/api/users/{id}", "Update a user", |call| Box::pin(update_user(call)))
        .without_room()
        .body::<UserBody>()
        .replies(&[
            Reply::json::<UserItem>(200, "the updated user"),
            OWNERS,
            Reply::error(409, "the name or an identity in a chat is already taken, or the user is set in config.toml"),
            Reply::error(429, "the limit of the texts of users is reached"),
        ]),
    Route::delete("/api/users/{id}", "Delete a user and their keys", |call| Box::pin(remove_user(call))).replies(&[
        Reply::empty(204, "deleted"),
        OWNERS,
        Reply::error(409, "the user is set in config.toml"),
    ]),
    Route::put("/api/agents/{id}/owner", "Give an agent to a user", |call| Box::pin(set_owner(call)))
        .reaching(Reach::All)
        .without_room()
        .body::<OwnerBody>()
        .replies(&[Reply::json::<OwnerBody>(200, "the user whom it belongs to")]),
];

async fn whoami(call: Call) -> Result<Response, Error> {
    let Some(role) = call.principal.role() else { return Err(Error::unauthorized()) };
    let scopes = Scope::ALL.into_iter().filter(|scope| call.principal.has(*scope)).map(ScopeWord::from).collect();
    let (kind, name, user_id, key_id) = match &call.principal {
        Principal::Key(grant) if grant.is_session => {
            ("session", Some(grant.name.clone()), grant.user.map(|user| user.0), Some(grant.key.0))
        }
        Principal::Key(grant) => ("key", Some(grant.name.clone()), grant.user.map(|user| user.0), Some(grant.key.0)),
        _ => ("owner", None, None, None),
    };
    reply::ok(&Whoami { kind, name, role: role.into(), user_id, key_id, scopes })
}

/// Refuses scopes that the client has not: no key makes one that may do more.
///
/// # Errors
/// 403.
pub(crate) fn check_scopes(call: &Call, role: Role, scopes: &[Scope]) -> Result<(), Error> {
    let is_asked = |scope: Scope| role.has(scope) && (scopes.is_empty() || scopes.contains(&scope));
    match Scope::ALL.into_iter().find(|scope| is_asked(*scope) && !call.principal.has(*scope)) {
        Some(scope) => Err(Error::forbidden(format!("your key has not the scope {}", scope.as_str()))),
        None => Ok(()),
    }
}

/// The role of a user whom a body names.
///
/// # Errors
/// 400 when there is none.
pub(crate) async fn role_of_user(call: &Call, user: UserId) -> Result<Role, Error> {
    let missing = |error: Error| match error.status().as_u16() {
        404 => Error::bad_field("user_id", format!("user_id: there is no user {user}")),
        _ => error,
    };
    Ok(call.ask(Get::<UserView>(user)).await.map_err(missing)?.user.role)
}

async fn create_key(call: Call) -> Result<Response, Error> {
    let body: KeyBody = call.json()?;
    let user = body.user_id.map(UserId);
    let mut role = body.role.map_or(Role::Admin, Role::from);
    if let Some(user) = user {
        if body.role.is_some() {
            return Err(Error::bad_field("role", "role: a key of a user has the role of the user"));
        }
        role = role_of_user(&call, user).await?;
    }
    let scopes: Vec<Scope> = body.scopes.into_iter().map(Scope::from).collect();
    check_rank(&call, role)?;
    check_scopes(&call, role, &scopes)?;
    let expires_at = match body.expires_in_secs {
        Some(0) => return Err(Error::bad_field("expires_in_secs", "expires_in_secs: must be at least 1")),
        secs => secs.map(|secs| timestamp_now().plus_ms(i64::from(secs) * 1_000)),
    };
    check_end(&call.principal, expires_at)?;
    let (key, hash) = keys::make(&call, PREFIX)?;
    let command = CreateKey { name: body.name, hash, role, user, scopes, expires_at };
    let item = change(&call, command).await?.into();
    reply::created(&KeyMade { key, item })
}

/// Refuses a key that is to last longer than the one that makes it. Sessions of people are no keys.
fn check_end(principal: &Principal, expires_at: Option<Timestamp>) -> Result<(), Error> {
    let Principal::Key(grant) = principal else { return Ok(()) };
    match (grant.expires_at.filter(|_| !grant.is_session), expires_at) {
        (Some(own), Some(at)) if at > own => {
            let text = format!("expires_in_secs: your key expires at {own}, and what it creates does not last longer");
            Err(Error::bad_field("expires_in_secs", text))
        }
        _ => Ok(()),
    }
}

async fn revoke_key(call: Call) -> Result<Response, Error> {
    let id: KeyId = call.id("id")?;
    check_rank(&call, call.ask(Get::<KeyView>(id)).await?.role)?;
    change(&call, Remove::<ApiKey>(id)).await?;
    Ok(reply::no_content())
}

async fn create_user(call: Call) -> Result<Response, Error> {
    let body: UserBody = call.json()?;
    let role = body.role.map_or(Role::User, Role::from);
    check_rank(&call, role)?;
    check_scopes(&call, role, &[])?;
    reply::created(&UserItem::from(change(&call, CreateUser(body.fields())).await?))
}

async fn update_user(call: Call) -> Result<Response, Error> {
    let (user, body): (UserId, UserBody) = (call.id("id")?, call.json()?);
    let before = call.ask(Get::<UserView>(user)).await?.user.role;
    check_rank(&call, before)?;
    // Whoever says who signs in as a user may do what the user may do.
    if body.names_someone() {
        check_scopes(&call, before, &[])?;
    }
    if let Some(role) = body.role.map(Role::from) {
        check_rank(&call, role)?;
        check_scopes(&call, role, &[])?;
    }
    reply::ok(&UserItem::from(change(&call, UpdateUser { user, fields: body.fields() }).await?))
}

async fn remove_user(call: Call) -> Result<Response, Error> {
    let user: UserId = call.id("id")?;
    let found = call.ask(Get::<UserView>(user)).await?.user;
    check_rank(&call, found.role)?;
    if found.configured {
        let text = format!("the user {:?} is set in config.toml, so it cannot be deleted here", found.name);
        return Err(Error::of(error_codes::USER_CONFIGURED, text));
    }
    change(&call, Remove::<User>(user)).await?;
    Ok(reply::no_content())
}

async fn set_owner(call: Call) -> Result<Response, Error> {
    let agent = call.id("id")?;
    let body: OwnerBody = call.json()?;
    let user = body.user_id.map(UserId);
    if let Some(user) = user {
        role_of_user(&call, user).await?;
    }
    let changing = call.api.state::<Changing>();
    let _held = changing.0.lock().await;
    let change = call.ask(SetOwner { agent, user }).await?;
    // Their requests and streams were let in when the agent was theirs.
    if let Some(before) = change.before.filter(|_| change.before != change.now) {
        call.api.access.keys.end_open(before);
    }
    reply::ok(&OwnerBody { user_id: change.now.map(|user| user.0) })
}
