//! Installs and removals of skills, the registry and the marketplaces (spec 2, Skills and marketplaces).

use std::sync::Arc;

use agentsvc_systems::audit::NoteAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::audit_kinds::{SKILL_INSTALLED, SKILL_UNINSTALLED};
use super::sources::{
    Description, MarketplaceSkill, RegistrySkill, Request, SkillWarning, SourceError, Sources, ToolTranslation,
};
use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::files::FilesError;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What an install costs the client's rate budget: it fetches, unpacks and scans up to 10,000 files.
const INSTALL_COST: u32 = 50;
/// What a question to a source costs: it may go over the network.
pub(super) const ASK_COST: u32 = 10;
/// Bytes of a source or a name.
const SOURCE_BYTES_MAX: usize = 4_096;
/// Bytes of a query.
const QUERY_BYTES_MAX: usize = 500;
/// Pages that can be asked for.
const PAGE_MAX: usize = 1_000;

pub(super) const BLOCKED: Reply =
    Reply::error(403, "`security_blocked`: the scan refuses the skill; `findings` says why");
pub(super) const INSTALLED: Reply = Reply::error(409, "`already_installed`, or another change is under way");
pub(super) const GONE: Reply = Reply::error(410, "the hub has removed the skill");
pub(super) const UNFIT: Reply =
    Reply::error(422, "a checksum does not match, the archive is damaged, or the skill is too large");
pub(super) const FAILED: Reply =
    Reply::error(502, "the source failed, or sent files with other checksums than it lists");
pub(super) const LATE: Reply = Reply::error(504, "the source did not answer in time");
pub(super) const FULL: Reply = Reply::error(507, "no space left for the skill");

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/skills/install", "Install a skill from a path, a URL, a repository or a hub", |call| {
        Box::pin(install(call))
    })
    .cost(INSTALL_COST)
    .body::<InstallBody>()
    .replies(&[
        Reply::json::<Installed>(201, "the skill is installed"),
        BLOCKED,
        INSTALLED,
        GONE,
        UNFIT,
        FAILED,
        LATE,
        FULL,
    ]),
    Route::post("/api/skills/uninstall", "Uninstall a skill", |call| Box::pin(uninstall(call)))
        .without_room()
        .cost(5)
        .body::<UninstallBody>()
        .replies(&[
            Reply::json::<Uninstalled>(200, "the skill and its files are gone"),
            Reply::error(403, "the skill is bundled with the daemon"),
            Reply::error(404, "no skill of this name is installed"),
            Reply::error(409, "another change of the skill is under way"),
        ]),
    Route::get("/api/skills/registry", "List the skills of the registry", |call| Box::pin(registry(call)))
        .cost(ASK_COST)
        .replies(&[Reply::json::<Registry>(200, "the skills, by name"), UNFIT, FAILED, LATE]),
    Route::get("/api/marketplace/search", "Search the registry and skills.sh", |call| Box::pin(marketplace(call)))
        .cost(ASK_COST)
        .query::<SearchQuery>()
        .replies(&[Reply::json::<Marketplace>(200, "20 skills a page"), FAILED, LATE]),
];

#[derive(Deserialize, JsonSchema)]
struct InstallBody {
    /// Absolute path of a folder or an archive, https URL of a zip or tar.gz archive, Git URL, `owner/repo/path`,
    /// `clawhub:slug`, a site with `/.well-known/skills`, or a name in the registry.
    source: Option<String>,
    /// The same as `source`.
    name: Option<String>,
    /// Version, of a skill of a hub. Default: the newest.
    version: Option<String>,
    /// Compare checksums where the source has some. The scan is made in any case. Default: true.
    verify: Option<bool>,
}

/// An installed skill.
#[derive(Serialize, JsonSchema)]
pub(super) struct Installed {
    /// `installed`.
    status: &'static str,
    /// Its name.
    skill: String,
    /// The same as `skill`.
    name: String,
    version: String,
    /// What it was converted from: `skill_md`, `openclaw_node` or `skill_toml`.
    converted_from: &'static str,
    /// Id at the hub; absent of other sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    slug: Option<String>,
    /// It has instructions and no code.
    is_prompt_only: bool,
    /// One SHA-256 for all files, of the lines `path:sha256` sorted by path.
    sha256: String,
    /// Checksums were there, and all matched.
    verified: bool,
    /// What the scan and other checks noticed.
    warnings: Vec<SkillWarning>,
    /// Names of tools that mean others here.
    tool_translations: Vec<ToolTranslation>,
}

#[derive(Deserialize, JsonSchema)]
struct UninstallBody {
    /// Name of an installed skill.
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Uninstalled {
    /// `uninstalled`.
    status: &'static str,
    skill: String,
}

#[derive(Serialize, JsonSchema)]
struct Registry {
    skills: Vec<RegistrySkill>,
    total: usize,
}

#[derive(Deserialize, JsonSchema)]
struct SearchQuery {
    /// What to look for.
    q: String,
    /// Page, from 1. Default: 1.
    page: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct Marketplace {
    results: Vec<MarketplaceSkill>,
    /// Results of all pages.
    total: usize,
    page: usize,
    /// Marketplaces that could not be asked, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

async fn install(call: Call) -> Result<Response, Error> {
    let body: InstallBody = call.json()?;
    let (field, source) = match (body.source, body.name) {
        (Some(source), _) => ("source", source),
        (None, Some(name)) => ("name", name),
        (None, None) => return Err(Error::bad_field("source", "source: missing; say where the skill comes from")),
    };
    let verify = body.verify.unwrap_or(true);
    let request = Request { field, source: text(field, source)?, version: body.version, verify };
    place(&call, request, None).await
}

/// Fetches a skill, notes that it is installed, and installs it.
pub(super) async fn place(call: &Call, request: Request, slug: Option<String>) -> Result<Response, Error> {
    let source = request.source.clone();
    let prepared = call.api.service::<dyn Sources>()?.prepare(request).await?;
    let Description { name, version, sha256, .. } = prepared.description();
    let details = json!({ "skill": name, "version": version, "source": source, "sha256": sha256 });
    // Before it is done: an install that then fails leaves an entry, one that is done never leaves none.
    call.ask(NoteAction { kind: SKILL_INSTALLED, agent: None, details }).await?;
    let description = blocking(move || prepared.install()).await?;
    reply::created(&Installed {
        status: "installed",
        skill: description.name.clone(),
        name: description.name,
        version: description.version,
        converted_from: description.converted_from,
        slug,
        is_prompt_only: description.is_prompt_only,
        sha256: description.sha256,
        verified: description.verified,
        warnings: description.warnings,
        tool_translations: description.tool_translations,
    })
}

async fn uninstall(call: Call) -> Result<Response, Error> {
    let UninstallBody { name } = call.json()?;
    let (name, sources) = (text("name", name)?, call.api.service::<dyn Sources>()?);
    let (asked, skill) = (Arc::clone(&sources), name.clone());
    blocking(move || asked.removable(&skill)).await?;
    call.ask(NoteAction { kind: SKILL_UNINSTALLED, agent: None, details: json!({ "skill": name }) }).await?;
    let skill = name.clone();
    blocking(move || sources.remove(&skill)).await?;
    reply::ok(&Uninstalled { status: "uninstalled", skill: name })
}

async fn registry(call: Call) -> Result<Response, Error> {
    let skills = call.api.service::<dyn Sources>()?.registry().await?;
    reply::ok(&Registry { total: skills.len(), skills })
}

async fn marketplace(call: Call) -> Result<Response, Error> {
    let SearchQuery { q, page } = call.query()?;
    let (q, page) = (query(q)?, page_of(page)?);
    let found = call.api.service::<dyn Sources>()?.marketplace(q, page).await?;
    reply::ok(&Marketplace { results: found.results, total: found.total, page, warnings: found.warnings })
}

/// A text of the body that is not empty, and not too long.
pub(super) fn text(field: &'static str, text: String) -> Result<String, Error> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(Error::bad_field(field, format!("{field}: must not be empty")));
    }
    if trimmed.len() > SOURCE_BYTES_MAX {
        return Err(Error::bad_field(field, format!("{field}: longer than {SOURCE_BYTES_MAX} bytes")));
    }
    if trimmed.chars().any(char::is_control) {
        return Err(Error::bad_field(field, format!("{field}: must not contain control characters")));
    }
    Ok(trimmed.to_owned())
}

/// What to search for.
pub(super) fn query(q: String) -> Result<String, Error> {
    let q = text("q", q)?;
    if q.len() > QUERY_BYTES_MAX {
        return Err(Error::bad_field("q", format!("q: longer than {QUERY_BYTES_MAX} bytes")));
    }
    Ok(q)
}

/// The page that is asked for.
pub(super) fn page_of(page: Option<usize>) -> Result<usize, Error> {
    let page = page.unwrap_or(1);
    if !(1..=PAGE_MAX).contains(&page) {
        return Err(Error::bad_field("page", format!("page: must be 1 to {PAGE_MAX}")));
    }
    Ok(page)
}

/// Does what waits for the disk on a thread that may.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
) -> Result<T, SourceError> {
    spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a change of a skill was interrupted");
        Err(SourceError::Files(FilesError::Failed))
    })
}
