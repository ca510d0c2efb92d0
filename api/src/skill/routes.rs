//! Skills over HTTP (spec 2, Skills and marketplaces).

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error_codes::{SKILL_FILE_NOT_FOUND, SKILL_NOT_FOUND};
use super::library::{FailedFolder, ReloadedSkills, SkillDetail, SkillRow, SkillRows, SkillText, Skills};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::files::FilesError;
use crate::http::receive::blocking;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};

/// What a reload costs the client's rate budget: it looks at every file of every skill.
const RELOAD_COST: u32 = 50;
/// What a list costs.
const LIST_COST: u32 = 5;
/// Characters of a name that are said back.
const SHOWN_CHARS: usize = 64;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/skills", "List skills", |call| Box::pin(list(call)))
        .cost(LIST_COST)
        .query::<ListQuery>()
        .replies(&[Reply::json::<SkillList>(200, "the skills, by name")]),
    Route::get("/api/skills/{name}", "Get a skill", |call| Box::pin(show(call)))
        .replies(&[Reply::json::<SkillDetail>(200, "the skill")]),
    Route::get("/api/skills/{name}/file", "Get the text of a file of a skill", |call| Box::pin(file(call)))
        .cost(LIST_COST)
        .query::<FileQuery>()
        .replies(&[Reply::json::<SkillText>(200, "the text")]),
    Route::post("/api/skills/reload", "Reload skills", |call| Box::pin(reload(call)))
        .cost(RELOAD_COST)
        .replies(&[Reply::json::<ReloadedSkills>(200, "what changed")]),
];

/// Which skills to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ListQuery {
    /// Only skills of this category.
    category: Option<String>,
}

/// The skills.
#[derive(Serialize, JsonSchema)]
struct SkillList {
    /// By name.
    skills: Vec<SkillRow>,
    /// Skills in the list.
    total: usize,
    /// Categories of all skills, sorted.
    categories: BTreeSet<String>,
    /// Folders that are no skills.
    failed: Vec<FailedFolder>,
}

/// Which file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct FileQuery {
    /// Path in the skill's folder, such as `references/forms.md`.
    path: Option<String>,
    /// The same.
    file: Option<String>,
}

async fn list(call: Call) -> Result<Response, Error> {
    let ListQuery { category } = call.query()?;
    let found = call.api.service::<dyn Skills>()?;
    let SkillRows { mut skills, failed } = blocking(move || Ok::<_, FilesError>(found.list())).await?;
    let categories = skills.iter().map(|skill| skill.category.clone()).collect();
    if let Some(category) = category {
        skills.retain(|skill| skill.category.eq_ignore_ascii_case(&category));
    }
    reply::ok(&SkillList { total: skills.len(), skills, categories, failed })
}

async fn show(call: Call) -> Result<Response, Error> {
    let (name, skills) = (call.param("name")?.into_owned(), call.api.service::<dyn Skills>()?);
    let wanted = name.clone();
    let found = blocking(move || Ok::<_, FilesError>(skills.get(&wanted))).await?;
    reply::ok(&found.ok_or_else(|| missing(&name))?)
}

async fn file(call: Call) -> Result<Response, Error> {
    let FileQuery { path, file } = call.query()?;
    let path = path.or(file).filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| Error::bad_field("path", "path: missing; give the path of a file of the skill"))?;
    let (name, skills) = (call.param("name")?.into_owned(), call.api.service::<dyn Skills>()?);
    let wanted = name.clone();
    let found = blocking(move || skills.file(&wanted, &path).transpose()).await;
    match found {
        Ok(text) => reply::ok(&text.ok_or_else(|| missing(&name))?),
        Err(error @ FilesError::NotFound(_)) => Err(Error::from(error).code(SKILL_FILE_NOT_FOUND)),
        Err(error) => Err(error.into()),
    }
}

async fn reload(call: Call) -> Result<Response, Error> {
    let skills = call.api.service::<dyn Skills>()?;
    reply::ok(&blocking(move || Ok::<_, FilesError>(skills.reload())).await?)
}

fn missing(name: &str) -> Error {
    let shown: String = name.chars().take(SHOWN_CHARS).collect();
    Error::of(SKILL_NOT_FOUND, format!("skill not found: {shown}"))
}
