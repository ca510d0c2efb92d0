//! Creates and changes skills over HTTP (spec 2, Skills and marketplaces).

use agentsvc_systems::audit::NoteAction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::audit_kinds::SKILL_CHANGED;
use super::change::{Action, Change};
use super::evolution::{Changed, SkillEvolution};
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::skill_source::routes::blocking;

/// What a change costs the client's rate budget: it scans and writes up to 4 MiB.
pub(super) const COST: u32 = 20;
/// Who has made a change over the API.
const AUTHOR: &str = "api";

const CHANGED: Reply = Reply::json::<ChangedShape>(200, "the skill was changed and is in use");
pub(super) const MISSING: Reply = Reply::error(404, "there is no such skill");
pub(super) const BLOCKED: Reply = Reply::error(403, "`security_blocked`: the scan refuses it; `findings` says why");
pub(super) const CONFLICT: Reply =
    Reply::error(409, "the skill has another content hash, or another change of it is under way; nothing was changed");
pub(super) const TOO_LARGE: Reply = Reply::error(422, "the skill has more files or bytes than can be changed");
pub(super) const FULL: Reply = Reply::error(507, "no space left for the skill");

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/skills/create", "Create a skill", |call| Box::pin(create(call)))
        .cost(COST)
        .body::<CreateBody>()
        .replies(&[
            Reply::json::<ChangedShape>(200, "the skill was created and is in use"),
            BLOCKED,
            Reply::error(409, "`already_installed`, or another change is under way"),
            FULL,
        ]),
    Route::post("/api/skills/{name}/evolve/update", "Replace the instructions of a skill", |call| {
        Box::pin(update(call))
    })
    .cost(COST)
    .body::<UpdateBody>()
    .replies(&[CHANGED, BLOCKED, MISSING, CONFLICT, TOO_LARGE, FULL]),
    Route::post("/api/skills/{name}/evolve/patch", "Replace a piece of the instructions of a skill", |call| {
        Box::pin(patch(call))
    })
    .cost(COST)
    .body::<PatchBody>()
    .replies(&[CHANGED, BLOCKED, MISSING, CONFLICT, TOO_LARGE, FULL]),
    Route::post("/api/skills/{name}/evolve/rollback", "Restore an earlier version of a skill", |call| {
        Box::pin(rollback(call))
    })
    .cost(COST)
    .body::<RollbackBody>()
    .replies(&[CHANGED, BLOCKED, MISSING, CONFLICT, TOO_LARGE, FULL]),
    Route::post("/api/skills/{name}/evolve/delete", "Delete a skill and its versions", |call| Box::pin(delete(call)))
        .without_room()
        .cost(COST)
        .body::<DeleteBody>()
        .replies(&[Reply::json::<ChangedShape>(200, "the skill is gone"), MISSING, CONFLICT]),
    Route::post("/api/skills/{name}/evolve/file", "Write a supporting file of a skill", |call| {
        Box::pin(write_file(call))
    })
    .cost(COST)
    .body::<FileBody>()
    .replies(&[CHANGED, BLOCKED, MISSING, CONFLICT, TOO_LARGE, FULL]),
    Route::delete("/api/skills/{name}/evolve/file", "Remove a supporting file of a skill", |call| {
        Box::pin(remove_file(call))
    })
    .cost(COST)
    .query::<FileQuery>()
    .replies(&[
        CHANGED,
        BLOCKED,
        Reply::error(404, "there is no such skill, or no such file in it"),
        CONFLICT,
        TOO_LARGE,
        FULL,
    ]),
];

/// A skill of instructions alone.
#[derive(Deserialize, JsonSchema)]
struct CreateBody {
    /// 1 to 64 of `a-z`, `0-9`, `_` and `-`, the first a letter or digit.
    name: String,
    /// What it is for, one line. Default: the first line of the instructions.
    #[serde(default)]
    description: String,
    /// Instructions in Markdown, up to 160,000 bytes.
    #[serde(default)]
    prompt_context: String,
    /// Up to 20 tags; the first is the category.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct UpdateBody {
    /// Instructions in Markdown, up to 160,000 bytes.
    prompt_context: String,
    /// Why, one line.
    #[serde(default)]
    changelog: String,
    /// Content hash that the skill must have. Default: any.
    content_hash: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct PatchBody {
    /// Text that stands in the instructions, exactly.
    old_string: String,
    /// Text that takes its place; may be empty.
    new_string: String,
    /// Replace it wherever it stands. Default: it must stand there once.
    #[serde(default)]
    replace_all: bool,
    /// Why, one line.
    #[serde(default)]
    changelog: String,
    /// Content hash that the skill must have. Default: any.
    content_hash: Option<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct RollbackBody {
    /// Version or content hash of the history. Default: the newest version whose files differ from those now.
    version: Option<String>,
    /// Content hash that the skill must have. Default: any.
    content_hash: Option<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DeleteBody {
    /// Content hash that the skill must have. Default: any.
    content_hash: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct FileBody {
    /// A file in `references/`, `templates/`, `scripts/` or `assets/`.
    path: String,
    /// Its text, up to 1 MiB.
    content: String,
    /// Why, one line.
    #[serde(default)]
    changelog: String,
    /// Content hash that the skill must have. Default: any.
    content_hash: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct FileQuery {
    /// The file, such as `references/notes.md`.
    path: String,
    /// Content hash that the skill must have. Default: any.
    content_hash: Option<String>,
}

/// A skill that was changed.
#[derive(Serialize, JsonSchema)]
pub(super) struct ChangedShape {
    /// `created`, `updated`, `patched`, `rolled_back`, `deleted`, `file_written` or `file_removed`.
    status: &'static str,
    name: String,
    /// The same as `name`.
    skill_name: String,
    /// Its version now.
    version: String,
    /// What was done, as a sentence.
    message: String,
    /// Its content hash now; absent of a deleted skill.
    #[serde(skip_serializing_if = "String::is_empty")]
    content_hash: String,
    /// What the scan noticed, in sentences.
    warnings: Vec<String>,
}

impl ChangedShape {
    pub(super) fn of(verb: &str, changed: Changed) -> Self {
        let Changed { skill, version, content_hash, warnings } = changed;
        let (status, done) = match verb {
            "create" => ("created", "was created"),
            "update" => ("updated", "was updated"),
            "patch" => ("patched", "was patched"),
            "rollback" => ("rolled_back", "was rolled back"),
            "delete" => ("deleted", "was deleted"),
            "write_file" => ("file_written", "has the file now"),
            _ => ("file_removed", "no longer has the file"),
        };
        let message = format!("skill \"{skill}\" {done}");
        Self { status, name: skill.clone(), skill_name: skill, version, message, content_hash, warnings }
    }
}

async fn create(call: Call) -> Result<Response, Error> {
    let CreateBody { name, description, prompt_context, tags } = call.json()?;
    let action = Action::Create { description, prompt_context, tags };
    make(&call, Change { skill: name, action, changelog: String::new(), content_hash: None }).await
}

async fn update(call: Call) -> Result<Response, Error> {
    let UpdateBody { prompt_context, changelog, content_hash } = call.json()?;
    let skill = call.param("name")?.into_owned();
    make(&call, Change { skill, action: Action::Update { prompt_context }, changelog, content_hash }).await
}

async fn patch(call: Call) -> Result<Response, Error> {
    let PatchBody { old_string, new_string, replace_all, changelog, content_hash } = call.json()?;
    let skill = call.param("name")?.into_owned();
    let action = Action::Patch { old_string, new_string, replace_all };
    make(&call, Change { skill, action, changelog, content_hash }).await
}

async fn rollback(call: Call) -> Result<Response, Error> {
    let RollbackBody { version, content_hash } = call.json_or_default()?;
    let skill = call.param("name")?.into_owned();
    let (action, changelog) = (Action::Rollback { version }, String::new());
    make(&call, Change { skill, action, changelog, content_hash }).await
}

async fn delete(call: Call) -> Result<Response, Error> {
    let DeleteBody { content_hash } = call.json_or_default()?;
    let skill = call.param("name")?.into_owned();
    make(&call, Change { skill, action: Action::Delete, changelog: String::new(), content_hash }).await
}

async fn write_file(call: Call) -> Result<Response, Error> {
    let FileBody { path, content, changelog, content_hash } = call.json()?;
    let skill = call.param("name")?.into_owned();
    make(&call, Change { skill, action: Action::WriteFile { path, content }, changelog, content_hash }).await
}

async fn remove_file(call: Call) -> Result<Response, Error> {
    let FileQuery { path, content_hash } = call.query()?;
    let skill = call.param("name")?.into_owned();
    let (action, changelog) = (Action::RemoveFile { path }, String::new());
    make(&call, Change { skill, action, changelog, content_hash }).await
}

async fn make(call: &Call, change: Change) -> Result<Response, Error> {
    change.check()?;
    let evolution = call.api.service::<dyn SkillEvolution>()?;
    // Before it is done: a change that then fails leaves an entry, one that is done never leaves none.
    call.ask(NoteAction { kind: SKILL_CHANGED, agent: None, details: change.details() }).await?;
    let verb = change.verb();
    let changed = blocking(move || evolution.apply(&change, AUTHOR)).await?;
    reply::ok(&ChangedShape::of(verb, changed))
}
