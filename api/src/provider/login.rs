//! Signing in at providers whose keys come from a device flow (RFC 8628; spec 2, Providers).

use hyper::header::{CACHE_CONTROL, HeaderValue};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::provider::accounts::{LoginStarted, LoginState};
use crate::provider::routes::{COST, accounts};

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/providers/{name}/oauth/start", "Start a sign-in", |call| Box::pin(start(call)))
        .cost(COST)
        .replies(&[
            Reply::json::<LoginStarted>(200, "the user code and the address to enter it at"),
            Reply::error(502, "the provider failed or is unreachable"),
        ]),
    Route::get("/api/providers/{name}/oauth/poll/{poll_id}", "Get the status of a sign-in", |call| {
        Box::pin(poll(call))
    })
    .with_room()
    .replies(&[Reply::json::<LoginState>(200, "the status"), Reply::error(404, "the sign-in does not exist")]),
];

async fn start(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    let mut response = reply::ok(&accounts(&call)?.start_login(name).await?)?;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

async fn poll(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?.into_owned();
    let poll_id: Uuid = call.id("poll_id")?;
    reply::ok(&accounts(&call)?.poll_login(name, poll_id).await?)
}
