//! The web page: `/` and its files, public (spec 1, Authentication).

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderValue};

use crate::call::Call;
use crate::error::Error;
use crate::reply::{self, Response};
use crate::route::{Reply, Route};
use crate::web::{ASSETS, Asset};

/// One route per file.
pub(crate) fn routes() -> impl Iterator<Item = Route> {
    const REPLIES: &[Reply] = &[Reply::plain(200, "a file of the web page", "text/html")];
    ASSETS
        .iter()
        .map(|asset| Route::get(asset.path, "The web page", |call| Box::pin(file(call))).public().replies(REPLIES))
}

async fn file(call: Call) -> Result<Response, Error> {
    let asset: &Asset =
        ASSETS.iter().find(|asset| asset.path == call.route.path).ok_or_else(|| Error::not_found("no such file"))?;
    let content_type = HeaderValue::from_static(asset.content_type);
    let mut response = reply::bytes(StatusCode::OK, content_type, asset.body);
    // The files change with the daemon; a browser asks each time instead of showing an old page.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}
