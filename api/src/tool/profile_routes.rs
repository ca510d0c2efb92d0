//! Profiles of tools (spec 2, System).

use agentsvc_systems::manifest::profile::{PROFILES, Profile};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/profiles", "List tool profiles", |call| Box::pin(list(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<ProfileList>(200, "the profiles, from the fewest rights to the most")]),
    Route::get("/api/profiles/{name}", "Get a profile", |call| Box::pin(show(call)))
        .reaching(Reach::Shared)
        .replies(&[Reply::json::<ProfileDetail>(200, "the profile with its grants")]),
];

/// The profiles.
#[derive(Serialize, JsonSchema)]
struct ProfileList {
    profiles: Vec<ProfileRow>,
    total: usize,
}

/// One row.
#[derive(Serialize, JsonSchema)]
struct ProfileRow {
    name: &'static str,
    /// Range of rights: `basic`, `standard`, `extended` or `full`.
    tier: &'static str,
    description: &'static str,
}

impl ProfileRow {
    const fn of(profile: &Profile) -> Self {
        Self { name: profile.name, tier: profile.tier, description: profile.description }
    }
}

async fn list(_call: Call) -> Result<Response, Error> {
    let profiles: Vec<ProfileRow> = PROFILES.iter().map(ProfileRow::of).collect();
    reply::ok(&ProfileList { total: profiles.len(), profiles })
}

/// One profile.
#[derive(Serialize, JsonSchema)]
struct ProfileDetail {
    #[serde(flatten)]
    row: ProfileRow,
    /// Granted tools: names, or `*`.
    tools: &'static [&'static str],
    /// All of `[capabilities]`, the tools included.
    capabilities: Map<String, Value>,
    /// The same as manifest TOML.
    manifest_toml: String,
}

async fn show(call: Call) -> Result<Response, Error> {
    let name = call.param("name")?;
    let found = PROFILES.iter().find(|profile| profile.name == name);
    let profile = found.ok_or_else(|| {
        let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        let shown: String = name.chars().take(64).collect();
        Error::not_found(format!("profile not found: {shown}; available profiles: {}", known.join(", ")))
    })?;
    let tools = std::iter::once(("tools", Value::from(profile.tools)));
    let lists = profile.lists.iter().map(|(key, words)| (*key, Value::from(*words)));
    let switches = profile.switches.iter().map(|(key, value)| (*key, Value::from(*value)));
    let capabilities = tools.chain(lists).chain(switches).map(|(key, value)| (key.to_owned(), value)).collect();
    let (row, manifest_toml) = (ProfileRow::of(profile), profile.manifest_toml());
    reply::ok(&ProfileDetail { row, tools: profile.tools, capabilities, manifest_toml })
}
