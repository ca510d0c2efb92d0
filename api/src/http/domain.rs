//! What a domain brings to the API.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use agentsvc_components::ErrorCode;
use agentsvc_components::kernel::audit_kind::AuditAction;
use agentsvc_components::kernel::id::UserId;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::api::Api;
use crate::http::error::Error;
use crate::http::metrics::MetricsText;
use crate::http::route::{Guard, Route};
use crate::http::table::Table;

/// Told of a request without the key: the API, the client's address and the pattern of the route. Must not wait.
type OnUnauthorized = fn(&Arc<Api>, IpAddr, &'static str);

/// Refuses what a path names as an agent, unless it is one that belongs to the user: with 404, as if there were none.
pub(crate) type Owns = fn(Arc<Api>, UserId, String) -> BoxFuture<'static, Result<(), Error>>;

/// A queue.
#[derive(Serialize, JsonSchema)]
pub struct Queue {
    name: &'static str,
    /// What is counted.
    unit: &'static str,
    length: usize,
    /// Null if it is not limited by length.
    bound: Option<usize>,
}

impl Queue {
    /// A queue of `length` things of the kind `unit`.
    #[must_use]
    pub const fn new(name: &'static str, unit: &'static str, length: usize, bound: Option<usize>) -> Self {
        Self { name, unit, length, bound }
    }
}

/// The beginning of paths, and what becomes of the errors of all of them.
pub(crate) type ErrorsUnder = (&'static str, fn(Error) -> Error);

/// One domain: its name, the domains it uses, and what it brings.
pub struct HttpDomain {
    /// Its name, that of its folder.
    pub name: &'static str,
    /// The domains whose items it names.
    pub uses: &'static [&'static str],
    /// Its routes, by file.
    pub routes: &'static [&'static [Route]],
    /// What holds for its routes.
    pub guard: Guard,
    /// Says whether an agent belongs to a user.
    pub owns: Option<Owns>,
    /// The codes of its errors, beside those of its namesake in the world.
    pub error_codes: &'static [ErrorCode],
    /// Its kinds of audit log entries, beside those of its namesake in the world.
    pub audit_kinds: &'static [AuditAction],
    /// Writes its share of `/api/metrics`.
    pub gather: Option<fn(&Api, &mut MetricsText)>,
    /// Its queues, as they are now.
    pub queues: Option<fn(&Api) -> Vec<Queue>>,
    /// Wants to know of requests without the key.
    pub on_unauthorized: Option<OnUnauthorized>,
    /// Changes the errors of every path that begins so, also of those that no route has.
    pub(crate) errors: Option<ErrorsUnder>,
}

impl HttpDomain {
    /// A domain that brings nothing yet.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            uses: &[],
            routes: &[],
            guard: Guard::Usual,
            owns: None,
            error_codes: &[],
            audit_kinds: &[],
            gather: None,
            queues: None,
            on_unauthorized: None,
            errors: None,
        }
    }

    /// It names items of these domains.
    #[must_use]
    pub const fn uses(self, uses: &'static [&'static str]) -> Self {
        Self { uses, ..self }
    }

    /// Brings routes.
    #[must_use]
    pub const fn routes(self, routes: &'static [&'static [Route]]) -> Self {
        Self { routes, ..self }
    }

    /// Its routes need the scope `admin`.
    #[must_use]
    pub const fn admin(self) -> Self {
        Self { guard: Guard::Admin, ..self }
    }

    /// Its routes that change something need the scope `admin`.
    #[must_use]
    pub const fn admin_changes(self) -> Self {
        Self { guard: Guard::AdminChanges, ..self }
    }

    /// Says which agents belong to a user.
    #[must_use]
    pub const fn owns(self, owns: Owns) -> Self {
        Self { owns: Some(owns), ..self }
    }

    /// Declares error codes.
    #[must_use]
    pub const fn error_codes(self, error_codes: &'static [ErrorCode]) -> Self {
        Self { error_codes, ..self }
    }

    /// Declares kinds of audit log entries.
    #[must_use]
    pub const fn audit_kinds(self, audit_kinds: &'static [AuditAction]) -> Self {
        Self { audit_kinds, ..self }
    }

    /// Brings metrics.
    #[must_use]
    pub const fn metrics(self, gather: fn(&Api, &mut MetricsText)) -> Self {
        Self { gather: Some(gather), ..self }
    }

    /// Brings queues.
    #[must_use]
    pub const fn queues(self, queues: fn(&Api) -> Vec<Queue>) -> Self {
        Self { queues: Some(queues), ..self }
    }

    /// Wants to know of requests without the key.
    #[must_use]
    pub const fn on_unauthorized(self, told: OnUnauthorized) -> Self {
        Self { on_unauthorized: Some(told), ..self }
    }

    /// Changes the errors of every path that begins with `prefix`.
    #[must_use]
    pub const fn errors(self, prefix: &'static str, change: fn(Error) -> Error) -> Self {
        Self { errors: Some((prefix, change)), ..self }
    }
}

/// Every domain of the daemon, and the table of their routes.
pub struct Domains {
    list: &'static [HttpDomain],
    table: OnceLock<Table>,
}

impl Domains {
    /// These domains.
    #[must_use]
    pub const fn new(list: &'static [HttpDomain]) -> Self {
        Self { list, table: OnceLock::new() }
    }

    /// The domains, in the order of their routes.
    #[must_use]
    pub const fn list(&self) -> &'static [HttpDomain] {
        self.list
    }

    /// The table of their routes, built when it is first asked for.
    ///
    /// # Panics
    /// When two routes take the same requests or a pattern is malformed: the list is a constant of the program, and a
    /// test builds its table.
    pub(crate) fn table(&self) -> &Table {
        let of = |domain: &'static HttpDomain| {
            let routes = domain.routes.iter().copied().flatten();
            routes.map(|route| Route { guard: domain.guard, ..*route })
        };
        let routes = || self.list.iter().flat_map(of);
        self.table.get_or_init(|| Table::new(routes().collect()))
    }
}
