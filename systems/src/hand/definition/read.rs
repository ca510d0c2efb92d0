//! From the text of a HAND.toml to a definition.

use std::fmt;

use agentsvc_components::Refusal;
use serde::Deserializer;
use serde::de::Visitor;
use toml::{Table, Value};

use super::{CATEGORIES, HandDefinition, Role, check_id};
use crate::hand::limits;
use crate::manifest;

/// Reads a HAND.toml: keys at top level, or all or some of them under `[hand]`.
///
/// # Errors
/// 400 that names the key: too long, not TOML, nested too deeply, an id or an agent that is missing, a value of another type, or
/// more of something than a hand may have.
pub fn parse(text: &str) -> Result<HandDefinition, Refusal> {
    let most = limits::HAND_TOML_BYTES_MAX;
    if text.len() > most {
        return Err(bad("toml_content", format!("HAND.toml is longer than {most} bytes")));
    }
    manifest::check_depth(text).map_err(|error| bad("toml_content", format!("HAND.toml is not valid: {error}")))?;
    let mut root: Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let why = error.message().replace('\n', ", ");
        bad("toml_content", format!("HAND.toml is not valid: line {line}: {why}"))
    })?;
    if let Some(Value::Table(inner)) = root.remove("hand") {
        root.extend(inner);
    }
    let roles = roles(&mut root)?;
    let mut hand: HandDefinition = serde_path_to_error::deserialize(Value::Table(root)).map_err(|error| {
        let path = error.path().to_string();
        let why = error.inner().message().replace('\n', ", ");
        bad(&path, format!("{path}: {why}"))
    })?;
    hand.roles = roles;
    finish(&mut hand)?;
    Ok(hand)
}

pub(super) fn bad(field: &str, text: String) -> Refusal {
    Refusal::bad_field(field, text)
}

/// Defaults, and what the types do not say.
fn finish(hand: &mut HandDefinition) -> Result<(), Refusal> {
    if hand.id.is_empty() {
        return Err(bad("id", "id: missing; this key is required".to_owned()));
    }
    check_id(&hand.id)?;
    if hand.name.is_empty() {
        hand.name.clone_from(&hand.id);
    }
    if hand.version.is_empty() {
        "0.0.0".clone_into(&mut hand.version);
    }
    hand.category.make_ascii_lowercase();
    if !CATEGORIES.contains(&&*hand.category) {
        "other".clone_into(&mut hand.category);
    }
    for (what, count) in [
        ("requires", hand.requires.len()),
        ("settings", hand.settings.len()),
        ("dashboard.metrics", hand.dashboard.metrics.len()),
        ("i18n", hand.i18n.len()),
        ("tools", hand.tools.len()),
    ] {
        let most = limits::HAND_ITEMS_MAX;
        if count > most {
            return Err(bad(what, format!("{what}: {count} items; the limit is {most}")));
        }
    }
    for (at, setting) in hand.settings.iter().enumerate() {
        named(&format!("settings[{at}].key"), &setting.key)?;
        let is_twice = hand.settings[..at].iter().any(|other| other.key == setting.key);
        if is_twice {
            return Err(bad(
                &format!("settings[{at}].key"),
                format!("settings[{at}].key: duplicate key {:?}", setting.key),
            ));
        }
        if let Some(name) = setting.env_var.as_deref() {
            variable(&format!("settings[{at}].env_var"), name)?;
        }
        for (option, own) in setting.options.iter().enumerate() {
            if let Some(name) = own.provider_env.as_deref() {
                variable(&format!("settings[{at}].options[{option}].provider_env"), name)?;
            }
        }
    }
    for (at, requirement) in hand.requires.iter_mut().enumerate() {
        if requirement.key.is_empty() {
            requirement.key.clone_from(&requirement.check_value);
        }
        named(&format!("requires[{at}].key"), &requirement.key)?;
        if requirement.label.is_empty() {
            requirement.label.clone_from(&requirement.key);
        }
    }
    for (at, metric) in hand.dashboard.metrics.iter_mut().enumerate() {
        named(&format!("dashboard.metrics[{at}].memory_key"), &metric.memory_key)?;
        if !["number", "duration", "bytes", "percentage", "text", "date"].contains(&&*metric.format) {
            "text".clone_into(&mut metric.format);
        }
    }
    Ok(())
}

fn named(field: &str, text: &str) -> Result<(), Refusal> {
    match text.len() {
        0 => Err(bad(field, format!("{field}: missing; this key is required"))),
        1..=limits::HAND_KEY_BYTES_MAX => Ok(()),
        _ => Err(bad(field, format!("{field}: longer than {} bytes", limits::HAND_KEY_BYTES_MAX))),
    }
}

/// Variables that say how programs run, and those of the daemon.
const RESERVED: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "TERM",
    "SHELL",
    "IFS",
    "ENV",
    "BASH_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONEXECUTABLE",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYOPT",
    "RUBYLIB",
];

/// Beginnings of such names.
const RESERVED_PREFIXES: &[&str] = &["LD_", "DYLD_", "AGENTSVC_", "GIT_", "BASH_FUNC"];

/// Is this the name of a variable that a hand may hand on to commands? Empty names none.
fn variable(field: &str, name: &str) -> Result<(), Refusal> {
    let well_formed = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.len() <= limits::HAND_KEY_BYTES_MAX;
    if !well_formed {
        return Err(bad(field, format!("{field}: must be the name of an environment variable")));
    }
    if RESERVED.contains(&name) || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(bad(field, format!("{field}: a hand must not set {name}")));
    }
    Ok(())
}

/// Takes the agents out of the tree: `[agents.<role>]`, or `[agent]`.
fn roles(root: &mut Table) -> Result<Vec<Role>, Refusal> {
    let mut roles = Vec::new();
    match root.remove("agents") {
        Some(Value::Table(agents)) => {
            for (name, own) in agents {
                roles.push(role(&format!("agents.{name}"), &name, own)?);
            }
        }
        Some(_) => return Err(bad("agents", "agents: must be a table of tables".to_owned())),
        None => {}
    }
    if let Some(own) = root.remove("agent").filter(|_| roles.is_empty()) {
        roles.push(role("agent", "main", own)?);
    }
    let most = limits::HAND_AGENTS_MAX;
    match roles.len() {
        0 => Err(bad("agents", "agents: missing; a hand needs [agent] or [agents.<role>]".to_owned())),
        count if count > most => Err(bad("agents", format!("agents: {count} agents; the limit is {most}"))),
        _ => Ok(roles),
    }
}

fn role(field: &str, name: &str, own: Value) -> Result<Role, Refusal> {
    let well_formed = name.chars().all(|character| character.is_ascii_alphanumeric() || "-_.".contains(character));
    if name.is_empty() || name.len() > limits::HAND_KEY_BYTES_MAX || !well_formed || name.starts_with('.') {
        return Err(bad(field, format!("{field}: the role must be letters, digits, `-`, `_` and `.`")));
    }
    let Value::Table(mut table) = own else { return Err(bad(field, format!("{field}: must be a table"))) };
    let mistyped = |key: &str, what: &str| {
        let path = format!("{field}.{key}");
        bad(&path, format!("{path}: must be {what}"))
    };
    let mut text = |key: &str| match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(mistyped(key, "a string")),
    };
    let (invoke_hint, base) = (text("invoke_hint")?, text("base")?);
    let coordinator = match table.remove("coordinator") {
        None => false,
        Some(Value::Boolean(flag)) => flag,
        Some(_) => return Err(mistyped("coordinator", "true or false")),
    };
    let base = base.filter(|base| !base.is_empty());
    Ok(Role { name: name.to_owned(), table, coordinator, invoke_hint: invoke_hint.unwrap_or_default(), base })
}

/// A text, or a number or a flag as its text.
pub(super) fn scalar<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    struct Scalar;

    impl Visitor<'_> for Scalar {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string, a number, true or false")
        }

        fn visit_str<E>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_bool<E>(self, flag: bool) -> Result<String, E> {
            Ok(flag.to_string())
        }

        fn visit_i64<E>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_f64<E>(self, number: f64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }

    from.deserialize_any(Scalar)
}
