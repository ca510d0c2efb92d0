//! The way of a request: bounds, origin, route, rate, key, body, route, headers. Whatever refuses it, the response is
//! JSON and carries every [response header](crate::http::response_headers).

use crate::http::error_codes;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use agentsvc_components::kernel::limit;
use bytes::Bytes;
use futures_util::FutureExt;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_MAX_AGE, ALLOW, CONTENT_LENGTH,
    HeaderValue, TRANSFER_ENCODING, WARNING,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, StatusCode};
use tracing::Instrument;

use crate::http::access::{Policy, Seen, Shown};
use crate::http::answers::{Answers, Reserved};
use crate::http::api::Api;
use crate::http::body::BodyStream;
use crate::http::call::{Call, ParamSpans};
use crate::http::error::Error;
use crate::http::origin::{OriginClass, check_names};
use crate::http::peer::{Holder, Peer, Place};
use crate::http::permit::Permit;
use crate::http::principal::Principal;
use crate::http::relay::Way;
use crate::http::reply::{Body, Response};
use crate::http::response_headers::ResponseHeaders;
use crate::http::route::{Auth, Reach, Route};
use crate::http::server::Line;
use crate::http::shutdown::Shutdown;
use crate::http::table::Found;
use crate::http::trace::request_span;
use crate::http::{body, json, permit, principal, relay, reply, sites, sse};

/// Rate cost of a request that reaches no route.
const COST_UNMATCHED: u32 = 1;

/// Headers that a page of another origin may send.
const CORS_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, traceparent, \
     x-agentsvc-agent-id, x-agentsvc-session, x-api-key, x-request-id, x-visitor",
);

/// Seconds a browser may remember a preflight.
const CORS_SECS: HeaderValue = HeaderValue::from_static("600");

/// Answers one request of `client`, and says whose share it takes.
pub(crate) async fn dispatch<B>(api: &Arc<Api>, client: &Peer, request: Request<B>) -> (Response, Place)
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
{
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let policy = api.access.policy();
    let found = api.table.find(&parts.method, parts.uri.path());
    let (index, route) = match found {
        Found::Route(route, index, _) => (Some(index), Some(route)),
        Found::OtherMethods(_) | Found::Nothing => (None, None),
    };
    let sound = check_message(api, &parts);
    let begun = api.elsewhere.begin(relay::is_awaited(&parts.method, route));
    let way = if sound.is_ok() { relay::way(api, &policy, &parts, &found, client.ip) } else { Way::Here };
    let (mut response, place) = match way {
        Way::Away(site) => {
            drop(begun);
            Box::pin(relay::relay(api, client, (parts, body), site, route)).await
        }
        way => {
            let _begun = begun;
            answer(api, client, (parts, body), (&policy, found), (sound, way == Way::Alone)).await
        }
    };
    if client.is_passed_on {
        relay::tell_holder(&mut response, place.holder());
    }
    api.metrics.count(index, response.status(), started.elapsed());
    (response, place)
}

/// Answers a request that is `sound` as a message on this node; `is_alone` where another one owns the world.
async fn answer<B>(
    api: &Arc<Api>,
    client: &Peer,
    (mut parts, body): (Parts, B),
    (policy, found): (&Policy, Found<'static>),
    (sound, is_alone): (Result<(), Error>, bool),
) -> (Response, Place)
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
{
    let peer = client.ip;
    let page = sites::called(api.table, &parts, &found);
    let of_page = page.map(|token| api.access.sites.class(token, &parts));
    let class = of_page.unwrap_or_else(|| policy.origin_class(&parts));
    let own = ResponseHeaders::of(&parts, class);
    let is_head = parts.method == Method::HEAD;
    let is_read = is_head || parts.method == Method::GET;
    let error_form = api.error_form(parts.uri.path());
    let (label, auth) = match found {
        Found::Route(route, ..) => (route.path, route.auth),
        Found::OtherMethods(_) | Found::Nothing => ("", Auth::Public),
    };
    let span = request_span(parts.method.as_str(), label, own.id, own.trace.as_ref());
    let sound = match sound.and_then(|()| check_origin(policy, &parts, (class, page), &found)) {
        Ok(()) if is_alone => Ok(()),
        Ok(()) => policy.await_keys(&parts, auth, api.settings.limits.loading_time_max).await,
        refused => refused,
    };
    // A page that may not call guesses no key in its visitor's name, and one of a site needs none.
    let seen = match (sound.is_ok() && page.is_none(), is_alone) {
        (false, _) => Seen::NOTHING,
        (true, false) => policy.look(&parts, auth, peer),
        (true, true) => policy.look_alone(&parts, auth, peer),
    };
    let admitted = sound.and_then(|()| admit(api, policy, &parts, class, &found, (client, &seen)));
    let admitted = if is_alone { admitted.map_err(relay::explain) } else { admitted };
    let (admitted, place) = take_place(client, &seen, &mut parts, admitted);
    let holder = place.holder();
    let with_room = |admitted| if is_read { Ok(admitted) } else { api.answers.admit(holder).map(|()| admitted) };
    let (admitted, room) = with_memory(api, holder, admitted.and_then(with_room)).await;
    let mut response = match admitted {
        Ok(Admitted::Preflight(response)) => Ok(response),
        Ok(Admitted::To(route, spans, is_keyed)) => {
            let principal = seen.principal().on(route);
            let key_changed = seen.ended(policy);
            let actor = principal.actor();
            let answer = run(api, route, spans, parts, body, (peer, is_keyed, key_changed, principal), &own);
            let answer = principal::acting(actor, answer).instrument(span.clone());
            answer.await.map(|response| sse::end_on(key_changed, response))
        }
        Err(error) => {
            body::discard(body::expects(&parts), body).await;
            Err(error)
        }
    }
    .unwrap_or_else(|error| error_form(error).into_response());
    if is_head {
        strip_body(&mut response);
    }
    policy.charge(peer, seen.shown.share(), response.body());
    let mut response =
        counted(api, (holder, room), response, is_read).unwrap_or_else(|error| error_form(error).into_response());
    let status = response.status().as_u16();
    span.record("status", status);
    span.in_scope(|| tracing::debug!(route = label, status, request = %own.id, "answered"));
    own.apply(response.headers_mut());
    (response, place)
}

/// Counts the body of an answer, in place of the memory that was taken for it, if any was.
fn counted(
    api: &Api,
    (holder, room): (Holder, Option<Reserved>),
    response: Response,
    is_read: bool,
) -> Result<Response, Error> {
    let (head, body) = response.into_parts();
    let body = match room {
        Some(room) => Answers::count_reserved(room, body),
        None => api.answers.count(holder, body, is_read)?,
    };
    Ok(Response::from_parts(head, body))
}

/// A request that may go on.
enum Admitted<'t> {
    /// It is already answered: `OPTIONS`.
    Preflight(Response),
    /// To this route, with its parameters standing there, and with or without the key.
    To(&'t Route, ParamSpans, bool),
}

/// Counts the request for whoever it is of, and refuses it where that one has no share left. A socket counts for as long as
/// it is open.
fn take_place<'t>(
    client: &Peer,
    seen: &Seen,
    parts: &mut Parts,
    admitted: Result<Admitted<'t>, Error>,
) -> (Result<Admitted<'t>, Error>, Place) {
    let holder = match &admitted {
        Ok(Admitted::To(route, _, true)) => client.holder_of(&seen.principal().on(route)),
        _ if seen.shown == Shown::Nothing => client.keyless_holder(),
        _ => client.holder(),
    };
    let (place, room) = client.place(holder);
    if let Some(line) = parts.extensions.get_mut::<Line>() {
        line.keep(place.clone());
    }
    let admitted = admitted.and_then(|admitted| room.map(|()| admitted));
    let is_too_often = |error: &Error| error.status() == StatusCode::TOO_MANY_REQUESTS;
    client.count_refusal(admitted.as_ref().err().is_some_and(is_too_often));
    (admitted, place)
}

/// Takes the memory that the answer of the route may take while it is made.
async fn with_memory<'t>(
    api: &Arc<Api>,
    holder: Holder,
    admitted: Result<Admitted<'t>, Error>,
) -> (Result<Admitted<'t>, Error>, Option<Reserved>) {
    let bytes = if let Ok(Admitted::To(route, ..)) = &admitted { route.answer_max } else { 0 };
    if bytes == 0 {
        return (admitted, None);
    }
    // In a box, so that the many small answers do not carry it.
    match Box::pin(api.answers.reserve(holder, bytes)).await {
        Ok(room) => (admitted, Some(room)),
        Err(error) => (Err(error), None),
    }
}

/// Is it a message that this server takes, whatever it asks for?
fn check_message(api: &Api, parts: &Parts) -> Result<(), Error> {
    check_size(api, parts)?;
    check_transfer_encoding(&parts.headers)?;
    check_names(parts)
}

/// May a page of its origin send it?
fn check_origin(
    policy: &Policy,
    parts: &Parts,
    (class, page): (OriginClass, Option<&str>),
    found: &Found<'_>,
) -> Result<(), Error> {
    if let Some(token) = page {
        return sites::check(token, class);
    }
    match found {
        Found::Route(route, ..) if route.auth == Auth::Socket => policy.check_page_origin(parts),
        Found::Route(route, ..) if route.linked => policy.check_linked(parts, class),
        _ => policy.check_origin(parts, class),
    }
}

/// All else that can be said before the body is read.
fn admit<'t>(
    api: &Arc<Api>,
    policy: &Policy,
    parts: &Parts,
    class: OriginClass,
    found: &Found<'t>,
    (client, seen): (&Peer, &Seen),
) -> Result<Admitted<'t>, Error> {
    let cost = if let Found::Route(route, ..) = found { route.cost } else { COST_UNMATCHED };
    let peer = client.ip;
    policy.check_rate(peer, seen.shown.share(), cost)?;
    match found {
        Found::Route(route, _, spans) => {
            let allowed = policy.check_auth(parts, route.auth, peer, seen.shown);
            allowed.inspect_err(|_| api.note_unauthorized(peer, route.path))?;
            let principal = seen.principal().on(route);
            let is_keyed = policy.is_keyed(parts, route.auth, seen) && principal.role().is_some();
            if is_keyed {
                client.show(&principal, seen.ended(policy))?;
                principal::check(&principal, route)?;
            }
            if let Some(grant) = &seen.grant {
                api.access.keys.used(grant, limit::KEY_USE_STORED_MS);
            }
            if route.needs_room {
                api.health.check_room()?;
            }
            Ok(Admitted::To(route, *spans, is_keyed))
        }
        Found::OtherMethods(allow) if parts.method == Method::OPTIONS => {
            Ok(Admitted::Preflight(preflight(allow, class)))
        }
        Found::OtherMethods(allow) => Err(Error::method_not_allowed((*allow).clone())),
        Found::Nothing => Err(Error::not_found("unknown path; GET /api/openapi.json lists all paths")),
    }
}

/// 414 and 431.
fn check_size(api: &Api, parts: &Parts) -> Result<(), Error> {
    let limits = &api.settings.limits;
    let uri_bytes = parts.uri.path_and_query().map_or(0, |uri| uri.as_str().len());
    if uri_bytes > limits.uri_bytes_max {
        let message = format!("the path and query are longer than {} bytes", limits.uri_bytes_max);
        return Err(Error::new(StatusCode::URI_TOO_LONG, message));
    }
    if header_bytes(&parts.headers) > limits.header_bytes_max {
        let message = format!("the headers are larger than {} bytes", limits.header_bytes_max);
        return Err(Error::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message));
    }
    Ok(())
}

/// 501 for a body in any other coding than `chunked` alone: its bytes would be taken for the content.
fn check_transfer_encoding(headers: &HeaderMap) -> Result<(), Error> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = codings.next().is_none_or(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    if is_chunked && codings.next().is_none() {
        return Ok(());
    }
    let message = "this Transfer-Encoding is not supported; send the body with Content-Length or with chunked alone";
    Err(Error::new(StatusCode::NOT_IMPLEMENTED, message))
}

/// The headers' size as sent over HTTP/1.1, line ends included.
fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// The answer to `OPTIONS`: what the path takes, and what a page of an allowed origin may send.
fn preflight(allow: &HeaderValue, class: OriginClass) -> Response {
    let mut response = reply::no_content();
    let headers = response.headers_mut();
    headers.insert(ALLOW, allow.clone());
    if class == OriginClass::Allowed {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, CORS_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, CORS_SECS);
    }
    response
}

/// Reads the body and runs the route. A panic in it is a 500 and is counted.
async fn run<B>(
    api: &Arc<Api>,
    route: &'static Route,
    spans: ParamSpans,
    parts: Parts,
    body: B,
    (peer, is_keyed, key_changed, principal): (IpAddr, bool, &Shutdown, Principal),
    own: &ResponseHeaders,
) -> Result<Response, Error>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
{
    if !route.while_loading {
        tokio::select! {
            () = api.bridge.loaded(api.settings.limits.loading_time_max) => {}
            () = api.shutdown.wait() => {}
        }
    }
    if is_keyed {
        check_owner(api, route, &spans, &parts, &principal).await?;
    }
    let ((body, permit), stream) = if route.streamed.is_some() {
        let stream = BodyStream::new(&parts, body, api.settings.limits.body_time_max);
        ((Bytes::new(), None), if is_keyed { stream.until(key_changed) } else { stream })
    } else {
        (read_body(api, route, &parts, body, is_keyed.then_some(&principal)).await?, BodyStream::ended())
    };
    // A body may take long to come.
    if is_keyed && key_changed.is_triggered() {
        return Err(Error::unauthorized());
    }
    let left = stream.clone();
    let warning = route.request.map(|_| Arc::new(OnceLock::new()));
    let call = Call {
        api: Arc::clone(api),
        route,
        parts,
        body,
        stream,
        peer,
        is_keyed,
        principal,
        key_changed: key_changed.clone(),
        request_id: own.id,
        trace: own.trace,
        spans,
        warning: warning.clone(),
    };
    let answer = AssertUnwindSafe(permit::hold(permit, (route.run)(call))).catch_unwind().await;
    left.discard().await;
    let mut response = answer.unwrap_or_else(|_| {
        api.health.note_panic();
        tracing::error!(route = route.path, request = %own.id, "a route panicked");
        Err(Error::of(error_codes::PANIC, "internal error"))
    })?;
    let text = warning.as_ref().and_then(|warning| warning.get());
    if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
        response.headers_mut().insert(WARNING, value);
    }
    Ok(response)
}

/// Refuses an agent in the path that does not belong to a user who sees nothing else.
async fn check_owner(
    api: &Arc<Api>,
    route: &Route,
    spans: &ParamSpans,
    parts: &Parts,
    principal: &Principal,
) -> Result<(), Error> {
    let Some(user) = principal.limited_to().filter(|_| route.reach() == Reach::Agent) else { return Ok(()) };
    let (start, end) = spans[0];
    let agent = parts.uri.path().get(usize::from(start)..usize::from(end)).unwrap_or_default();
    match api.owns() {
        Some(owns) => owns(Arc::clone(api), user, agent.to_owned()).await,
        None => Err(Error::forbidden("agents have no owners here")),
    }
}

/// Reads the body whole, as far as there is room for it and for what becomes of it. Without the key there is less.
async fn read_body<B>(
    api: &Api,
    route: &Route,
    parts: &Parts,
    body: B,
    keyed: Option<&Principal>,
) -> Result<(Bytes, Option<Permit>), Error>
where
    B: hyper::body::Body<Data = Bytes>,
{
    let (max, permits) = if let Some(principal) = keyed {
        (route.body_max, &api.permits_of(principal))
    } else {
        // A route with a small bound of its own, such as that of hooks with their token, keeps it.
        let is_small = route.body_max <= limit::BODY_KEYLESS_DECLARED_BYTES_MAX;
        (if is_small { route.body_max } else { limit::BODY_KEYLESS_BYTES_MAX }, &api.keyless_permits)
    };
    let (body, mut permit) = body::read(parts, body, max, api.settings.limits.body_time_max, permits).await?;
    if let Some(permit) = permit.as_mut().filter(|_| route.request.is_some()) {
        let bytes = json::memory_bytes(&body);
        if bytes > limit::JSON_BYTES_MAX {
            let text = format!(
                "the request body would take {bytes} bytes of memory: it has too many objects, arrays or members"
            );
            return Err(Error::new(StatusCode::PAYLOAD_TOO_LARGE, text).with("limit_bytes", limit::JSON_BYTES_MAX));
        }
        permit.take(bytes - body.len())?;
    }
    Ok((body, permit))
}

/// Leaves what `GET` would say about the body, without the body.
fn strip_body(response: &mut Response) {
    let body = std::mem::replace(response.body_mut(), Body::empty());
    if let Body::Full(bytes) = body {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    }
}

#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;
