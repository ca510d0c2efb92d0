//! List the security systems and their status (spec 3, GET /api/security). What the front does itself it looks
//! at itself; what lies behind it the daemon says.

use serde_json::Value;

use crate::Api;
use crate::agent::signatures::ManifestSignatures;
use crate::audit::trail::AuditLog;
use crate::http::response_headers::ResponseHeaders;
use crate::http::route::Auth;
use crate::world::system::health_keys;

/// The names of the systems, in the order of the specification.
pub const NAMES: [&str; 16] = [
    "merkle_audit_trail",
    "taint_tracking",
    "wasm_dual_metering",
    "security_headers",
    "health_redaction",
    "subprocess_sandbox",
    "manifest_signing",
    "gcra_rate_limiter",
    "secret_zeroization",
    "path_traversal_prevention",
    "ssrf_protection",
    "capability_inheritance_validation",
    "ofp_hmac_auth",
    "prompt_injection_scanning",
    "loop_guard",
    "session_repair",
];

/// Headers without which pages would be unprotected, with a part of their value.
const HEADERS: [(&str, &str); 4] = [
    ("content-security-policy", "default-src"),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    ("strict-transport-security", "max-age="),
];
/// What anyone may know of the daemon's health (spec 2, GET /api/health).
const PUBLIC_HEALTH: [&str; 5] = ["status", "read_only", "uptime_seconds", "panic_count", "restart_count"];

agentsvc_components::enum_words! {
    /// Is a system in force?
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Status [as_str] {
        /// It is, in this build and configuration.
        Active = "active",
        /// It is in this build, but off, or this machine lacks what it needs.
        Inactive = "inactive",
        /// It is not in this build.
        NotAvailable = "not_available",
    }
}

/// One system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemStatus {
    /// Its name, one of [`NAMES`].
    pub name: &'static str,
    /// Is it in force?
    pub status: Status,
    /// One sentence that says what is in force, or why it is not.
    pub detail: String,
}

impl SystemStatus {
    /// A system that is in force when `is_active`.
    pub fn when(name: &'static str, is_active: bool, detail: impl Into<String>) -> Self {
        let status = if is_active { Status::Active } else { Status::Inactive };
        Self { name, status, detail: detail.into() }
    }
}

/// Knows the systems behind the front.
pub trait SecuritySystems: Send + Sync + 'static {
    /// Each as it is now; one that is left out is not in this build.
    fn systems(&self) -> Vec<SystemStatus>;
}

/// Every system as it is now, in the order of [`NAMES`].
pub(crate) fn all(api: &Api) -> Vec<SystemStatus> {
    let mut known = api.services.get::<dyn SecuritySystems>().map(|security| security.systems()).unwrap_or_default();
    known.extend([audit_trail(api), headers(), health(api), rate(api), signing(api)]);
    let missing = |name| SystemStatus { name, status: Status::NotAvailable, detail: "not in this build".to_owned() };
    let of = |name| known.iter().find(|system| system.name == name).cloned().unwrap_or_else(|| missing(name));
    NAMES.into_iter().map(of).collect()
}

fn audit_trail(api: &Api) -> SystemStatus {
    let whole = "every action is chained by SHA-256; checkpoints are signed with Ed25519";
    let fault = api.services.get::<dyn AuditLog>().map_or(Some("the store is being opened"), |trail| trail.fault());
    SystemStatus::when("merkle_audit_trail", fault.is_none(), fault.unwrap_or(whole))
}

/// Puts the headers on an answer and looks whether they are there.
fn headers() -> SystemStatus {
    let mut sealed = hyper::HeaderMap::new();
    ResponseHeaders::new().apply(&mut sealed);
    let has = |(name, part): &(&str, &str)| {
        sealed.get(*name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(part))
    };
    let missing: Vec<&str> = HEADERS.iter().filter(|header| !has(header)).map(|(name, _)| *name).collect();
    let detail = if missing.is_empty() {
        "on every response, including errors".to_owned()
    } else {
        format!("missing: {}", missing.join(", "))
    };
    SystemStatus::when("security_headers", missing.is_empty(), detail)
}

/// Looks at what anyone may read without the key.
fn health(api: &Api) -> SystemStatus {
    let told: Vec<String> = match health_keys() {
        Value::Object(keys) => keys.into_iter().map(|(key, _)| key).collect(),
        _ => Vec::new(),
    };
    let says_more = told.iter().any(|key| !PUBLIC_HEALTH.contains(&key.as_str()));
    let detail_is_open =
        api.table.routes().iter().any(|route| route.path == "/api/health/detail" && route.auth == Auth::Public);
    let detail = "the public response has no paths, names or versions; details need the API key";
    SystemStatus::when("health_redaction", !told.is_empty() && !says_more && !detail_is_open, detail)
}

fn rate(api: &Api) -> SystemStatus {
    let is_limited = api.access.policy().is_limited();
    let detail = if is_limited {
        format!("{} cost units per second and client", api.settings_now().rate_limit_per_second)
    } else {
        "rate_limit_per_second is 0".to_owned()
    };
    SystemStatus::when("gcra_rate_limiter", is_limited, detail)
}

fn signing(api: &Api) -> SystemStatus {
    let name = "manifest_signing";
    match api.services.get::<dyn ManifestSignatures>().map(|judge| (judge.keys(), judge.is_required())) {
        None | Some((0, _)) => SystemStatus::when(
            name,
            true,
            "no keys are trusted: [security] manifest_keys is empty, and signed manifests are refused",
        ),
        Some((keys, true)) => SystemStatus::when(name, true, format!("required; {keys} trusted keys")),
        Some((keys, false)) => SystemStatus::when(
            name,
            true,
            format!("optional; signatures are checked when present; {keys} trusted keys"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiSettings;
    use crate::testing;

    fn status(api: &Api, name: &str) -> Status {
        all(api).into_iter().find(|system| system.name == name).map(|system| system.status).unwrap()
    }

    struct Behind;

    impl SecuritySystems for Behind {
        fn systems(&self) -> Vec<SystemStatus> {
            vec![SystemStatus::when("loop_guard", true, "x"), SystemStatus::when("taint_tracking", false, "y")]
        }
    }

    #[tokio::test]
    async fn each_is_what_it_is() {
        let api = testing::front(ApiSettings::default());
        api.services.provide::<dyn SecuritySystems>(std::sync::Arc::new(Behind));
        assert_eq!(all(&api).iter().map(|system| system.name).collect::<Vec<_>>(), NAMES);
        for (name, expected) in [
            ("security_headers", Status::Active),
            ("health_redaction", Status::Active),
            ("gcra_rate_limiter", Status::Active),
            ("merkle_audit_trail", Status::Inactive),
            ("manifest_signing", Status::Active),
            ("loop_guard", Status::Active),
            ("taint_tracking", Status::Inactive),
            ("wasm_dual_metering", Status::NotAvailable),
        ] {
            assert_eq!(status(&api, name), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn without_a_rate_there_is_no_limiter() {
        let api = testing::front(ApiSettings { rate_limit_per_second: 0, ..ApiSettings::default() });
        assert_eq!(status(&api, "gcra_rate_limiter"), Status::Inactive);
        // What is in force counts, not what was in force at the start.
        api.access.set(&ApiSettings { rate_limit_per_second: 5, ..ApiSettings::default() });
        assert_eq!(status(&api, "gcra_rate_limiter"), Status::Active);
    }
}
