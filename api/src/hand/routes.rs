//! Hands: listed, installed, activated and uninstalled (spec 2, Hands).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::hand::HandValue;
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::hand::definition::{HandDefinition, preferred};
use agentsvc_systems::hand::values::{self, Config};
use agentsvc_systems::hand::{ActivateHand, CountHands, limits, prepare};
use hyper::header::ACCEPT_LANGUAGE;
use serde_json::{Value, json};

use super::agents::{self, HandAgent};
use super::audit_kinds;
use super::error_codes::{HAND_ACTIVE, HAND_BUNDLED, HAND_NOT_FOUND, INSTALL_DEPS_DISABLED};
use super::hands::{DepResult, HandError, HandOrigin, HandSource, HandSummary, Hands, StoredHand};
use super::shape::{
    ActivateBody, DepItem, DepsItem, HandDetail, HandItem, HandList, InstallBody, InstalledHand, InstanceItem,
    MetricItem, RegistryHand, RegistryHands, ReloadedItem, RoutingItem, SettingItem, Uninstalled,
};
use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::mcp::servers::service::ManagedServers;

/// What reading all hands costs the client's rate budget.
const LIST_COST: u32 = 5;
/// What reading, installing or activating one costs.
const COST: u32 = 10;
/// Bytes of the body of an install.
const INSTALL_BYTES_MAX: usize = 2 * (limits::HAND_TOML_BYTES_MAX + limits::HAND_SKILL_BYTES_MAX);

const NONE: Reply = Reply::error(404, "no such hand");

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/hands", "List hands", |call| Box::pin(list(call))).cost(LIST_COST).replies(&[Reply::json::<
        HandList,
    >(
        200,
        "the hands, sorted by id",
    )]),
    Route::post("/api/hands/install", "Install a hand", |call| Box::pin(install(call)))
        .cost(COST)
        .body_max(INSTALL_BYTES_MAX)
        .body::<InstallBody>()
        .replies(&[
            Reply::json::<InstalledHand>(201, "the installed hand, and what the scan warns of"),
            Reply::error(403, "`security_blocked`: the scan refuses the hand; `file`, `line` and `rule` say why"),
            Reply::error(404, "the source has no hand"),
            Reply::error(409, "a hand of this id is installed"),
            Reply::error(429, "the limit of hands is reached, or too many requests wait for the registry"),
            Reply::error(502, "the registry failed"),
            Reply::error(504, "the registry did not answer in time"),
        ]),
    Route::get("/api/hands/registry", "List the hands of the registry", |call| Box::pin(registry(call)))
        .cost(COST)
        .replies(&[
            Reply::json::<RegistryHands>(200, "the hands that can be installed by name, sorted by id"),
            Reply::error(429, "too many requests wait for the registry"),
            Reply::error(502, "the registry failed"),
            Reply::error(504, "the registry did not answer in time"),
        ]),
    Route::post("/api/hands/reload", "Reload hands from disk", |call| Box::pin(reload(call)))
        .cost(COST)
        .replies(&[Reply::json::<ReloadedItem>(200, "what changed")]),
    Route::get("/api/hands/{hand_id}", "Get a hand", |call| Box::pin(show(call)))
        .replies(&[Reply::json::<HandDetail>(200, "the hand"), NONE]),
    Route::delete("/api/hands/{hand_id}", "Uninstall a hand", |call| Box::pin(uninstall(call))).replies(&[
        Reply::json::<Uninstalled>(200, "uninstalled"),
        NONE,
        Reply::error(403, "`hand_bundled`: the hand belongs to the installation of the daemon"),
        Reply::error(409, "the hand has instances"),
    ]),
    Route::post("/api/hands/{hand_id}/activate", "Activate a hand: create an instance", |call| {
        Box::pin(activate(call))
    })
    .cost(COST)
    .body::<ActivateBody>()
    .replies(&[
        Reply::json::<InstanceItem>(201, "the running instance"),
        NONE,
        Reply::error(409, "another agent has a name that an agent of the hand would get"),
        Reply::error(429, "the limit of instances or agents is reached"),
    ]),
    Route::post("/api/hands/{hand_id}/check-deps", "Check the requirements of a hand", |call| {
        Box::pin(check_deps(call))
    })
    .cost(LIST_COST)
    .replies(&[Reply::json::<DepsItem>(200, "what is there; nothing was installed"), NONE]),
    Route::post("/api/hands/{hand_id}/install-deps", "Install missing requirements of a hand", |call| {
        Box::pin(install_deps(call))
    })
    .cost(COST)
    .replies(&[
        Reply::json::<DepsItem>(200, "what was installed, and what was not"),
        NONE,
        Reply::error(403, "`[hands] install_deps` is off"),
    ]),
];

/// Runs work that blocks.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    spawn_blocking(work).await.map_err(|_| Error::internal("reading the hands was interrupted"))
}

pub(super) fn hands(call: &Call) -> Result<Arc<dyn Hands>, Error> {
    call.api.service::<dyn Hands>()
}

/// The hand of the path.
pub(super) async fn found(call: &Call) -> Result<StoredHand, Error> {
    let id = call.param("hand_id")?.into_owned();
    hand_called(call, id).await
}

/// The hand of this id.
pub(super) async fn hand_called(call: &Call, id: String) -> Result<StoredHand, Error> {
    let hands = hands(call)?;
    let wanted = id.clone();
    let found = blocking(move || hands.find(&wanted)).await??;
    found.ok_or_else(|| Error::of(HAND_NOT_FOUND, format!("hand not found: {id}")).with("field", "hand_id"))
}

/// The names of MCP servers.
fn servers(call: &Call) -> Vec<String> {
    let servers = call.api.services.get::<dyn ManagedServers>();
    servers.map_or_else(Vec::new, |servers| servers.list().into_iter().map(|server| server.name.to_string()).collect())
}

/// The languages that the client wants.
fn languages(call: &Call) -> String {
    call.headers().get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// The hand in the language that the client wants.
fn translated(hand: &HandDefinition, languages: &str) -> HandDefinition {
    let mut hand = hand.clone();
    let known = preferred(languages, hand.i18n.keys().map(String::as_str)).map(str::to_owned);
    if let Some(language) = known {
        hand.translate(&language);
    }
    hand
}

async fn list(call: Call) -> Result<Response, Error> {
    let (hands, languages, servers) = (hands(&call)?, languages(&call), servers(&call));
    let counts = call.ask(CountHands).await?;
    let rows = blocking(move || {
        let row = |hand: &Arc<HandSummary>| {
            let count = counts.get(&*hand.definition.id).copied().unwrap_or(0);
            let hand = HandSummary { definition: translated(&hand.definition, &languages), ..(**hand).clone() };
            HandItem::of(&hand, &*hands, count, &servers)
        };
        hands.list().iter().map(row).collect::<Vec<_>>()
    });
    let rows = rows.await?;
    reply::ok(&HandList { total: rows.len(), hands: rows })
}

/// What a list shows of a whole hand.
fn summary(hand: &StoredHand) -> HandSummary {
    HandSummary {
        settings: hand.definition.settings.len(),
        metrics: hand.definition.dashboard.metrics.len(),
        agents: hand.definition.roles.len(),
        definition: hand.definition.clone(),
        origin: hand.origin,
    }
}

async fn show(call: Call) -> Result<Response, Error> {
    let (hands, languages, servers) = (hands(&call)?, languages(&call), servers(&call));
    let stored = found(&call).await?;
    let count = call.ask(CountHands).await?.get(&*stored.definition.id).copied().unwrap_or(0);
    let detail = blocking(move || {
        let hand = StoredHand { definition: translated(&stored.definition, &languages), ..stored };
        let item = HandItem::of(&summary(&hand), &*hands, count, &servers);
        detail(hand, item, &*hands)
    });
    reply::ok(&detail.await?)
}

fn detail(hand: StoredHand, item: HandItem, hands: &dyn Hands) -> HandDetail {
    let StoredHand { definition: hand, skills, .. } = hand;
    let all = HandAgent::all(&hand);
    let coordinator = all[hand.coordinator()].clone();
    let metrics = hand.dashboard.metrics.iter().map(|metric| MetricItem {
        label: metric.label.clone(),
        memory_key: metric.memory_key.clone(),
        format: metric.format.clone(),
    });
    HandDetail {
        item,
        server_platform: std::env::consts::OS,
        coordinator_role: coordinator.role.clone(),
        agent: coordinator,
        agents: all,
        dashboard: metrics.collect(),
        environment: agents::environment(&hand),
        settings: hand.settings.iter().map(|setting| SettingItem::of(setting, hands)).collect(),
        skills: hand.skills,
        mcp_servers: hand.mcp_servers,
        allowed_plugins: hand.allowed_plugins,
        routing: RoutingItem { aliases: hand.routing.aliases, weak_aliases: hand.routing.weak_aliases },
        has_skill: !skills.is_empty(),
    }
}

async fn install(call: Call) -> Result<Response, Error> {
    let InstallBody { toml_content, skill_content, source } = call.json()?;
    let source = match (toml_content, source) {
        (Some(toml), None) => HandSource::Texts { toml, skill: skill_content },
        (None, Some(place)) if skill_content.is_none() => HandSource::Place(place),
        (None, None) => {
            return Err(Error::bad_field("toml_content", "toml_content: required, unless source is given"));
        }
        _ => return Err(Error::bad_field("source", "source: give either source, or toml_content and skill_content")),
    };
    let (hands, servers) = (hands(&call)?, servers(&call));
    let mut prepared = Arc::clone(&hands).prepare(source).await?;
    let warnings = std::mem::take(&mut prepared.warnings);
    let definition = &prepared.hand.definition;
    let details = json!({ "hand": definition.id, "version": definition.version });
    // Before the change: a kill in between leaves an entry and no hand, never a hand without an entry.
    call.ask(NoteAction { kind: audit_kinds::HAND_INSTALLED, agent: None, details }).await?;
    let item = blocking(move || {
        let installed = hands.install(prepared)?;
        Ok::<_, HandError>(HandItem::of(&summary(&installed), &*hands, 0, &servers))
    });
    reply::created(&InstalledHand { item: item.await??, warnings })
}

async fn registry(call: Call) -> Result<Response, Error> {
    let (hands, languages) = (hands(&call)?, languages(&call));
    let found = Arc::clone(&hands).registry().await?;
    let installed = blocking(move || hands.list()).await?;
    let row = |hand: StoredHand| {
        let id = &hand.definition.id;
        let is_installed = installed.binary_search_by(|it| it.definition.id.cmp(id)).is_ok();
        RegistryHand::of(StoredHand { definition: translated(&hand.definition, &languages), ..hand }, is_installed)
    };
    let rows: Vec<RegistryHand> = found.into_iter().map(row).collect();
    reply::ok(&RegistryHands { total: rows.len(), hands: rows })
}

async fn reload(call: Call) -> Result<Response, Error> {
    let hands = hands(&call)?;
    let it = blocking(move || hands.reload()).await??;
    let super::hands::Reloaded { added, updated, removed, total, failed } = it;
    reply::ok(&ReloadedItem { added, updated, removed, total, failed })
}

async fn uninstall(call: Call) -> Result<Response, Error> {
    let id = call.param("hand_id")?.into_owned();
    let count = call.ask(CountHands).await?.get(&*id).copied().unwrap_or(0);
    if count > 0 {
        let text = format!("hand {id:?} has {count} instances; delete them first");
        return Err(Error::of(HAND_ACTIVE, text));
    }
    let (hands, wanted) = (hands(&call)?, id.clone());
    let not_found = || Error::of(HAND_NOT_FOUND, format!("hand not found: {id}")).with("field", "hand_id");
    let own = Arc::clone(&hands);
    let all = blocking(move || own.list()).await?;
    let known = all.iter().find(|hand| hand.definition.id == id).ok_or_else(not_found)?;
    if known.origin == HandOrigin::Bundled {
        let text = format!("hand {id:?} belongs to the installation of the daemon and cannot be uninstalled");
        return Err(Error::of(HAND_BUNDLED, text));
    }
    call.ask(NoteAction { kind: audit_kinds::HAND_UNINSTALLED, agent: None, details: json!({ "hand": id }) }).await?;
    if !blocking(move || hands.remove(&wanted)).await?? {
        return Err(not_found());
    }
    reply::ok(&Uninstalled { status: "uninstalled", hand_id: id })
}

/// The values of a body as they are stored; those of secrets are sealed. `None` takes a value away.
pub(super) fn read_values(
    hand: &HandDefinition,
    hands: &dyn Hands,
    given: BTreeMap<String, Value>,
) -> Result<BTreeMap<Box<str>, Option<HandValue>>, Error> {
    if given.len() > limits::HAND_ITEMS_MAX {
        return Err(Error::bad_field("config", format!("config: more than {} values", limits::HAND_ITEMS_MAX)));
    }
    let mut values = BTreeMap::new();
    for (key, value) in given {
        let text: Cow<'_, str> = match &value {
            Value::Null => {
                values.insert(key.into(), None);
                continue;
            }
            Value::String(text) => text.into(),
            Value::Bool(_) | Value::Number(_) => value.to_string().into(),
            Value::Array(_) | Value::Object(_) => {
                let field = format!("config.{key}");
                return Err(Error::bad_field(&field, format!("{field}: must be a string, a number or a boolean")));
            }
        };
        values::check(hand, &key, &text)?;
        let is_secret = hand.setting(&key).is_some_and(|setting| setting.is_secret()) && !text.is_empty();
        let text = if is_secret {
            let sealed = hands.seal(&text);
            sealed.map_err(|why| Error::of(crate::http::error_codes::VAULT_UNAVAILABLE, why))?
        } else {
            text.into_owned()
        };
        values.insert(key.into(), Some(HandValue { text: text.into(), is_sealed: is_secret }));
    }
    Ok(values)
}

async fn activate(call: Call) -> Result<Response, Error> {
    let body: ActivateBody = call.json_or_default()?;
    let (hands, stored) = (hands(&call)?, found(&call).await?);
    let command = blocking(move || activation(&stored, &*hands, body.config)).await??;
    reply::created(&InstanceItem::from(call.ask(command).await?))
}

/// The command that activates a hand with these values.
fn activation(hand: &StoredHand, hands: &dyn Hands, given: BTreeMap<String, Value>) -> Result<ActivateHand, Error> {
    let definition = &hand.definition;
    let values = read_values(definition, hands, given)?;
    let config: Config = values.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let settings_text = values::section(definition, &config);
    let around = hands.around(hand, settings_text.clone())?;
    Ok(ActivateHand {
        hand: definition.id.as_str().into(),
        version: definition.version.as_str().into(),
        members: prepare::members(definition, &around)?,
        coordinator: u32::try_from(definition.coordinator()).unwrap_or_default(),
        environment: values::environment(definition, &config),
        settings_text: settings_text.into(),
        config,
    })
}

async fn check_deps(call: Call) -> Result<Response, Error> {
    let (hands, servers, hand) = (hands(&call)?, servers(&call), found(&call).await?);
    reply::ok(&blocking(move || checked(&hand.definition, &*hands, &servers, Vec::new())).await?)
}

async fn install_deps(call: Call) -> Result<Response, Error> {
    let (hands, servers, hand) = (hands(&call)?, servers(&call), found(&call).await?);
    if !hands.installs() {
        let text = "requirements cannot be installed over the API; set `[hands] install_deps` or install them by hand";
        return Err(Error::of(INSTALL_DEPS_DISABLED, text));
    }
    let (own, names, definition) = (Arc::clone(&hands), servers.clone(), hand.definition.clone());
    let missing = blocking(move || {
        let met = own.met(&definition.requires, &names);
        let unmet = std::iter::zip(definition.requires, met).filter(|(_, met)| !met);
        unmet.map(|(requirement, _)| requirement).collect::<Vec<_>>()
    });
    let missing = missing.await?;
    let details = json!({ "hand": hand.definition.id, "requirements": missing.len() });
    // Before it is done: what then fails leaves an entry, what is done never leaves none.
    call.ask(NoteAction { kind: audit_kinds::HAND_DEPS_INSTALLED, agent: None, details }).await?;
    let results = Arc::clone(&hands).install_deps(missing).await;
    reply::ok(&blocking(move || checked(&hand.definition, &*hands, &servers, results)).await?)
}

/// How the requirements of a hand are; `results` are those that something was done about.
fn checked(hand: &HandDefinition, hands: &dyn Hands, servers: &[String], results: Vec<DepResult>) -> DepsItem {
    let met = hands.met(&hand.requires, servers);
    let mut done: BTreeMap<String, DepResult> = results.into_iter().map(|it| (it.key.clone(), it)).collect();
    let mut requirements_met = true;
    let mut items = Vec::new();
    for (requirement, is_met) in std::iter::zip(&hand.requires, met) {
        requirements_met &= is_met || requirement.optional;
        let command = hands.install_command(requirement);
        let result = done.remove(&requirement.key).unwrap_or_else(|| DepResult {
            key: requirement.key.clone(),
            status: match (is_met, &command) {
                (true, _) => "already_installed",
                (false, Some(_)) => "skipped",
                (false, None) => "no_command",
            },
            message: if is_met { "found".to_owned() } else { format!("not found: {}", requirement.wanted()) },
            command,
        });
        items.push(DepItem::from(result));
    }
    DepsItem { requirements_met, results: items }
}
