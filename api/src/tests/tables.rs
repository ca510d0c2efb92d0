//! Tables of error codes, limits and audit actions.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::DOMAINS;
use agentsvc_components::ErrorCode;
use agentsvc_components::kernel::audit_kind::AuditAction;
use agentsvc_systems::kernel::metric::Metric;

use super::page::MADE;
use super::shape::one_line;

/// What the errors say that every route may answer with.
pub(crate) const COMMON_TEXTS: &[&str] = &[
    "the rate limit is exceeded",
    "internal error",
    "internal error",
    "not ready or overloaded; try again later",
    "the API key is missing or wrong",
    "the key may not use this route",
    "not found",
    "invalid request; `field` names the parameter or key",
    "the request body is too large",
    "the request body is not JSON",
    "unknown field",
];

/// The error codes of each domain; those of no domain first.
pub(crate) fn codes() -> Vec<(&'static str, Vec<ErrorCode>)> {
    let mut kernel = agentsvc_components::kernel::error_codes::ALL.to_vec();
    kernel.extend(crate::http::error_codes::ALL);
    let mut all = vec![("", kernel)];
    let names = agentsvc_systems::DOMAINS.iter().map(|domain| domain.name);
    let mut names: Vec<_> = names.chain(DOMAINS.list().iter().map(|domain| domain.name)).collect();
    names.sort_unstable();
    names.dedup();
    all.extend(names.into_iter().map(|name| (name, codes_of(name))).filter(|(_, codes)| !codes.is_empty()));
    all
}

/// The error codes of one domain, in the world and in the API.
pub(crate) fn codes_of(name: &str) -> Vec<ErrorCode> {
    let world = agentsvc_systems::DOMAINS.iter().filter(|domain| domain.name == name);
    let api = DOMAINS.list().iter().filter(|domain| domain.name == name);
    world.flat_map(|domain| domain.error_codes).chain(api.flat_map(|domain| domain.error_codes)).copied().collect()
}

/// A table of error codes.
pub(crate) fn code_table(codes: &[ErrorCode]) -> String {
    let mut text = String::from("| code | status | what happened | what to do |\n| --- | --- | --- | --- |\n");
    for code in codes {
        let meaning = code.meaning();
        let statuses: Vec<_> = meaning.statuses.iter().map(u16::to_string).collect();
        let statuses = if statuses.is_empty() { "event or tool result".to_owned() } else { statuses.join(", ") };
        let (what, remedy) = (one_line(meaning.what), one_line(meaning.remedy));
        let _ = writeln!(text, "| `{code}` | {statuses} | {what} | {remedy} |");
    }
    text
}

/// `docs/reference/errors.md`.
pub(crate) fn errors() -> String {
    let mut page = format!(
        "{MADE}\n# Error codes\n\nAn error that a program may want to tell from others of the same status has a `code` \
         beside `error`:\n\n```json\n{{\"error\": \"the task is running\", \"code\": \"task_not_pending\"}}\n```\n\n\
         Codes are stable: a release may add codes but does not rename them.\n"
    );
    for (domain, codes) in codes() {
        let title = if domain.is_empty() { "all routes".to_owned() } else { domain.replace('_', " ") };
        let _ = write!(page, "\n## {}{}\n\n{}", title[..1].to_uppercase(), &title[1..], code_table(&codes));
    }
    page
}

/// The kinds of audit log entries of all domains, by domain.
pub(crate) fn audit_kinds() -> Vec<(&'static str, Vec<&'static AuditAction>)> {
    let world = agentsvc_systems::DOMAINS.iter().map(|domain| (domain.name, domain.audit_kinds));
    let kernel = crate::http::audit_kinds::ALL.iter().collect();
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::from([("daemon", kernel)]);
    for (name, kinds) in world.chain(DOMAINS.list().iter().map(|domain| (domain.name, domain.audit_kinds))) {
        all.entry(name).or_default().extend(kinds);
    }
    all.into_iter().filter(|(_, kinds)| !kinds.is_empty()).collect()
}

/// `docs/reference/audit-actions.md`.
pub(crate) fn audit() -> String {
    let mut page = format!(
        "{MADE}\n# Audit actions\n\nThe values of `event_type` in `GET /api/audit/recent`. The fields of `details` are in \
         [audit.md](../audit.md).\n"
    );
    for (domain, kinds) in audit_kinds() {
        let title = domain.replace('_', " ");
        let _ = write!(page, "\n## {}{}\n\n| action | when |\n| --- | --- |\n", title[..1].to_uppercase(), &title[1..]);
        for AuditAction { kind, about } in kinds {
            let _ = writeln!(page, "| `{}` | {} |", kind.as_str(), one_line(about));
        }
    }
    page
}

/// `docs/reference/metrics.md`.
pub(crate) fn metrics() -> String {
    let mut page = format!(
        "{MADE}\n# Metrics of the world\n\nThe metrics of `GET /api/metrics` that the domains of the world declare. Those of the \
         server, the store, backups and the process are in [observability.md](../observability.md).\n\n\
         | metric | type | meaning |\n| --- | --- | --- |\n"
    );
    let mut all: Vec<_> = agentsvc_systems::DOMAINS.iter().flat_map(|domain| domain.metrics).collect();
    all.sort_by_key(|metric| metric.name);
    for Metric { name, kind, help, .. } in all {
        let _ = writeln!(page, "| `{name}` | {kind} | {help} |");
    }
    page
}

/// `docs/reference/limits.md`.
pub(crate) fn limits() -> String {
    let mut page = format!(
        "{MADE}\n# Limits\n\nEvery queue, map and text has a limit. What the configuration can change is in \
         [configuration.md](../configuration.md).\n"
    );
    let title = |name: &str| format!("{}{}", name[..1].to_uppercase(), &name[1..].replace('_', " "));
    let groups =
        agentsvc_components::kernel::limit::GROUPS.iter().map(|(title, limits)| ((*title).to_owned(), *limits));
    let domains = agentsvc_systems::DOMAINS.iter().filter(|domain| !domain.limits.is_empty());
    for (title, limits) in groups.chain(domains.map(|domain| (title(domain.name), domain.limits))) {
        let head = "| limit | value | what it bounds, and what happens beyond |\n| --- | --- | --- |\n";
        let _ = write!(page, "\n## {title}\n\n{head}");
        for limit in limits {
            let value =
                if limit.about.trim_start().starts_with("Bytes") { bytes(limit.value) } else { grouped(limit.value) };
            let _ = writeln!(page, "| `{}` | {value} | {} |", limit.name, one_line(limit.about));
        }
    }
    page
}

/// `2 MiB`, `512 bytes`.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{} bytes", grouped(bytes)),
    }
}

/// `1,000,000`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
