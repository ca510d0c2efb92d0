//! The routes of devices.

use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::scope::{Role, Scope};
use agentsvc_components::pairing::DeviceId;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::kernel::entities::List;
use agentsvc_systems::pairing::limits::PAIRING_CODES_MAX;
use agentsvc_systems::pairing::{DeviceView, NotifyDevices, PairDevice, RemoveDevice};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{CACHE_CONTROL, HeaderValue, WWW_AUTHENTICATE};
use serde_json::json;

use super::codes::{Codes, Offer, Open, Taken, code};
use super::host::{PairingHost, PairingPolicy};
use super::shape::{CompleteBody, DeviceItem, Notified, NotifyBody, Paired, PairingCode, RequestBody};
use super::{audit_kinds, error_codes};
use crate::http::call::Call;
use crate::http::cookie;
use crate::http::crud;
use crate::http::error::Error;
use crate::http::principal::Principal;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::timestamp::{Moment, timestamp_now};
use crate::people::keys::{self, KeyMaker};
use crate::people::routes::{PREFIX, check_scopes, role_of_user};
use crate::people::shape::{RoleWord, ScopeWord};

/// What a code costs the client's rate budget.
const COST: u32 = 10;
/// What a device may do unless the request for its code says otherwise.
const SCOPES: [Scope; 2] = [Scope::Read, Scope::Chat];
/// What a device is called that has no name.
const NAME: &str = "Device";
/// The title of a notification that has none.
const TITLE: &str = "agentsvc";
/// Bytes of a code that is looked at.
const CODE_BYTES_MAX: usize = 256;

const OFF: Reply = Reply::error(404, "pairing is off");

pub(super) const ROUTES: &[Route] = &[
    Route::post("/api/pairing/request", "Make a code to pair a device, shown once", |call| Box::pin(request(call)))
        .cost(COST)
        .body::<RequestBody>()
        .replies(&[
            Reply::json::<PairingCode>(200, "the code"),
            Reply::error(403, "a device may not do more than the user who asks for its code"),
            OFF,
            Reply::error(429, "too many codes are open, or the limit of devices is reached"),
        ]),
    Route::post("/api/pairing/complete", "Pair a device with its code", |call| Box::pin(complete(call)))
        .public()
        .cost(COST)
        .body::<CompleteBody>()
        .replies(&[
            Reply::json::<Paired>(200, "the device and its key"),
            Reply::error(401, "the code is wrong, was used or has expired"),
            Reply::error(403, "who asked for the code may no longer pair devices"),
            OFF,
            Reply::error(410, "the same for a client with an API key"),
            Reply::error(429, "the limit of devices is reached, or too many wrong codes came from here"),
        ]),
    Route::post("/api/pairing/notify", "Send a notification to all paired devices", |call| Box::pin(notify(call)))
        .cost(COST)
        .body::<NotifyBody>()
        .replies(&[
            Reply::json::<Notified>(200, "the notification is stored and will be sent, if it can be"),
            OFF,
            Reply::error(429, "too many notifications wait"),
        ]),
    crud::list::<DeviceItem>("/api/pairing/devices", "List paired devices")
        .replies(const { &[Reply::json::<crud::ListOf<DeviceItem>>(200, "the list"), OFF] }),
    Route::delete("/api/pairing/devices/{id}", "Remove a paired device and revoke its key", |call| {
        Box::pin(remove(call))
    })
    .replies(&[Reply::empty(204, "removed"), Reply::error(403, "only an owner may remove a device of an owner")]),
];

/// What the configuration says.
///
/// # Errors
/// 404: pairing is off.
pub(super) fn pairing(call: &Call) -> Result<PairingPolicy, Error> {
    let policy = call.api.service::<dyn PairingHost>()?.policy();
    let off = || Error::of(error_codes::PAIRING_OFF, "pairing is off; set `[pairing] enabled = true` in config.toml");
    policy.is_enabled.then_some(policy).ok_or_else(off)
}

/// No cache keeps a code or a key.
fn private(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn request(call: Call) -> Result<Response, Error> {
    let body = call.json_or_default()?;
    let policy = pairing(&call)?;
    let offer = offer(&call, body).await?;
    let devices = call.ask(List::<DeviceView> { limit: 1, ..List::default() }).await?.total.unwrap_or_default();
    if devices >= policy.devices_max as usize {
        let text = format!("there are {devices} paired devices, which is the limit ([pairing] max_devices)");
        return Err(Error::of(agentsvc_systems::pairing::error_codes::DEVICES_FULL, text));
    }
    let (token, _) = keys::make(&call, "")?;
    let random = call.api.service::<dyn KeyMaker>()?.random();
    let pairing_code = code(random.map_err(|_| Error::internal("the system has no randomness for a code"))?);
    let (role, scopes) = (RoleWord::from(offer.role), offer.scopes.iter().copied().map(ScopeWord::from).collect());
    let expires_at = timestamp_now().plus_ms(i64::try_from(policy.code_time.as_millis()).unwrap_or(i64::MAX));
    let details = json!({ "role": offer.role.as_str(), "user": offer.user, "expires_at": expires_at.to_string() });
    if !call.api.state::<Codes>().open(&pairing_code, &token, policy.code_time, offer) {
        let text = format!("{} codes are open already, which is the limit", PAIRING_CODES_MAX);
        let wait = u32::try_from(policy.code_time.as_secs()).unwrap_or(u32::MAX);
        return Err(Error::of(error_codes::PAIRING_CODES_OPEN, text).retry_after(wait));
    }
    note(&call, audit_kinds::PAIRING_REQUESTED, details).await?;
    let base_url = policy.base_url.map_or_else(|| base_url(&call), Into::into);
    let payload = json!({ "v": 1, "base_url": base_url, "token": token, "expires_at": expires_at.to_string() });
    let qr_uri = format!("librefang://pair?payload={}", URL_SAFE_NO_PAD.encode(payload.to_string()));
    let made = PairingCode { pairing_code, token, qr_uri, expires_at: Moment(expires_at), role, scopes };
    Ok(private(reply::ok(&made)?))
}

/// Where the client has reached the daemon.
fn base_url(call: &Call) -> String {
    let scheme = if cookie::is_this_machine(&call.parts) { "http" } else { "https" };
    format!("{scheme}://{}", cookie::host(&call.parts))
}

async fn note(
    call: &Call,
    kind: agentsvc_components::kernel::audit_kind::AuditKind,
    details: serde_json::Value,
) -> Result<(), Error> {
    call.ask(NoteAction { kind, agent: None, details }).await.map(drop)
}

/// What a device may do: no more than whoever asks for its code.
async fn offer(call: &Call, body: RequestBody) -> Result<Offer, Error> {
    let own = if let Principal::Key(grant) = &call.principal { grant.user } else { None };
    let user = match (body.user_id.map(UserId), body.role) {
        (Some(_), Some(_)) => {
            return Err(Error::bad_field("role", "role: a device of a user has the role of the user"));
        }
        (None, Some(_)) => None,
        (user, None) => user.or(own),
    };
    let role = match user {
        Some(user) => role_of_user(call, user).await?,
        None => body.role.map_or(Role::Admin, Role::from),
    };
    if user.is_none() && role.is_limited() {
        let text = format!("role: a device with the role {} needs `user_id`", role.as_str());
        return Err(Error::bad_field("role", text));
    }
    let usual = || SCOPES.into_iter().filter(|scope| role.has(*scope)).collect();
    let scopes: Vec<Scope> = body.scopes.map_or_else(usual, |scopes| scopes.into_iter().map(Scope::from).collect());
    keys::check_rank(call, role)?;
    check_scopes(call, role, &scopes)?;
    Ok(Offer { role, user, scopes, actor: call.actor() })
}

async fn complete(call: Call) -> Result<Response, Error> {
    let body: CompleteBody = call.json()?;
    let policy = pairing(&call)?;
    let given = body.pairing_code.or(body.code).or(body.token).unwrap_or_default();
    if given.trim().is_empty() || given.len() > CODE_BYTES_MAX {
        let text = format!("pairing_code must have 1 to {CODE_BYTES_MAX} bytes");
        return Err(Error::bad_field("pairing_code", text));
    }
    let (name, platform) = (body.display_name.unwrap_or_else(|| NAME.to_owned()), body.platform.unwrap_or_default());
    let access = call.api.access.policy();
    access.check_guess(call.peer)?;
    let codes = call.api.state::<Codes>();
    let open = match codes.take(&given) {
        Taken::Open(open) => open,
        Taken::Wrong(count) => return Err(wrong(&call, count).await),
    };
    let (api_key, hash) = match keys::make(&call, PREFIX) {
        Ok(made) => made,
        Err(error) => {
            codes.put_back(open);
            return Err(error);
        }
    };
    // To its end, also when the client goes away: a code is good for one use. In a task of its own the command is not one of
    // the key that the client may have.
    let paired = tokio::spawn(async move { pair(&call, open, (name, platform), hash, policy.devices_max).await });
    let view = paired.await.unwrap_or_else(|_| Err(Error::internal("internal error")))?;
    let paired = Paired { api_key, device_id: view.id.0, item: DeviceItem::from(view) };
    Ok(private(reply::ok(&paired)?))
}

/// Pairs the device in the name of whoever asked for the code, which stays open when that is refused.
async fn pair(
    call: &Call,
    open: Open,
    (name, platform): (String, String),
    hash: [u8; 32],
    devices_max: u32,
) -> Result<DeviceView, Error> {
    let Offer { role, user, scopes, actor } = open.offer.clone();
    let command = PairDevice { name, platform, hash, role, user, scopes, devices_max };
    let paired = keys::change_as(call, actor, command).await;
    if paired.is_err() {
        call.api.state::<Codes>().put_back(open);
    }
    paired
}

/// A wrong code. Each slows the client down, and is on record while it could have been a right one.
async fn wrong(call: &Call, open: usize) -> Error {
    call.api.access.policy().note_guess(call.peer);
    if open > 0 {
        let details = json!({ "peer": call.peer.to_string(), "open": open });
        if let Err(unrecorded) = note(call, audit_kinds::PAIRING_REFUSED, details).await {
            return unrecorded;
        }
    }
    let text = "the code is wrong, was used or has expired";
    if call.principal.role().is_some() {
        return Error::of(error_codes::PAIRING_CODE_GONE, text);
    }
    let challenge = HeaderValue::from_static("Bearer");
    Error::of(error_codes::PAIRING_CODE_INVALID, text).header(WWW_AUTHENTICATE, challenge)
}

async fn notify(call: Call) -> Result<Response, Error> {
    let body: NotifyBody = call.json()?;
    let policy = pairing(&call)?;
    let message = body.message.ok_or_else(|| Error::bad_field("message", "message is missing"))?;
    let title = body.title.unwrap_or_else(|| TITLE.to_owned());
    let sent = call.ask(NotifyDevices { title, message, can_send: policy.push_provider.is_some() }).await?;
    reply::ok(&Notified {
        ok: true,
        notified: sent.map_or(0, |(_, devices)| devices),
        push_provider: policy.push_provider.unwrap_or("none"),
        notification_id: sent.map(|(id, _)| id.0),
    })
}

async fn remove(call: Call) -> Result<Response, Error> {
    let id: DeviceId = call.id("id")?;
    pairing(&call)?;
    let view = crud::view::<DeviceItem>(&call, id).await?;
    keys::check_rank(&call, view.role)?;
    keys::change(&call, RemoveDevice(id)).await?;
    Ok(reply::no_content())
}
