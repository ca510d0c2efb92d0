//! Passing requests on to the node that answers, and its answers back: bodies as they come, streams and sockets too.
//!
//! The other node asks for the key, judges origins and keeps limits, for it knows users and keys; it is told whose request it is
//! ([`elsewhere`](crate::http::elsewhere)). This one keeps the limits of its own server: sizes, connections, rates, memory.
//!
//! | the connection fails | what becomes of the request |
//! |---|---|
//! | before it was sent, or it changes nothing | it is sent again, for a moment; then 503 `moving` |
//! | not, but its node gives the world away | it is waited for as long as that node says that it answers what it has begun |
//! | after it was sent | 502 `outcome_unknown`: it may have been carried out |
//! | within the answer | the answer breaks off |

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{EXPECT, HOST, HeaderName, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use tokio::time::{Instant, sleep};
use tracing::Instrument;

use crate::http::access::{Policy, Presented, Shown};
use crate::http::api::Api;
use crate::http::elsewhere::{Elsewhere, FORWARDED, HOLDER, Site};
use crate::http::error::Error;
use crate::http::forwards::{Asker, Forward};
use crate::http::links::{Link, Outgoing};
use crate::http::peer::{Holder, Peer, Place};
use crate::http::proven::KeyHash;
use crate::http::rate::Share;
use crate::http::reply::Response;
use crate::http::response_headers::ResponseHeaders;
use crate::http::route::{Auth, Route, Spot, Verb};
use crate::http::server::Line;
use crate::http::shutdown::Shutdown;
use crate::http::table::Found;
use crate::http::trace::request_span;
use crate::http::{body, error_codes, sse};

mod answer;
mod hops;
mod socket;

/// How long a request is sent again that was not taken.
const REPEAT_TIME_MAX: Duration = Duration::from_secs(2);
/// The pause before that.
const REPEAT_PAUSE: Duration = Duration::from_millis(50);
/// Time between two looks at whether a node still answers from which an answer is awaited.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Looks in a row that find another one until the answer is given up: the node may be about to end it in order.
const LOOKS_MAX: u32 = 4;
/// Rate cost of a request that reaches no route.
const COST_UNMATCHED: u32 = 1;
/// Seconds after which one may try again whose request nobody answers.
const RETRY_SECS: u32 = 1;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Where a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Here, as always.
    Here,
    /// Here, although another node answers most requests: named keys and users are not known.
    Alone,
    /// There.
    Away(Site),
}

impl Route {
    /// Gives the world away, which waits for other changes that were begun, and not for this one.
    #[must_use]
    pub const fn outlasts_world(self) -> Self {
        Self { outlasts_world: true, ..self }
    }
}

/// Does a world that is given away wait for the answer to this request? To changes that are not about giving it away.
pub(crate) fn is_awaited(method: &Method, route: Option<&Route>) -> bool {
    let is_change = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    is_change && route.is_some_and(|route| !route.outlasts_world)
}

/// Where this request is answered.
pub(crate) fn way(api: &Api, policy: &Policy, parts: &Parts, found: &Found<'_>, client: IpAddr) -> Way {
    if !api.elsewhere.is_set() {
        return Way::Here;
    }
    let site = api.elsewhere.site();
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    let site = match site {
        Site::Here if !is_read || api.elsewhere.is_fresh() => return Way::Here,
        // Another node may own the world; a change would find out, and a read would not.
        Site::Here => Site::Nowhere,
        site => site,
    };
    let (spot, auth) = match found {
        Found::Route(route, ..) => (route.spot, route.auth),
        // The other node may be of another version, and have more routes.
        _ if Verb::of(&parts.method).is_some() || parts.method == Method::OPTIONS => (Spot::There, Auth::Public),
        _ => (Spot::Here, Auth::Public),
    };
    let is_known = || policy.look_alone(parts, auth, client).shown == Shown::Right;
    match spot {
        Spot::Here => Way::Alone,
        Spot::Near if site == Site::Nowhere || is_known() => Way::Alone,
        Spot::Near | Spot::There => Way::Away(site),
    }
}

/// Says to a client whose key is refused here why that may be.
pub(crate) fn explain(error: Error) -> Error {
    if error.status() != StatusCode::UNAUTHORIZED {
        return error;
    }
    let text = "this node is a standby, which answers this itself and knows the api_key of its configuration only";
    Error::of(error_codes::STANDBY_KEY, text)
        .header(hyper::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

/// For whom the connection of a request counts: the client itself, or, where another node passed the request on, that one's
/// client, as long as the request lasts.
pub(crate) fn client(api: &Arc<Api>, peer: &Arc<Peer>, request: &Request<Incoming>) -> Arc<Peer> {
    let Some(ip) = api.elsewhere.client(request) else { return Arc::clone(peer) };
    // A node of ours: strangers must not crowd it out.
    peer.count_as(peer.owner(), api.elsewhere.leaving());
    // What is on the machine of that node is not on this one.
    let ip = if ip.to_canonical().is_loopback() { peer.ip } else { ip };
    let mut client = api.peers.connect(ip, api.access.policy().is_open());
    client.is_passed_on = true;
    Arc::new(client)
}

/// Tells the node that passed a request on for whom it counts.
pub(crate) fn tell_holder(response: &mut Response, holder: Holder) {
    let said = holder.word().and_then(|word| HeaderValue::from_str(&word).ok());
    response.headers_mut().extend(said.map(|said| (HOLDER, said)));
}

/// Who asks, as far as this node knows.
struct Asking {
    asker: Asker,
    /// The bucket that the request takes from: a key that may be wrong takes nothing from those that are right.
    share: Share,
    /// What it shows that may be a key.
    key: Option<KeyHash>,
}

impl Asking {
    /// Whoever sends this request. Who shows a key that was found right before has its connection count for it from here on.
    fn of(api: &Api, policy: &Policy, client: &Peer, (parts, auth): (&Parts, Auth)) -> Self {
        let known = |holder, ended: &Shutdown| {
            client.count_as(holder, ended);
            (Asker::Known(holder), Share::Keyed)
        };
        let (presented, proven) = (policy.presented(parts, auth), &api.elsewhere.proven);
        let key = if let Presented::Other(key) = presented { key } else { None };
        let (asker, share) = match presented {
            Presented::Nothing => (Asker::Keyless(client.client()), Share::Keyless),
            Presented::Own => known(client.owner(), &policy.key_changed),
            Presented::Other(_) => match key.and_then(|key| proven.find(&key)) {
                Some((Holder::Owner(_), ended)) => known(client.owner(), &ended),
                Some((holder, ended)) => known(holder, &ended),
                None => (Asker::Unproven(client.client()), Share::Guess),
            },
        };
        Self { asker, share, key }
    }

    /// For whom the request counts.
    fn holder(&self, client: &Peer) -> Holder {
        if let Asker::Known(holder) = self.asker { holder } else { client.keyless_holder() }
    }

    /// The other node has answered, and said whose key it is, if it is right and was looked at.
    fn learn(&self, api: &Api, policy: &Policy, client: &Peer, status: StatusCode, said: Option<&HeaderValue>) {
        let holder = said.map(|said| client.holder_said(said.to_str().unwrap_or_default()));
        match (self.key, holder) {
            (_, Some(Holder::Keyless(_))) => {}
            (Some(key), Some(holder)) => client.count_as(holder, &api.elsewhere.proven.learn(key, holder)),
            (None, Some(Holder::Owner(_))) => client.count_as(client.owner(), &policy.key_changed),
            (Some(key), None) if status == StatusCode::UNAUTHORIZED => api.elsewhere.proven.forget(&key),
            (_, Some(Holder::Named(_) | Holder::Limited(_)) | None) => {}
        }
    }
}

/// Passes a request on, and gives the answer, which is complete.
pub(crate) async fn relay<B>(
    api: &Arc<Api>,
    client: &Peer,
    (mut parts, body): (Parts, B),
    site: Site,
    route: Option<&Route>,
) -> (Response, Place)
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
{
    let own = ResponseHeaders::of(&parts, api.access.policy().origin_class(&parts));
    let label = route.map_or("", |route| route.path);
    let span = request_span(parts.method.as_str(), label, own.id, own.trace.as_ref());
    let policy = api.access.policy();
    let asking = Asking::of(api, &policy, client, (&parts, route.map_or(Auth::Public, |route| route.auth)));
    let (place, room) = client.place(asking.holder(client));
    if let Some(line) = parts.extensions.get_mut::<Line>() {
        line.keep(place.clone());
    }
    let announced = body.size_hint().lower();
    let body = Outgoing::new(body);
    let admitted = room.and_then(|()| admit(api, (&policy, &asking), client, &parts, announced, route));
    let refusal = admitted.as_ref().err().map(Error::status);
    client.count_refusal(refusal == Some(StatusCode::TOO_MANY_REQUESTS));
    let answer = match admitted {
        Ok(forward) => {
            let passed_on = pass_on(api, (client, &asking), &mut parts, body.clone(), (site, forward), &own);
            passed_on.instrument(span.clone()).await
        }
        Err(error) => Err(error),
    };
    let response = match answer {
        Ok(response) => {
            let (head, body) = response.into_parts();
            let body = api.answers.count(place.holder(), body, false);
            body.map_or_else(Error::into_response, |body| Response::from_parts(head, body))
        }
        Err(error) => {
            if let Some(rest) = body.take() {
                body::discard(body::expects(&parts), rest).await;
            }
            let mut response = api.error_form(parts.uri.path())(error).into_response();
            own.apply(response.headers_mut());
            response
        }
    };
    let status = response.status().as_u16();
    span.record("status", status);
    span.in_scope(|| tracing::debug!(route = label, status, "passed on"));
    (response, place)
}

/// The limits of this server.
fn admit(
    api: &Api,
    (policy, asking): (&Policy, &Asking),
    client: &Peer,
    parts: &Parts,
    announced: u64,
    route: Option<&Route>,
) -> Result<Forward, Error> {
    if parts.headers.contains_key(FORWARDED) {
        return Err(moving(&api.elsewhere));
    }
    policy.check_rate(client.ip, asking.share, route.map_or(COST_UNMATCHED, |route| route.cost))?;
    if let Some(route) = route.filter(|route| route.streamed.is_none() && announced > route.body_max as u64) {
        return Err(body::too_large(route.body_max as u64));
    }
    api.elsewhere.forwards.take(asking.asker)
}

/// Sends it, and gives the answer.
async fn pass_on(
    api: &Arc<Api>,
    (client, asking): (&Peer, &Asking),
    parts: &mut Parts,
    body: Outgoing,
    (site, forward): (Site, Forward),
    own: &ResponseHeaders,
) -> Result<Response, Error> {
    let headers = headers_of(api, parts, client.ip, own);
    let (mut response, link, site) = exchange(&api.elsewhere, parts, &headers, &body, site).await?;
    add(&api.elsewhere.counts.answered);
    let (status, said) = (response.status(), response.headers_mut().remove(HOLDER));
    asking.learn(api, &api.access.policy(), client, status, said.as_ref());
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return socket::join(api, parts, response, (site, forward));
    }
    let response = answer::back(api, response, (link, body), (site, forward));
    Ok(sse::end_on(&api.shutdown, response))
}

/// The headers for the other node: those of the client without what is for this hop alone, and whose request it is.
fn headers_of(api: &Api, parts: &Parts, client: IpAddr, own: &ResponseHeaders) -> HeaderMap {
    let mut headers = parts.headers.clone();
    hops::strip(&mut headers);
    // It is for whoever reads the body, which this node does.
    headers.remove(EXPECT);
    if parts.extensions.get::<Line>().is_some() {
        hops::upgrade(&mut headers, parts.headers.get(UPGRADE));
    }
    if let Some(host) = parts.uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok()) {
        headers.entry(HOST).or_insert(host);
    }
    if let Ok(client) = HeaderValue::from_str(&client.to_string()) {
        headers.append(X_FORWARDED_FOR, client);
    }
    api.elsewhere.vouch(parts, client, own.id, &mut headers);
    headers
}

fn request_of(parts: &Parts, headers: &HeaderMap, body: &Outgoing) -> Request<Outgoing> {
    let mut request = Request::new(body.clone());
    *request.method_mut() = parts.method.clone();
    *request.version_mut() = Version::HTTP_11;
    let path = parts.uri.path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
    *request.headers_mut() = headers.clone();
    request
}

/// Sends the request to `site`, or, where that was in vain, to whatever node answers then.
async fn exchange(
    elsewhere: &Elsewhere,
    parts: &Parts,
    headers: &HeaderMap,
    body: &Outgoing,
    mut site: Site,
) -> Result<(hyper::Response<Incoming>, Link, Arc<str>), Error> {
    let changes_nothing = matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) && body.is_ended();
    let mut until = Instant::now() + REPEAT_TIME_MAX;
    let mut unsent = None;
    loop {
        let Site::There(to) = &site else { return Err(moving(elsewhere)) };
        let request = unsent.take().unwrap_or_else(|| request_of(parts, headers, body));
        match elsewhere.links.get(to).await {
            // It may have said meanwhile that it takes no more.
            Ok(_) if elsewhere.site() != site => unsent = Some(request),
            Ok(mut link) => {
                let answered = link.try_send_request(request);
                tokio::select! {
                    answer = answered => match answer {
                        Ok(response) => return Ok((response, link, Arc::clone(to))),
                        Err(mut error) => {
                            tracing::debug!(error = %error.error(), to = &**to, "a request could not be passed on");
                            unsent = error.take_message();
                            if unsent.is_none() && !changes_nothing {
                                return Err(unknown(elsewhere));
                            }
                        }
                    },
                    () = left(elsewhere, to) => {
                        if !changes_nothing {
                            return Err(unknown(elsewhere));
                        }
                        until = Instant::now() + REPEAT_TIME_MAX;
                    }
                }
            }
            Err(error) => {
                tracing::debug!(%error, to = &**to, "the node that answers takes no connection");
                unsent = Some(request);
            }
        }
        if Instant::now() >= until {
            return Err(moving(elsewhere));
        }
        add(&elsewhere.counts.repeated);
        sleep(REPEAT_PAUSE).await;
        site = elsewhere.site();
    }
}

/// Ends when the node at `site` has for a while neither been the one that answers nor answered what it had begun before.
async fn left(elsewhere: &Elsewhere, site: &Arc<str>) {
    let mut looks = 0;
    while looks < LOOKS_MAX {
        sleep(LOOK_PERIOD).await;
        looks = if elsewhere.answers(site) { 0 } else { looks + 1 };
    }
}

fn moving(elsewhere: &Elsewhere) -> Error {
    add(&elsewhere.counts.moving);
    Error::of(error_codes::MOVING, "no node answers at the moment, because another one takes over; nothing was done")
        .retry_after(RETRY_SECS)
}

fn unknown(elsewhere: &Elsewhere) -> Error {
    add(&elsewhere.counts.unknown);
    let text =
        "the node that was to answer broke off; the request may have been carried out, so look before you repeat it";
    Error::of(error_codes::OUTCOME_UNKNOWN, text)
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
