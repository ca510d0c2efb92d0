//! A route as data: the one definition from which dispatch, `Allow`, authentication, rate cost, body limit, metrics
//! labels and the OpenAPI document come.

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::scope::Scope;
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::Response;

/// Bytes that a large answer, or a piece of one, takes while it is made, unless its route says otherwise.
const LARGE_BYTES: usize = 4 << 20;

/// What runs a call: parse, ask the world, render.
pub type Run = fn(Call) -> BoxFuture<'static, Result<Response, Error>>;

/// Gives the JSON Schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

agentsvc_components::enum_words! {
    /// The methods that routes answer to. `HEAD` is answered through `GET`, `OPTIONS` by the table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Verb [ALL, as_str] {
        /// Reads.
        Get = "GET",
        /// Creates or acts.
        Post = "POST",
        /// Replaces.
        Put = "PUT",
        /// Changes parts.
        Patch = "PATCH",
        /// Removes.
        Delete = "DELETE",
    }
}

impl Verb {
    /// The verb that answers a request's method; `None` for methods no route takes.
    #[must_use]
    pub fn of(method: &hyper::Method) -> Option<Self> {
        match *method {
            hyper::Method::GET | hyper::Method::HEAD => Some(Self::Get),
            hyper::Method::POST => Some(Self::Post),
            hyper::Method::PUT => Some(Self::Put),
            hyper::Method::PATCH => Some(Self::Patch),
            hyper::Method::DELETE => Some(Self::Delete),
            _ => None,
        }
    }
}

/// Who may call a route when an `api_key` is set (spec 1, Authentication).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Anyone.
    Public,
    /// Whoever sends `Authorization: Bearer <api_key>`.
    Bearer,
    /// Anyone; whoever sends an `Authorization` header must send a right one, and may do more
    /// ([`Call::is_keyed`](crate::http::call::Call)) unless the role or the scopes of the key refuse it.
    Optional,
    /// As [`Bearer`](Self::Bearer) for a WebSocket, where a page cannot set headers: the key may also come as the subprotocols
    /// `bearer, <api_key>` or in the query as `token`. The origin rules are those of WebSockets.
    Socket,
    /// Pages of other sites. Where the path has a token first, those of the origins that the [`Sites`](crate::http::sites) know for
    /// it; else those of every origin. The key counts for nothing here.
    Page,
}

impl Auth {
    /// Does it ask for no key?
    #[must_use]
    pub const fn is_keyless(self) -> bool {
        matches!(self, Self::Public | Self::Page)
    }
}

/// Whose things a route is about, and so who sees them beside admins and owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those of the whole installation: only admins and owners.
    All,
    /// Those of the agent that the first parameter of the path names: also the user whom the agent belongs to.
    Agent,
    /// Those of the user who asks: the route leaves out what belongs to others.
    Filtered,
    /// Nothing of anyone: every role.
    Shared,
}

/// Which node of a cluster answers a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spot {
    /// The one that owns the world; others pass requests on to it.
    #[default]
    There,
    /// The one that is asked: it is about that node, or needs none. A standby knows the key of the configuration only.
    Here,
    /// The one that is asked, if it knows the key; else the one that owns the world.
    Near,
}

/// What a domain says of all of its routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// Nothing: `GET` needs the scope `read`, other methods `write`.
    #[default]
    Usual,
    /// Routes that change something need the scope `admin`.
    AdminChanges,
    /// All routes need it.
    Admin,
}

/// One documented answer of a route. The common errors (400, 401, 403, 404, 413, 415, 429, 500, 503) need no line.
#[derive(Clone, Copy)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// One phrase for people.
    pub text: &'static str,
    /// `content-type` of the body; empty when there is none.
    pub content_type: &'static str,
    /// The shape of the body, where it has one.
    pub schema: Option<SchemaOf>,
}

impl Reply {
    /// A JSON body of the shape of `T`.
    #[must_use]
    pub const fn json<T: JsonSchema>(status: u16, text: &'static str) -> Self {
        Self { status, text, content_type: "application/json", schema: Some(schema_of::<T>) }
    }

    /// A stream of server-sent events of the shape of `T`, which has a `name` and `data`.
    #[must_use]
    pub const fn events<T: JsonSchema>(text: &'static str) -> Self {
        Self { status: 200, text, content_type: "text/event-stream", schema: Some(schema_of::<T>) }
    }

    /// A body of another type, such as `text/event-stream`; or JSON without a documented shape.
    #[must_use]
    pub const fn plain(status: u16, text: &'static str, content_type: &'static str) -> Self {
        Self { status, text, content_type, schema: None }
    }

    /// No body.
    #[must_use]
    pub const fn empty(status: u16, text: &'static str) -> Self {
        Self { status, text, content_type: "", schema: None }
    }

    /// An error that this route has beside the common ones, such as a 409.
    #[must_use]
    pub const fn error(status: u16, text: &'static str) -> Self {
        Self::plain(status, text, "application/json")
    }
}

/// One route. A family of routes is a file with `pub(crate) const ROUTES: &[Route]` and one line in
/// [`routes`](crate::domains).
#[derive(Clone, Copy)]
pub struct Route {
    /// The method.
    pub verb: Verb,
    /// The pattern, such as `/api/agents/{id}`; also the label of its metrics.
    pub path: &'static str,
    /// One phrase for the OpenAPI document.
    pub summary: &'static str,
    /// Who may call it.
    pub auth: Auth,
    /// The scope that it needs, where it is not the usual one.
    pub scope: Option<Scope>,
    /// It makes agents run, now or later, so that it needs the scope `chat` as well.
    pub runs_agents: bool,
    /// Whose things it is about, where it is not the usual.
    pub reach: Option<Reach>,
    /// What its domain says of it.
    pub guard: Guard,
    /// Only owners may call it, not admins either.
    pub owners_only: bool,
    /// What a call costs the client's rate budget, in units (decisions, Process).
    pub cost: u32,
    /// Bytes of the largest body; larger ones get 413.
    pub body_max: usize,
    /// The content type of a body that the route reads piece by piece ([`Call::stream`]); such a route bounds it itself.
    /// `None` for bodies that are read whole before the route runs.
    pub streamed: Option<&'static str>,
    /// The shape of the JSON body, where the route takes one.
    pub request: Option<SchemaOf>,
    /// The spec closes the set of body keys: an unknown one is a 422 instead of a warning.
    pub closed: bool,
    /// The shape of the query, where the route takes one.
    pub query: Option<SchemaOf>,
    /// It answers while the world is loading; others wait for the world first.
    pub while_loading: bool,
    /// Which node of a cluster answers.
    pub spot: Spot,
    /// It is about giving the world away or ending it, which does not wait for its answer.
    pub outlasts_world: bool,
    /// A page of another site may lead a browser here, also while the API is open: the route asks for proof of its own.
    pub linked: bool,
    /// It is refused while the disk has no room for changes: it writes something, and frees nothing.
    pub needs_room: bool,
    /// Bytes of memory that an answer, or one piece of a streamed one, takes at most while it is made. A call waits for them
    /// before the route runs; see `answers`. 0 for routes whose answers are small.
    pub answer_max: usize,
    /// The documented answers.
    pub replies: &'static [Reply],
    /// What runs a call.
    pub run: Run,
}

impl Route {
    const fn new(verb: Verb, path: &'static str, summary: &'static str, cost: u32, run: Run) -> Self {
        Self {
            verb,
            path,
            summary,
            auth: Auth::Bearer,
            scope: None,
            runs_agents: false,
            reach: None,
            guard: Guard::Usual,
            owners_only: false,
            cost,
            body_max: limit::BODY_BYTES_MAX,
            streamed: None,
            request: None,
            closed: false,
            query: None,
            while_loading: false,
            spot: Spot::There,
            outlasts_world: false,
            linked: false,
            needs_room: !matches!(verb, Verb::Get | Verb::Delete),
            answer_max: 0,
            replies: &[],
            run,
        }
    }

    /// A `GET` route; cost 1.
    #[must_use]
    pub const fn get(path: &'static str, summary: &'static str, run: Run) -> Self {
        Self::new(Verb::Get, path, summary, 1, run)
    }

    /// A `POST` route; cost 2.
    #[must_use]
    pub const fn post(path: &'static str, summary: &'static str, run: Run) -> Self {
        Self::new(Verb::Post, path, summary, 2, run)
    }

    /// A `PUT` route; cost 2.
    #[must_use]
    pub const fn put(path: &'static str, summary: &'static str, run: Run) -> Self {
        Self::new(Verb::Put, path, summary, 2, run)
    }

    /// A `PATCH` route; cost 2.
    #[must_use]
    pub const fn patch(path: &'static str, summary: &'static str, run: Run) -> Self {
        Self::new(Verb::Patch, path, summary, 2, run)
    }

    /// A `DELETE` route; cost 2.
    #[must_use]
    pub const fn delete(path: &'static str, summary: &'static str, run: Run) -> Self {
        Self::new(Verb::Delete, path, summary, 2, run)
    }

    /// Needs this scope.
    #[must_use]
    pub const fn scoped(self, scope: Scope) -> Self {
        Self { scope: Some(scope), ..self }
    }

    /// Makes agents run, now or later, so that it needs the scope `chat` beside its own.
    #[must_use]
    pub const fn runs_agents(self) -> Self {
        Self { runs_agents: true, ..self }
    }

    /// Is about these things.
    #[must_use]
    pub const fn reaching(self, reach: Reach) -> Self {
        Self { reach: Some(reach), ..self }
    }

    /// Is for owners alone: with what it shows or does, one could become an owner.
    #[must_use]
    pub const fn owners_only(self) -> Self {
        Self { owners_only: true, ..self }
    }

    /// The scope that it needs.
    #[must_use]
    pub fn scope(&self) -> Scope {
        let is_read = self.verb == Verb::Get;
        self.scope.unwrap_or(match self.guard {
            Guard::Admin => Scope::Admin,
            Guard::AdminChanges if !is_read => Scope::Admin,
            _ if is_read => Scope::Read,
            _ => Scope::Write,
        })
    }

    /// All scopes that it needs.
    pub fn scopes(&self) -> impl Iterator<Item = Scope> + use<> {
        let scope = self.scope();
        let also = (self.runs_agents && scope != Scope::Chat).then_some(Scope::Chat);
        std::iter::once(scope).chain(also)
    }

    /// Whose things it is about. Routes below one agent are about that agent unless they say otherwise.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach.unwrap_or(if self.path.starts_with("/api/agents/{") { Reach::Agent } else { Reach::All })
    }

    /// Open to anyone, key or not.
    #[must_use]
    pub const fn public(self) -> Self {
        Self { auth: Auth::Public, ..self }
    }

    /// For pages of other sites.
    #[must_use]
    pub const fn page(self) -> Self {
        Self { auth: Auth::Page, ..self }
    }

    /// Open to anyone, and to those with the key for more.
    #[must_use]
    pub const fn optional_key(self) -> Self {
        Self { auth: Auth::Optional, ..self }
    }

    /// Answers at once, also while the world is loading.
    #[must_use]
    pub const fn while_loading(self) -> Self {
        Self { while_loading: true, ..self }
    }

    /// The node that is asked answers, whatever owns the world. It does not wait for a world.
    #[must_use]
    pub const fn here(self) -> Self {
        Self { spot: Spot::Here, ..self.while_loading() }
    }

    /// The node that is asked answers, if it knows the key. It does not wait for a world.
    #[must_use]
    pub const fn near(self) -> Self {
        Self { spot: Spot::Near, ..self.while_loading() }
    }

    /// Pages of other sites may lead browsers here.
    #[must_use]
    pub const fn linked(self) -> Self {
        Self { linked: true, ..self }
    }

    /// Answers while the disk has no room for changes too, whatever its verb: it writes nothing, or looks for room itself.
    #[must_use]
    pub const fn without_room(self) -> Self {
        Self { needs_room: false, ..self }
    }

    /// Is refused while the disk has no room for changes, whatever its verb: it writes.
    #[must_use]
    pub const fn with_room(self) -> Self {
        Self { needs_room: true, ..self }
    }

    /// A WebSocket, with the key and origin rules of one.
    #[must_use]
    pub const fn socket(self) -> Self {
        Self { auth: Auth::Socket, ..self }
    }

    /// Costs `units` instead of the verb's default.
    #[must_use]
    pub const fn cost(self, units: u32) -> Self {
        Self { cost: units, ..self }
    }

    /// Takes bodies up to `bytes`.
    #[must_use]
    pub const fn body_max(self, bytes: usize) -> Self {
        Self { body_max: bytes, ..self }
    }

    /// Reads what may be large: an answer, or a piece of one, takes up to `bytes` while it is made.
    #[must_use]
    pub const fn answer_max(self, bytes: usize) -> Self {
        Self { answer_max: bytes, ..self }
    }

    /// Reads what may be large, such as a list of texts in pages.
    #[must_use]
    pub const fn large(self) -> Self {
        self.answer_max(LARGE_BYTES)
    }

    /// Takes a body of `content_type` (`*/*` for any) that the route reads piece by piece.
    #[must_use]
    pub const fn streamed(self, content_type: &'static str) -> Self {
        Self { streamed: Some(content_type), ..self }
    }

    /// Takes a JSON body of the shape of `T`.
    #[must_use]
    pub const fn body<T: JsonSchema>(self) -> Self {
        Self { request: Some(schema_of::<T>), ..self }
    }

    /// Answers an unknown body key with 422 (for routes whose key set the spec closes).
    #[must_use]
    pub const fn closed(self) -> Self {
        Self { closed: true, ..self }
    }

    /// Takes a query of the shape of `T`.
    #[must_use]
    pub const fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(schema_of::<T>), ..self }
    }

    /// Answers with these.
    #[must_use]
    pub const fn replies(self, replies: &'static [Reply]) -> Self {
        Self { replies, ..self }
    }

    /// The names of the path's parameters, in order.
    pub fn param_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('/').filter_map(|segment| {
            let name = segment.strip_prefix('{')?.strip_suffix('}')?;
            Some(name.strip_prefix('*').unwrap_or(name))
        })
    }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
