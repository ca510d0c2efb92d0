//! The `model` of a configuration body: a name, or a table as in the manifest.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::http::json::given;

/// A model name, or an object with keys of `[model]` of the manifest.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(crate) enum ModelField {
    /// Model id or alias.
    Name(String),
    /// Any of the keys.
    Table(ModelTable),
}

/// Keys of `[model]` of the manifest; omitted keys are unchanged.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ModelTable {
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    #[serde(deserialize_with = "given")]
    pub(crate) temperature: Option<Option<f32>>,
    #[serde(deserialize_with = "given")]
    pub(crate) max_tokens: Option<Option<u32>>,
}

impl ModelField {
    /// The table that says the same.
    pub(crate) fn into_table(self) -> ModelTable {
        match self {
            Self::Name(model) => ModelTable { model: Some(model), ..ModelTable::default() },
            Self::Table(table) => table,
        }
    }
}

impl<'de> Deserialize<'de> for ModelField {
    // Not `untagged`, which would name no key in its errors and would hide unknown keys.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = ModelField;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a model name or an object")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<ModelField, E> {
        Ok(ModelField::Name(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelField, A::Error> {
        ModelTable::deserialize(MapAccessDeserializer::new(map)).map(ModelField::Table)
    }
}
