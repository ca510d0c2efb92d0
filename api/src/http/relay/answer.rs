//! The answer of the other node on its way to the client, as it comes.

use std::sync::Arc;

use futures_util::stream;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};

use super::{add, hops, left};
use crate::http::api::Api;
use crate::http::forwards::Forward;
use crate::http::links::{Link, Outgoing};
use crate::http::reply::{Body, BrokenOff, Response};

/// What an answer holds until the client has it.
struct Rest {
    api: Arc<Api>,
    body: Incoming,
    link: Link,
    sent: Outgoing,
    site: Arc<str>,
    _forward: Forward,
}

impl Rest {
    /// All of it came: the connection may serve the next request, if the client has sent all of this one.
    fn end(self) {
        if self.sent.is_ended() {
            self.api.elsewhere.links.keep(&self.site, self.link);
        }
    }

    /// No more of it comes.
    fn break_off(&self, why: String) -> BrokenOff {
        add(&self.api.elsewhere.counts.broken_off);
        BrokenOff(why)
    }
}

/// The answer for the client.
pub(super) fn back(
    api: &Arc<Api>,
    response: hyper::Response<Incoming>,
    (link, sent): (Link, Outgoing),
    (site, forward): (Arc<str>, Forward),
) -> Response {
    let (mut head, body) = response.into_parts();
    hops::strip(&mut head.headers);
    let is_empty = body.is_end_stream();
    let rest = Rest { api: Arc::clone(api), body, link, sent, site, _forward: forward };
    if is_empty {
        rest.end();
        return Response::from_parts(head, Body::empty());
    }
    let pieces = stream::unfold(Some(rest), |rest| async move {
        let mut rest = rest?;
        loop {
            let next = tokio::select! {
                biased;
                next = rest.body.frame() => next,
                () = left(&rest.api.elsewhere, &rest.site) => {
                    let why = rest.break_off("another node answers now".to_owned());
                    return Some((Err(why), None));
                }
            };
            match next {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) if !piece.is_empty() => return Some((Ok(piece), Some(rest))),
                    _ => {}
                },
                Some(Err(error)) => return Some((Err(rest.break_off(error.to_string())), None)),
                None => {
                    rest.end();
                    return None;
                }
            }
        }
    });
    Response::from_parts(head, Body::Stream(Box::pin(pieces)))
}
