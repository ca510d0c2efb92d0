//! How agent types look in JSON (spec 2, Agent type), and where a list of them goes on.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use agentsvc_components::manifest::Manifest;
use agentsvc_systems::agent::NamedAgent;
use agentsvc_systems::kernel::record::{hex, unhex};
use agentsvc_systems::manifest::{self, Flat};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::template::store::TemplateFile;

/// One row of the list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct TemplateRow {
    pub(crate) name: String,
    description: String,
    /// Empty means the daemon's default.
    provider: String,
    model: String,
    /// `agent-type` for a file, `agent` for the manifest of an agent.
    source: &'static str,
    /// True only for an agent type.
    editable: bool,
    /// Why its text is not a valid manifest; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl TemplateRow {
    /// The row of a stored agent type.
    pub(crate) fn of_file(file: TemplateFile) -> Self {
        let parsed = file.text.and_then(|text| manifest::parse(&text).map_err(|error| error.to_string()));
        let (manifest, error) = match parsed {
            Ok(parsed) => (parsed.manifest, None),
            Err(error) => (Manifest::default(), Some(error)),
        };
        Self::new(file.name, &manifest, true, error)
    }

    /// The row of a live agent.
    pub(crate) fn of_agent(agent: &NamedAgent) -> Self {
        Self::new(agent.name.to_string(), &agent.manifest.manifest, false, None)
    }

    fn new(name: String, manifest: &Manifest, editable: bool, error: Option<String>) -> Self {
        Self {
            name,
            description: manifest.description.to_string(),
            provider: manifest.model.provider.to_string(),
            model: manifest.model.model.to_string(),
            source: source(editable),
            editable,
            error,
        }
    }

    /// Its place in the list.
    pub(crate) fn place(&self) -> Place {
        Place { name: self.name.clone(), is_agent: !self.editable }
    }
}

const fn source(editable: bool) -> &'static str {
    if editable { "agent-type" } else { "agent" }
}

/// A place in the list: by name, an agent type before the agent of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) is_agent: bool,
}

impl Place {
    /// That of a live agent.
    pub(crate) fn of_agent(agent: &NamedAgent) -> Self {
        Self { name: agent.name.to_string(), is_agent: true }
    }
}

/// In hexadecimal digits, because a header holds ASCII only and a name any text.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char(if self.is_agent { 'a' } else { 't' })?;
        f.write_str(&hex(self.name.as_bytes()))
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, digits) = text.split_at_checked(1).ok_or(())?;
        let is_agent = match kind {
            "a" => true,
            "t" => false,
            _ => return Err(()),
        };
        let bytes = unhex(digits.as_bytes()).ok_or(())?;
        Ok(Self { name: String::from_utf8(bytes).map_err(|_| ())?, is_agent })
    }
}

/// One agent type, or a live agent's manifest.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TemplateDocument {
    name: String,
    /// `agent-type` or `agent`.
    source: &'static str,
    editable: bool,
    /// The flat fields; null if the text is not a valid manifest.
    spec: Option<FlatShape>,
    /// The parsed text; null if it is not TOML.
    manifest: Option<Map<String, Value>>,
    /// The text as it is written.
    manifest_toml: String,
    /// Why the text is not a valid manifest; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The fields that PUT accepts.
#[derive(Serialize, JsonSchema)]
struct FlatShape {
    name: String,
    description: String,
    system_prompt: String,
    provider: String,
    model: String,
    tools: Vec<String>,
    skills: Vec<String>,
}

impl TemplateDocument {
    /// The document of `name`, which has this text. Where there is none, the error says why.
    pub(crate) fn new(name: String, text: Result<String, String>, editable: bool) -> Self {
        let (text, unreadable) = match text {
            Ok(text) => (text, None),
            Err(error) => (String::new(), Some(error)),
        };
        let parsed = manifest::parse(&text).map_err(|error| error.to_string());
        let spec = parsed.as_ref().ok().map(|parsed| FlatShape::of(&name, Flat::of(&parsed.manifest)));
        let error = unreadable.or_else(|| parsed.err());
        let whole = manifest::object(&text).ok().filter(|_| !text.is_empty());
        Self { name, source: source(editable), editable, spec, manifest: whole, manifest_toml: text, error }
    }
}

impl FlatShape {
    fn of(name: &str, flat: Flat) -> Self {
        let Flat { description, system_prompt, provider, model, tools, skills } = flat;
        Self {
            name: name.to_owned(),
            description: description.unwrap_or_default(),
            system_prompt: system_prompt.unwrap_or_default(),
            provider: provider.unwrap_or_default(),
            model: model.unwrap_or_default(),
            tools: tools.unwrap_or_default(),
            skills: skills.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written_and_sort_by_name() {
        let place = |name: &str, is_agent| Place { name: name.to_owned(), is_agent };
        for place in [place("assistant", false), place("Zoë \"x\" 漢", true), place("", false)] {
            assert!(place.to_string().is_ascii());
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for wrong in ["", "x", "t6", "tzz", "tff", "t+1", "é"] {
            assert_eq!(wrong.parse::<Place>(), Err(()), "{wrong}");
        }
        let mut places = [place("b", false), place("a", true), place("a", false)];
        places.sort();
        assert_eq!(places, [place("a", false), place("a", true), place("b", false)]);
    }

    #[test]
    fn a_broken_text_is_shown_with_its_fault() {
        let broken = TemplateDocument::new("x".to_owned(), Ok("name = 3\n".to_owned()), true);
        assert!(broken.error.unwrap().contains("name") && broken.spec.is_none() && broken.manifest.is_some());
        let row = TemplateRow::of_file(TemplateFile { name: "x".to_owned(), text: Err("too long".to_owned()) });
        assert_eq!((row.error.as_deref(), row.editable), (Some("too long"), true));
    }
}
