//! The tools that skills bring: those by which agents read them, and those of code and templates.

mod list;
mod read_file;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::manifest::Manifest;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::catalog::{Catalog, has};
use super::library::Library;
use super::run::{self, Call};
use super::skill::{Skill, SkillTool};
use crate::tool::toolset::{Context, Ended, Entry, InputSchema, Need, OfSkills, Tool, input};

pub(super) use read_file::{NAME as READ_FILE, instructions};

/// Bytes of a tool's description that models see.
const DESCRIPTION_BYTES_MAX: usize = 4 << 10;

/// The tools of the skills in `catalog`, in the order of the skills' names. Those of skills with unmet needs are left out.
pub(super) fn of(catalog: &Catalog, library: &Arc<Library>) -> Vec<Arc<Entry>> {
    let usable: Vec<&Arc<Skill>> = catalog.iter().filter(|skill| skill.unmet.is_empty()).collect();
    if catalog.is_empty() {
        return Vec::new();
    }
    let all: Arc<[_]> = catalog.iter().map(|skill| (skill.name.clone(), skill.content_hash.clone())).collect();
    let shows = OfSkills { list: all, shows: true };
    let mut entries = vec![
        Entry::new(read_file::tool(library).of_skills(shows.clone())),
        Entry::new(list::tool(library).of_skills(shows)),
    ];
    let with_tools = usable.into_iter().filter(|skill| run::is_run(skill.runtime));
    entries
        .extend(with_tools.flat_map(|skill| {
            skill.tools.iter().filter_map(move |tool| brought(skill, tool, library)).map(Entry::new)
        }));
    entries
}

/// A tool of a skill. `None` for one whose texts look like a prompt injection, where those are not shown.
fn brought(skill: &Arc<Skill>, declared: &SkillTool, library: &Library) -> Option<Tool> {
    let uses = Arc::clone(&library.uses);
    let schema: Arc<RawValue> = Arc::from(serde_json::value::to_raw_value(&declared.input_schema).ok()?);
    let mut description = declared.description.to_string();
    description.truncate(description.floor_char_boundary(DESCRIPTION_BYTES_MAX));
    if description.is_empty() {
        description = format!("A tool of the skill {}.", skill.name);
    }
    let description = skill.tool_description(library.injection(), &declared.name, &description)?;
    let list = Arc::from([(skill.name.clone(), skill.content_hash.clone())]);
    let (skill, name) = (Arc::clone(skill), declared.name.clone());
    let input_schema = Arc::new((declared.input_schema.clone(), OnceLock::new()));
    let needs = if skill.has_code() { Need::Files } else { Need::Nothing };
    let tool = Tool::brought(name.to_string(), description, schema, move |context, text| {
        let (skill, tool, schema) = (Arc::clone(&skill), name.clone(), Arc::clone(&input_schema));
        let uses = Arc::clone(&uses);
        Box::pin(async move {
            let input = checked(schema, input(&text)?).await?;
            uses.count(&skill.name);
            run::run(Call { skill, tool, input, context }).await
        })
    });
    // The skill's own time bounds it.
    Some(tool.of_skills(OfSkills { list, shows: false }).needs(needs).untimed())
}

/// A schema and what was made of it.
type Schema = (Value, OnceLock<Result<InputSchema, String>>);

/// Holds an input against the schema, on a thread that may take its time.
async fn checked(schema: Arc<Schema>, input: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let check = move || {
        let (text, compiled) = &*schema;
        let compiled = compiled.get_or_init(|| InputSchema::of_stranger(text)).as_ref();
        let compiled = compiled.map_err(|why| format!("The input cannot be checked: {why}."))?;
        let input = Value::Object(input);
        if let Err(fault) = compiled.check(&input) {
            let place = if fault.field.is_empty() { "The input".to_owned() } else { format!("`{}`", fault.field) };
            return Err(format!("{place} {}.", fault.message));
        }
        match input {
            Value::Object(input) => Ok(input),
            _ => Ok(Map::new()),
        }
    };
    let done = tokio::task::spawn_blocking(check).await;
    done.map_err(|_| "The input could not be checked.".to_owned())?
}

/// The skill of this name, if the agent has it; otherwise a sentence that names those that it has.
fn find(catalog: &Catalog, manifest: &Manifest, name: &str) -> Result<Arc<Skill>, String> {
    if let Some(skill) = catalog.get(name).filter(|skill| has(manifest, skill)) {
        if !skill.unmet.is_empty() {
            return Err(format!("The skill {name:?} cannot be used here: {}.", skill.unmet.join("; ")));
        }
        return Ok(Arc::clone(skill));
    }
    let usable = catalog.of(manifest).filter(|skill| skill.unmet.is_empty());
    let names: Vec<&str> = usable.map(|skill| &*skill.name).take(NAMES_SHOWN).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(format!("There is no skill named {name:?}. Available skills: {names}."))
}

/// Names that an error lists.
const NAMES_SHOWN: usize = 50;

/// Text of a skill, which others wrote.
fn read(text: String) -> Ended {
    Ended::Read { text, taint: Taint::TOOL }
}

/// Tools that stand in more than one place of a list, by name.
pub(super) fn clashes(catalog: &Catalog) -> Vec<(Box<str>, Box<str>)> {
    let (mut seen, mut clashes) = (HashSet::new(), Vec::new());
    for skill in catalog.iter().filter(|skill| run::is_run(skill.runtime)) {
        for tool in &skill.tools {
            if !seen.insert(&*tool.name) {
                clashes.push((skill.name.clone(), tool.name.clone()));
            }
        }
    }
    clashes
}

/// The skills, on a thread that may wait for them.
async fn loaded(library: &Arc<Library>) -> Result<Arc<Catalog>, String> {
    let library = Arc::clone(library);
    let catalog = tokio::task::spawn_blocking(move || library.loaded()).await;
    catalog.map_err(|_| "The skills could not be read.".to_owned())
}

/// The manifest of the agent that calls.
fn manifest(context: &Context) -> &Manifest {
    &context.run.manifest.manifest
}
