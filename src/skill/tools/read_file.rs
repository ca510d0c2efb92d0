//! `skill_read_file`: the instructions of a skill, and its other files.

use std::fmt::Write;
use std::sync::Arc;

use agentsvc_systems::skill::limits::SKILL_FILE_SHOWN_BYTES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{find, loaded, manifest, read};
use crate::skill::files::Folder;
use crate::skill::library::Library;
use crate::skill::read::TEXTS;
use crate::skill::skill::Skill;
use crate::tool::toolset::{Tool, input, raw_schema};

/// Its name.
pub(in crate::skill) const NAME: &str = "skill_read_file";
/// Files that stand behind the instructions.
const FILES_SHOWN: usize = 100;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The skill's name, as the list of skills has it.
    skill: String,
    /// A file of the skill, such as "references/forms.md". Default: its instructions.
    path: Option<String>,
}

/// The tool.
pub(super) fn tool(library: &Arc<Library>) -> Tool {
    let library = Arc::clone(library);
    Tool::brought(
        NAME.to_owned(),
        "Reads the instructions of a skill, or another file of it. Read the instructions before you work on a task that \
         the skill is for."
            .to_owned(),
        raw_schema::<Input>(),
        move |context, text| {
            let library = Arc::clone(&library);
            Box::pin(async move {
                let Input { skill, path } = input(&text)?;
                let skill = find(&*loaded(&library).await?, manifest(&context), &skill)?;
                let path = path.filter(|path| !path.is_empty() && !TEXTS.contains(&&**path));
                let Some(path) = path else {
                    library.uses.count(&skill.name);
                    return Ok(read(instructions(&skill)));
                };
                let is_frozen = manifest(&context).frozen_skills.is_some();
                let file = tokio::task::spawn_blocking(move || file(&skill, &path, is_frozen)).await;
                file.map_err(|_| "The file could not be read.".to_owned())?.map(read)
            })
        },
    )
    .safe()
    .order(18)
}

/// The instructions, and the names of the other files.
pub(in crate::skill) fn instructions(skill: &Skill) -> String {
    let mut text = skill.text();
    if text.trim().is_empty() {
        text = format!("The skill has no instructions. Description: {}", skill.description);
    }
    let others: Vec<_> = skill.files.iter().filter(|file| !TEXTS.contains(&&*file.path)).collect();
    if !others.is_empty() {
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let _ = write!(text, "{newline}\n[Files of this skill, which skill_read_file shows by `path`:");
        for file in others.iter().take(FILES_SHOWN) {
            let _ = write!(text, " {} ({} bytes)", file.path, file.size);
        }
        text.push_str(if others.len() > FILES_SHOWN { " and more]" } else { "]" });
    }
    text
}

/// A file that was there when the skill was read; for a frozen agent with the same bytes.
fn file(skill: &Skill, path: &str, is_frozen: bool) -> Result<String, String> {
    let known = skill.files.iter().find(|file| *file.path == *path.trim_start_matches("./"));
    let Some(known) = known else {
        let names: Vec<&str> = skill.files.iter().map(|file| &*file.path).take(FILES_SHOWN).collect();
        return Err(format!("The skill {:?} has no file {path:?}. Its files: {}.", skill.name, names.join(", ")));
    };
    let failed = |error: &dyn std::fmt::Display| format!("{path:?} cannot be read: {error}.");
    let folder = Folder::open(&skill.folder).map_err(|error| failed(&error))?;
    let most = if is_frozen { known.size } else { SKILL_FILE_SHOWN_BYTES_MAX };
    let mut bytes = folder.read(&known.path, most + 1).map_err(|error| failed(&error))?;
    if is_frozen && <[u8; 32]>::from(Sha256::digest(&bytes)) != known.sha256 {
        return Err(format!("{path:?} was changed since this agent's skills were frozen."));
    }
    let is_cut = bytes.len() as u64 > SKILL_FILE_SHOWN_BYTES_MAX;
    bytes.truncate(usize::try_from(SKILL_FILE_SHOWN_BYTES_MAX).unwrap_or(usize::MAX));
    if bytes.contains(&0) {
        return Err(format!("{path:?} is not a text file. It has {} bytes.", known.size));
    }
    let mut text = String::from_utf8_lossy(&bytes).replace("{baseDir}", &skill.folder.to_string_lossy());
    if is_cut {
        let _ = write!(text, "\n[The file has {} bytes; the rest is not shown.]", known.size);
    }
    Ok(text)
}
