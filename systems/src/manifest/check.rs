//! The rules that values must obey whatever way they come in: a manifest's text, PATCH or clone.

use agentsvc_components::Refusal;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::{Manifest, ModelChoice};

/// Checks an agent's name, which becomes a directory's name and a part of URLs.
///
/// # Errors
/// One sentence that says what is wrong with it.
pub fn validate_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name must not be empty".to_owned());
    }
    if name.len() > limit::NAME_BYTES_MAX {
        return Err(format!("the name is {} bytes long; the limit is {}", name.len(), limit::NAME_BYTES_MAX));
    }
    for (index, character) in name.chars().enumerate() {
        let place = index + 1;
        match character {
            '/' | '\\' => return Err(format!("the name must not contain `{character}` (character {place})")),
            '\0' => return Err(format!("the name must not contain NUL (character {place})")),
            _ if character.is_control() || is_format_control(character) => {
                let code = u32::from(character);
                return Err(format!("the name must not contain control characters (U+{code:04X}, character {place})"));
            }
            _ => {}
        }
    }
    if name == "." || name == ".." {
        return Err(format!("the name must not be `{name}`"));
    }
    if name.starts_with(char::is_whitespace) {
        return Err("the name must not start with whitespace".to_owned());
    }
    if name.ends_with(char::is_whitespace) {
        return Err("the name must not end with whitespace".to_owned());
    }
    Ok(())
}

/// True for line separators and the marks that reorder text: in a name they would show something else than is there.
const fn is_format_control(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// Checks the values of a typed manifest that did not come from [`parse`](super::parse), such as one that PATCH made.
///
/// # Errors
/// A refusal whose field is the key at fault, such as `model.temperature`.
pub fn validate(manifest: &Manifest) -> Result<(), Refusal> {
    model_choice("model", &manifest.model)?;
    for (index, choice) in manifest.fallback_models.iter().enumerate() {
        model_choice(&format!("fallback_models[{index}]"), choice)?;
    }
    let extraction = manifest.proactive_memory.extraction_model.as_deref().filter(|model| !model.is_empty());
    if let Some(Err(message)) = extraction.map(model_name) {
        let field = "proactive_memory.extraction_model";
        return Err(Refusal::bad_field(field, format!("`{field}`: {message}")));
    }
    Ok(())
}

/// Checks one model's values; `path` is where they stand.
fn model_choice(path: &str, choice: &ModelChoice) -> Result<(), Refusal> {
    let refuse = |key: &str, message: String| {
        let field = format!("{path}.{key}");
        Err(Refusal::bad_field(field.clone(), format!("`{field}`: {message}")))
    };
    if let Some(Err(message)) = choice.temperature.map(temperature) {
        return refuse("temperature", message);
    }
    if let Some(Err(message)) = choice.max_tokens.map(max_tokens) {
        return refuse("max_tokens", message);
    }
    if let Some(Err(message)) = choice.base_url.as_deref().map(base_url) {
        return refuse("base_url", message);
    }
    if let Some(Err(message)) = choice.api_key_env.as_deref().map(api_key_env) {
        return refuse("api_key_env", message);
    }
    Ok(())
}

/// Bytes of `provider/model`.
const MODEL_NAME_BYTES_MAX: usize = 512;

/// A model that is asked for a task of its own is named whole: `provider/model`.
///
/// # Errors
/// What is expected.
pub fn model_name(value: &str) -> Result<(), String> {
    let is_whole = value.split_once('/').is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty());
    if is_whole && value.len() <= MODEL_NAME_BYTES_MAX && !value.chars().any(char::is_control) {
        Ok(())
    } else {
        Err("must be provider/model, such as \"openai/gpt-4o-mini\"".to_owned())
    }
}

/// A sampling temperature lies in 0 to 2.
pub(super) fn temperature(value: f32) -> Result<(), String> {
    if (0.0..=2.0).contains(&value) { Ok(()) } else { Err(format!("expected a number from 0 to 2, found {value}")) }
}

/// An answer has at least one token.
pub(super) fn max_tokens(value: u32) -> Result<(), String> {
    if value > 0 { Ok(()) } else { Err("expected a whole number of at least 1, found 0".to_owned()) }
}

/// An endpoint is an http or https URL with a host.
pub(super) fn base_url(value: &str) -> Result<(), String> {
    let rest = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
    let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']));
    if has_host && !value.contains(|c: char| c.is_control() || c.is_whitespace()) {
        Ok(())
    } else {
        Err("expected an `http://` or `https://` URL".to_owned())
    }
}

/// The name of an environment variable: letters, digits and `_`, not starting with a digit.
pub(super) fn api_key_env(value: &str) -> Result<(), String> {
    let well_formed = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if well_formed && !value.is_empty() && !value.starts_with(|c: char| c.is_ascii_digit()) {
        Ok(())
    } else {
        Err("expected the name of an environment variable (letters, digits and `_`)".to_owned())
    }
}
