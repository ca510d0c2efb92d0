//! The second factor of approvals: set up, confirmed, looked at and revoked (spec 3, Approvals).

use crate::second_factor::audit_kinds;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::second_factor::factor::{self, NewSecret, TotpStatus};

/// What a look at a code costs the client's rate budget: it waits for the disk.
const COST: u32 = 10;

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/approvals/totp/setup", "Set up the second factor", |call| Box::pin(setup(call)))
        .cost(COST)
        .body::<SetupBody>()
        .replies(&[Reply::json::<Secret>(200, "the secret, shown only once; confirm it to activate it")]),
    Route::post("/api/approvals/totp/confirm", "Confirm the second factor", |call| Box::pin(confirm(call)))
        .cost(COST)
        .body::<CodeBody>()
        .replies(&[Reply::json::<Done>(200, "the second factor is active")]),
    Route::get("/api/approvals/totp/status", "Get the status of the second factor", |call| Box::pin(status(call)))
        .replies(&[Reply::json::<TotpStatus>(200, "the status")]),
    Route::delete("/api/approvals/totp", "Revoke the second factor", |call| Box::pin(revoke(call)))
        .cost(COST)
        .body::<CodeBody>()
        .replies(&[Reply::json::<Done>(200, "the second factor is revoked")]),
    Route::post("/api/approvals/totp/revoke", "Revoke the second factor", |call| Box::pin(revoke(call)))
        .cost(COST)
        .body::<CodeBody>()
        .replies(&[Reply::json::<Done>(200, "the second factor is revoked")]),
];

/// Options of the setup.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct SetupBody {
    /// A code or recovery code of the confirmed secret; required if one is confirmed.
    code: Option<String>,
}

/// A code.
#[derive(Deserialize, JsonSchema)]
struct CodeBody {
    /// 6 digits; to revoke, also a recovery code.
    code: String,
}

/// A new secret. It is shown only once.
#[derive(Serialize, JsonSchema)]
struct Secret {
    /// In base32: 32 letters and digits.
    secret: String,
    /// The same as a URI for authenticator apps.
    otpauth_uri: String,
    /// Recovery codes. Each allows one revocation or new setup.
    recovery_codes: Vec<String>,
    /// Always false; confirm it with a code.
    confirmed: bool,
}

/// It is done.
#[derive(Serialize, JsonSchema)]
struct Done {
    /// `confirmed` or `revoked`.
    status: &'static str,
}

async fn setup(call: Call) -> Result<Response, Error> {
    let SetupBody { code } = call.json_or_default()?;
    let set_up = audit_kinds::TOTP_SET_UP;
    let fresh = factor::change(&call, set_up, move |factor, note| factor.setup(code.as_deref(), note)).await?;
    let NewSecret { base32, uri, recovery_codes } = fresh;
    let mut response = reply::ok(&Secret { secret: base32, otpauth_uri: uri, recovery_codes, confirmed: false })?;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

async fn confirm(call: Call) -> Result<Response, Error> {
    let CodeBody { code } = call.json()?;
    factor::change(&call, audit_kinds::TOTP_CONFIRMED, move |factor, note| factor.confirm(&code, note)).await?;
    reply::ok(&Done { status: "confirmed" })
}

async fn status(call: Call) -> Result<Response, Error> {
    reply::ok(&factor::ask(&call, "code", |factor| factor.status()).await?)
}

async fn revoke(call: Call) -> Result<Response, Error> {
    let CodeBody { code } = call.json()?;
    factor::change(&call, audit_kinds::TOTP_REVOKED, move |factor, note| factor.revoke(&code, note)).await?;
    reply::ok(&Done { status: "revoked" })
}
