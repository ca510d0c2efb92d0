//! What adapters say of the values that they take: `<command> --describe` prints one object and ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::channel::shape::{ChannelField, ChannelSchema};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::definition::Definition;
use crate::kernel::sandbox::{Commands, Server};

/// Time that an answer may take.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Bytes of an answer.
const BYTES_MAX: u64 = 256 << 10;
/// Answers that are kept. More: all are asked for again.
const KEPT_MAX: usize = 256;
/// Values of an adapter.
const FIELDS_MAX: usize = 256;
/// What describes itself.
const FLAG: &str = "--describe";

/// A program with its arguments.
type CommandLine = (String, Vec<Box<str>>);

/// The answers, by command.
#[derive(Default)]
pub(crate) struct Described(Mutex<HashMap<CommandLine, Arc<Schema>>>);

/// What an adapter says of itself.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Schema {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) display_name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) fields: Vec<Field>,
    #[serde(default)]
    pub(crate) sdk_version: Option<String>,
}

/// A value that it takes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Field {
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) label: String,
    #[serde(default, rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) required: bool,
    #[serde(default)]
    pub(crate) placeholder: Option<String>,
    #[serde(default)]
    pub(crate) advanced: bool,
    #[serde(default)]
    pub(crate) options: Option<Vec<String>>,
}

impl Field {
    /// Is its value never shown?
    pub(crate) fn is_secret(&self) -> bool {
        self.kind == "secret"
    }
}

impl Described {
    /// What the adapter said, if it was asked.
    pub(crate) fn known(&self, definition: &Definition) -> Option<Arc<Schema>> {
        self.0.lock().get(&key(definition)).cloned()
    }

    /// What the adapter says; it is asked once.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) async fn ask(&self, definition: &Definition, commands: &Commands) -> Result<Arc<Schema>, String> {
        if let Some(known) = self.known(definition) {
            return Ok(known);
        }
        let asked = async { answer(commands.serve(definition.program(&[FLAG])).await?).await };
        let answered = timeout(TIME_MAX, asked).await;
        let secs = TIME_MAX.as_secs();
        let schema =
            Arc::new(answered.map_err(|_| format!("the adapter did not describe itself within {secs} seconds"))??);
        let mut kept = self.0.lock();
        if kept.len() == KEPT_MAX {
            kept.clear();
        }
        kept.insert(key(definition), Arc::clone(&schema));
        Ok(schema)
    }
}

fn key(definition: &Definition) -> CommandLine {
    (definition.command.clone(), definition.config.args.clone())
}

async fn answer(server: Server) -> Result<Schema, String> {
    let Server { mut stream, stderr, mut process } = server;
    // One that knows no such flag would run as a bot; without an input it ends.
    let _gone = stream.shutdown().await;
    let (mut text, mut errors) = (Vec::new(), Vec::new());
    let (mut out, mut err) = ((&mut stream).take(BYTES_MAX), stderr.take(BYTES_MAX));
    let (read, _) = tokio::join!(out.read_to_end(&mut text), err.read_to_end(&mut errors));
    let code = process.exit_code().await;
    let said = String::from_utf8_lossy(&errors);
    let said = said.trim().lines().last().unwrap_or_default();
    match code {
        _ if said.contains("No module named 'librefang'") => {
            Err("the SDK is missing; install it with `pip install librefang-sdk`".to_owned())
        }
        Some(2) => Err("the adapter does not describe its values".to_owned()),
        Some(0) if read.is_ok() => parsed(&text),
        _ => Err(format!("the adapter did not describe itself: {said}")),
    }
}

fn parsed(text: &[u8]) -> Result<Schema, String> {
    let mut schema: Schema =
        serde_json::from_slice(text).map_err(|_| "the adapter describes itself in no known form")?;
    schema.fields.truncate(FIELDS_MAX);
    schema.fields.retain(|field| super::config::check_variable(&field.key).is_ok());
    Ok(schema)
}

impl Schema {
    /// The values with those that `value` gives.
    pub(crate) fn shown(&self, value: &dyn Fn(&str) -> Option<String>) -> ChannelSchema {
        let field = |field: &Field| {
            let found = value(&field.key);
            ChannelField {
                key: field.key.clone(),
                label: field.label.clone(),
                kind: field.kind.clone(),
                required: field.required,
                placeholder: field.placeholder.clone().filter(|text| !text.is_empty()),
                advanced: field.advanced,
                options: field.options.clone().unwrap_or_default(),
                is_set: found.is_some(),
                value: found.filter(|_| !field.is_secret()),
            }
        };
        ChannelSchema {
            name: self.name.clone(),
            display_name: self.display_name.clone(),
            description: self.description.clone(),
            fields: self.fields.iter().map(field).collect(),
            sdk_version: self.sdk_version.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_without_secrets() {
        let text = br#"{"name":"x","fields":[{"key":"T","type":"secret","required":true,"placeholder":""},
            {"key":"S","type":"select","options":["a"]},{"key":"bad key"}],"sdk_version":"1"}"#;
        let shown = parsed(text).unwrap().shown(&|key| Some(format!("value of {key}")));
        assert_eq!(shown.fields.len(), 2);
        assert!(shown.fields[0].is_set && shown.fields[0].value.is_none() && shown.fields[0].placeholder.is_none());
        assert_eq!(shown.fields[1].value.as_deref(), Some("value of S"));
        assert!(parsed(b"usage: bot").is_err());
    }
}
