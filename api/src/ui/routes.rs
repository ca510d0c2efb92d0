//! The web page: `/` and its files, public (spec 1, Authentication).

use hyper::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use hyper::{HeaderMap, StatusCode};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::receive::blocking;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::ui::assets;

/// The address names the content: it never changes.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// The page changes with the daemon; a browser asks each time instead of showing an old one.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const BY_ENCODING: HeaderValue = HeaderValue::from_static("Accept-Encoding");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/", "Get the web page", |call| Box::pin(page(call)))
        .public()
        .here()
        .replies(&[Reply::plain(200, "the page", "text/html"), Reply::empty(304, "not modified")]),
    Route::get("/assets/{version}/{*file}", "Get a file of the web page", |call| Box::pin(file(call)))
        .public()
        .here()
        .replies(&[
            Reply::plain(200, "the file", "application/octet-stream"),
            Reply::error(404, "the file does not exist"),
        ]),
];

async fn page(call: Call) -> Result<Response, Error> {
    let page = blocking(|| Ok(assets::page())).await?;
    let is_known = call.headers().get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == page.tag.as_bytes());
    let mut response = if is_known {
        let mut response = reply::no_content();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else if takes_gzip(call.headers()) {
        let mut response = reply::bytes(StatusCode::OK, HTML, page.packed.clone());
        response.headers_mut().insert(CONTENT_ENCODING, GZIP);
        response
    } else {
        reply::bytes(StatusCode::OK, HTML, page.plain.clone())
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, ASK_AGAIN);
    headers.append(VARY, BY_ENCODING);
    if let Ok(tag) = HeaderValue::try_from(&page.tag) {
        headers.insert(ETAG, tag);
    }
    Ok(response)
}

async fn file(call: Call) -> Result<Response, Error> {
    // A page of an earlier daemon must not get half of it from this one: it then offers to load itself anew.
    if call.param("version")? != assets::version() {
        return Err(Error::not_found("the web page was updated; reload it"));
    }
    let asset = assets::asset(&call.param("file")?).ok_or_else(|| Error::not_found("the file does not exist"))?;
    let content_type = HeaderValue::from_static(asset.content_type());
    let mut response = if takes_gzip(call.headers()) {
        let packed = blocking(|| Ok(asset.packed())).await?;
        let mut response = reply::bytes(StatusCode::OK, content_type, packed);
        response.headers_mut().insert(CONTENT_ENCODING, GZIP);
        response
    } else {
        reply::bytes(StatusCode::OK, content_type, asset.plain())
    };
    response.headers_mut().insert(CACHE_CONTROL, FOR_EVER);
    response.headers_mut().append(VARY, BY_ENCODING);
    Ok(response)
}

/// Does the client take gzip (RFC 9110, 12.5.3)?
fn takes_gzip(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|item| {
        let (name, rest) = item.split_once(';').unwrap_or((item, ""));
        let refused = rest.trim().strip_prefix("q=").is_some_and(|q| q.trim().parse() == Ok(0.0));
        matches!(name.trim().to_ascii_lowercase().as_str(), "gzip" | "x-gzip") && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_whom_takes_it() {
        let takes = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            takes_gzip(&headers)
        };
        assert!(takes("gzip") && takes("br, GZIP;q=0.5") && takes("deflate , gzip"));
        assert!(!takes("br") && !takes("gzip;q=0") && !takes("gzip; q=0.0") && !takes("identity"));
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
