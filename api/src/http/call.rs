//! One request on its way through a route, and the extractors that routes use. Every extractor's error names the
//! parameter or key at fault.

use std::borrow::Cow;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use agentsvc_components::kernel::scope::Scope;
use agentsvc_components::{Actor, AgentId};
use agentsvc_systems::Command;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::http::request::Parts;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::Api;
use crate::http::body::BodyStream;
use crate::http::cpu::Asker;
use crate::http::error::Error;
use crate::http::peer::Holder;
use crate::http::principal::Principal;
use crate::http::rate::{ClientKey, Share};
use crate::http::route::Route;
use crate::http::shutdown::Shutdown;
use crate::http::trace::TraceContext;
use crate::http::{json, query_string};

/// Path parameters one pattern may have.
pub(crate) const PARAMS_MAX: usize = 4;

/// Where the values of the path's parameters stand in the path, in order: start and end in bytes.
pub(crate) type ParamSpans = [(u16, u16); PARAMS_MAX];

/// One request, past authentication and rate limiting, with its body.
pub struct Call {
    /// What the daemon is made of.
    pub api: Arc<Api>,
    /// The route that matched.
    pub route: &'static Route,
    /// Method, URI and headers as received.
    pub parts: Parts,
    /// The whole body, at most the route's `body_max` bytes; empty on a [`streamed`](Route::streamed) route.
    pub body: Bytes,
    /// The body piece by piece on a [`streamed`](Route::streamed) route; at its end on any other.
    pub stream: BodyStream,
    /// The client's address.
    pub peer: IpAddr,
    /// The client sent the key, or none is set.
    pub is_keyed: bool,
    /// Who the client is.
    pub principal: Principal,
    /// Triggered when the key that let the request in is no longer in force. Event streams end by themselves then.
    pub(crate) key_changed: Shutdown,
    /// The id in `x-request-id`.
    pub request_id: Uuid,
    /// The trace that the client says it belongs to.
    pub trace: Option<TraceContext>,
    pub(crate) spans: ParamSpans,
    /// Where the value of the `Warning` header goes; `None` on routes that take no JSON.
    pub(crate) warning: Option<Arc<OnceLock<String>>>,
}

impl Call {
    /// The request's headers.
    #[must_use]
    pub const fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// The request's path, percent-encoded as received.
    #[must_use]
    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// Who sends the commands of this request.
    #[must_use]
    pub fn actor(&self) -> Actor {
        self.principal.actor()
    }

    /// Whose [places](crate::http::cpu) for long work this request takes.
    #[must_use]
    pub fn asker(&self) -> Asker {
        Asker::client(Holder::of(&self.principal, ClientKey::of(self.peer)))
    }

    /// Sends `command` to the world and waits for its reply.
    ///
    /// # Errors
    /// The world's refusal, or 503 when it is loading, draining or full.
    pub async fn ask<C: Command>(&self, command: C) -> Result<C::Reply, Error> {
        self.api.bridge.ask(command).await.map_err(Error::from)
    }

    /// Refuses an agent that does not belong to a client who sees only its own things, as one that does not exist.
    ///
    /// # Errors
    /// 404.
    pub(crate) async fn check_owner(&self, agent: AgentId) -> Result<(), Error> {
        let Some(user) = self.principal.limited_to() else { return Ok(()) };
        match self.api.owns() {
            Some(owns) => owns(Arc::clone(&self.api), user, agent.to_string()).await,
            None => Err(Error::forbidden("agents have no owners here")),
        }
    }

    /// Refuses a change after which agents may run, now or later, to a key without the scope `chat`. Routes that have other changes,
    /// too, ask here; those that have none say so ([`Route::runs_agents`](super::route::Route::runs_agents)).
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check_may_run(&self) -> Result<(), Error> {
        if self.principal.has(Scope::Chat) {
            return Ok(());
        }
        Err(Error::forbidden("this key may only disable it: any other change needs the scope chat"))
    }

    /// Takes `cost` more units from the client's rate budget, beside those of the route.
    ///
    /// # Errors
    /// 429 with `Retry-After`.
    pub fn charge(&self, cost: u32) -> Result<(), Error> {
        let share = if self.is_keyed { Share::Keyed } else { Share::Keyless };
        self.api.access.policy().check_rate(self.peer, share, cost)
    }

    /// The path parameter `name` as received, percent-encoded. Empty when the pattern has no such parameter.
    fn raw_param(&self, name: &str) -> &str {
        let position = self.route.param_names().position(|n| n == name);
        debug_assert!(position.is_some(), "{} has no parameter {name}", self.route.path);
        let span = position.and_then(|at| self.spans.get(at));
        span.and_then(|&(start, end)| self.path().get(usize::from(start)..usize::from(end))).unwrap_or("")
    }

    /// The path parameter `name`, percent-decoded.
    ///
    /// # Errors
    /// 400 when it is not UTF-8, or holds NUL.
    pub fn param(&self, name: &str) -> Result<Cow<'_, str>, Error> {
        let decoded = query_string::percent_decode(self.raw_param(name), false);
        match decoded {
            Some(text) if !text.contains('\0') => Ok(text),
            _ => Err(Error::bad_field(name, format!("path parameter '{name}' is not valid UTF-8 text"))),
        }
    }

    /// The path parameter `name` as an id, such as `call.id::<AgentId>("id")`.
    ///
    /// # Errors
    /// 400 naming the parameter when it is not a UUID.
    pub fn id<T: FromStr>(&self, name: &str) -> Result<T, Error> {
        self.raw_param(name)
            .parse()
            .map_err(|_| Error::bad_field(name, format!("path parameter '{name}' is not a valid UUID")))
    }

    /// The JSON body.
    ///
    /// Unknown keys are ignored with a `Warning` header, or a 422 on a [`closed`](Route::closed) route.
    ///
    /// # Errors
    /// 415 for another content type; 400 naming the key for anything that is not a JSON object of the shape of `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        json::check_content_type(&self.parts.headers)?;
        json::read_object(&self.body, self.route.closed, self.warning.as_deref())
    }

    /// The JSON body of a route that also takes a bare array.
    ///
    /// # Errors
    /// As [`json`](Self::json).
    pub fn json_array<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        json::check_content_type(&self.parts.headers)?;
        json::read(&self.body, self.route.closed, self.warning.as_deref())
    }

    /// Is the body a bare array, which the list routes take in place of an object with one key?
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
    }

    /// The JSON body, or the default when there is no body at all; otherwise as [`json`](Self::json).
    ///
    /// # Errors
    /// As [`json`](Self::json).
    pub fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, Error> {
        if self.body.is_empty() { Ok(T::default()) } else { self.json() }
    }

    /// The query as `T`, whose fields are text, numbers, booleans, unit enums or options of those. A parameter that
    /// is given twice counts once, the last value; unknown ones are ignored.
    ///
    /// # Errors
    /// 400 naming the parameter.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Error> {
        query_string::read(self.parts.uri.query().unwrap_or(""))
    }
}
