//! The tools by which agents change skills.

use agentsvc_api::skill_evolution::change::{Action, Change};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::propose;
use crate::tool::toolset::{Context, Running, Tool, input};

/// All of them.
pub(super) const TOOLS: [Tool; 7] = [
    Tool::new::<CreateInput>(
        "skill_evolve_create",
        "Creates a skill: instructions that you and other agents can read later. Use it for a procedure that worked and will be \
         needed again. A person may have to approve it.",
        run::<CreateInput>,
    )
    .order(ORDER),
    Tool::new::<UpdateInput>(
        "skill_evolve_update",
        "Replaces all instructions of a skill. A person may have to approve it. To change a part, use skill_evolve_patch.",
        run::<UpdateInput>,
    )
    .order(ORDER),
    Tool::new::<PatchInput>(
        "skill_evolve_patch",
        "Replaces a piece of the instructions of a skill by another text. A person may have to approve it.",
        run::<PatchInput>,
    )
    .order(ORDER),
    Tool::new::<DeleteInput>(
        "skill_evolve_delete",
        "Proposes to delete a skill. A person has to approve it.",
        run::<DeleteInput>,
    )
    .order(ORDER),
    Tool::new::<RollbackInput>(
        "skill_evolve_rollback",
        "Proposes to restore an earlier version of a skill. A person has to approve it.",
        run::<RollbackInput>,
    )
    .order(ORDER),
    Tool::new::<WriteFileInput>(
        "skill_evolve_write_file",
        "Writes a supporting file of a skill. A person may have to approve it.",
        run::<WriteFileInput>,
    )
    .order(ORDER),
    Tool::new::<RemoveFileInput>(
        "skill_evolve_remove_file",
        "Removes a supporting file of a skill. A person may have to approve it.",
        run::<RemoveFileInput>,
    )
    .order(ORDER),
];

/// Their place among all tools: they are seldom needed.
const ORDER: u8 = 90;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateInput {
    /// 1 to 64 of a-z, 0-9, "_" and "-", the first a letter or digit.
    name: String,
    /// What it is for and when to use it, one line.
    description: String,
    /// The instructions, in Markdown.
    prompt_context: String,
    /// Tags; the first is the category.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateInput {
    /// Name of the skill.
    name: String,
    /// The new instructions, in Markdown.
    prompt_context: String,
    /// Why, one line.
    changelog: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PatchInput {
    /// Name of the skill.
    name: String,
    /// Text that stands in the instructions, exactly.
    old_string: String,
    /// Text that takes its place.
    new_string: String,
    /// Why, one line.
    changelog: String,
    /// Replace it wherever it stands (default: it must stand there once).
    #[serde(default)]
    replace_all: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteInput {
    /// Name of the skill.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RollbackInput {
    /// Name of the skill.
    name: String,
    /// Version to restore (default: the one before).
    version: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteFileInput {
    /// Name of the skill.
    name: String,
    /// A file in references/, templates/, scripts/ or assets/.
    path: String,
    /// Its text.
    content: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RemoveFileInput {
    /// Name of the skill.
    name: String,
    /// A file in references/, templates/, scripts/ or assets/.
    path: String,
}

/// Reads an input as a change, and makes or proposes it.
fn run<Input: DeserializeOwned + Into<Change>>(context: Context, text: String) -> Running {
    Box::pin(async move {
        let change = input::<Input>(&text)?.into();
        propose::change(context, change).await
    })
}

fn change(skill: String, action: Action, changelog: String) -> Change {
    Change { skill, action, changelog, content_hash: None }
}

impl From<CreateInput> for Change {
    fn from(CreateInput { name, description, prompt_context, tags }: CreateInput) -> Self {
        change(name, Action::Create { description, prompt_context, tags }, String::new())
    }
}

impl From<UpdateInput> for Change {
    fn from(UpdateInput { name, prompt_context, changelog }: UpdateInput) -> Self {
        change(name, Action::Update { prompt_context }, changelog)
    }
}

impl From<PatchInput> for Change {
    fn from(PatchInput { name, old_string, new_string, changelog, replace_all }: PatchInput) -> Self {
        change(name, Action::Patch { old_string, new_string, replace_all }, changelog)
    }
}

impl From<DeleteInput> for Change {
    fn from(DeleteInput { name }: DeleteInput) -> Self {
        change(name, Action::Delete, String::new())
    }
}

impl From<RollbackInput> for Change {
    fn from(RollbackInput { name, version }: RollbackInput) -> Self {
        change(name, Action::Rollback { version }, String::new())
    }
}

impl From<WriteFileInput> for Change {
    fn from(WriteFileInput { name, path, content }: WriteFileInput) -> Self {
        change(name, Action::WriteFile { path, content }, String::new())
    }
}

impl From<RemoveFileInput> for Change {
    fn from(RemoveFileInput { name, path }: RemoveFileInput) -> Self {
        change(name, Action::RemoveFile { path }, String::new())
    }
}
