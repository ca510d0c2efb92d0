//! A connection that speaks HTTP no more, between the client and the other node.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::UPGRADE;
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, copy, split};

use super::{hops, left};
use crate::http::api::Api;
use crate::http::error::Error;
use crate::http::forwards::Forward;
use crate::http::handshake;
use crate::http::reply::{Body, Response};
use crate::http::server::Line;

/// Joins both ends, and gives the answer that turns the client's.
///
/// # Errors
/// 426 for a connection that cannot be turned.
pub(super) fn join(
    api: &Arc<Api>,
    parts: &mut Parts,
    mut response: hyper::Response<Incoming>,
    (site, forward): (Arc<str>, Forward),
) -> Result<Response, Error> {
    let (Some(here), Some(line)) = (parts.extensions.remove::<OnUpgrade>(), parts.extensions.remove::<Line>()) else {
        return Err(handshake::upgrade_required("this connection cannot be upgraded to a WebSocket"));
    };
    let there = hyper::upgrade::on(&mut response);
    let api = Arc::clone(api);
    tokio::spawn(async move {
        match tokio::try_join!(here, there) {
            Ok((here, there)) => {
                line.activity.upgrade();
                tokio::select! {
                    () = pass(TokioIo::new(here), TokioIo::new(there)) => {}
                    () = left(&api.elsewhere, &site) => {}
                    () = api.shutdown.wait() => {}
                }
            }
            Err(error) => tracing::debug!(%error, "a WebSocket could not be passed on"),
        }
        // Until here the connection counts as open, and the request as one that is passed on.
        drop((line, forward));
    });
    let (mut head, _) = response.into_parts();
    let protocol = head.headers.get(UPGRADE).cloned();
    hops::strip(&mut head.headers);
    hops::upgrade(&mut head.headers, protocol.as_ref());
    Ok(Response::from_parts(head, Body::empty()))
}

/// Passes bytes on in both directions until one end says no more.
async fn pass(here: impl AsyncRead + AsyncWrite, there: impl AsyncRead + AsyncWrite) {
    let ((mut from_here, mut to_here), (mut from_there, mut to_there)) = (split(here), split(there));
    let ended = tokio::select! {
        ended = copy(&mut from_here, &mut to_there) => ended,
        ended = copy(&mut from_there, &mut to_here) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a WebSocket that is passed on broke off");
    }
}
