//! `skill_list`: the skills that the agent has.

use std::fmt::Write;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{loaded, manifest, read};
use crate::skill::library::Library;
use crate::skill::prompt::one_line;
use crate::tool::toolset::{Tool, input, raw_schema};

/// Bytes of one list.
const BYTES_MAX: usize = 30 << 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Only skills whose name, description or tags contain this text.
    query: Option<String>,
    /// Skills to skip. Default: 0.
    offset: Option<usize>,
}

/// The tool.
pub(super) fn tool(library: &Arc<Library>) -> Tool {
    let library = Arc::clone(library);
    Tool::brought(
        "skill_list".to_owned(),
        "Lists the skills that you have: name, version, description and tools, and for those that cannot be used here \
         what is missing."
            .to_owned(),
        raw_schema::<Input>(),
        move |context, text| {
            let library = Arc::clone(&library);
            Box::pin(async move {
                let Input { query, offset } = input(&text)?;
                let catalog = loaded(&library).await?;
                let query = query.unwrap_or_default().to_lowercase();
                let matches = |text: &str| text.to_lowercase().contains(&query);
                let found = catalog.of(manifest(&context)).filter(|skill| {
                    matches(&skill.name) || matches(&skill.description) || skill.tags.iter().any(|tag| matches(tag))
                });
                let (mut text, mut shown) = (String::new(), offset.unwrap_or(0));
                let mut found = found.skip(shown).peekable();
                while let Some(skill) = found.next_if(|_| text.len() < BYTES_MAX) {
                    shown += 1;
                    let description = one_line(&skill.description, 300);
                    let _ = write!(text, "- {} {}: {description}", skill.name, skill.version);
                    if !skill.tools.is_empty() {
                        let tools: Vec<&str> = skill.tools.iter().map(|tool| &*tool.name).collect();
                        let _ = write!(text, " Tools: {}.", tools.join(", "));
                    }
                    if !skill.unmet.is_empty() {
                        let _ = write!(text, " Cannot be used here: {}.", skill.unmet.join("; "));
                    }
                    text.push('\n');
                }
                if found.peek().is_some() {
                    let _ = writeln!(text, "[There are more. To continue, call skill_list with offset {shown}.]");
                }
                Ok(read(if text.is_empty() { "There are no such skills.".to_owned() } else { text }))
            })
        },
    )
    .safe()
    .order(18)
}
