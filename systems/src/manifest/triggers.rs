//! `[[triggers]]`: what makes the agent act by itself, with the fields of `POST /api/triggers` (spec 1, Trigger).

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::ManifestTrigger;
use serde_json::{Number, Value as Json};
use toml::de::DeValue;
use toml_edit::{Array, ArrayOfTables, InlineTable, Item, Table as EditTable, Value as EditValue};

use super::error::Error;
use super::read::{Path, Table, Value, mismatch, session_mode, wrong};
use crate::event::{parse_pattern, render_pattern};

/// The largest `max_fires`: what a JSON number keeps exactly.
const FIRES_MOST: u64 = 1 << 53;

/// Reads every one of them.
pub(super) fn read(root: &Table<'_>) -> Result<Vec<ManifestTrigger>, Error> {
    let triggers = root.items("triggers", |path, item| match item.get_ref() {
        DeValue::Table(entries) => trigger(&Table { text: root.text, path, entries }),
        _ => Err(mismatch(root.text, path, item, "a table")),
    })?;
    let most = limit::MANIFEST_TRIGGERS_MAX;
    if triggers.len() > most {
        return Err(root.wrong("triggers", format!("{} triggers; the limit is {most}", triggers.len())));
    }
    Ok(triggers)
}

fn trigger(table: &Table<'_>) -> Result<ManifestTrigger, Error> {
    let template = table.string("prompt_template")?;
    let Some(template) = template else { return Err(table.wrong("prompt_template", "missing; this key is required")) };
    let most = limit::PROMPT_TEMPLATE_BYTES_MAX;
    if template.trim().is_empty() || template.len() > most {
        return Err(table.wrong("prompt_template", format!("expected 1 to {most} bytes of text")));
    }
    let target = table.string("target_agent_id")?.filter(|id| !id.is_empty());
    let target = target.map(|id| id.parse().map_err(|_| table.wrong("target_agent_id", "expected a UUID")));
    Ok(ManifestTrigger {
        pattern: pattern(table)?,
        prompt_template: template.into(),
        enabled: table.boolean("enabled")?.unwrap_or(true),
        max_fires: table.whole_number_to("max_fires", FIRES_MOST)?.unwrap_or(0),
        cooldown_secs: table.whole_number("cooldown_secs")?,
        session_mode: session_mode(table)?,
        target_agent_id: target.transpose()?,
    })
}

/// `pattern`: a table with one key, or the kind alone as a string.
fn pattern(table: &Table<'_>) -> Result<Box<str>, Error> {
    let Some(value) = table.entries.get("pattern") else {
        return Err(table.wrong(
            "pattern",
            "missing; this key is \
        required",
        ));
    };
    let path = Path::Key(table.path, "pattern");
    let json = match value.get_ref() {
        DeValue::String(kind) => Json::String(kind.to_string()),
        DeValue::Table(_) => json_of(value),
        _ => return Err(mismatch(table.text, &path, value, "a table with one key")),
    };
    match parse_pattern(&json) {
        Ok(pattern) => Ok(render_pattern(&pattern).to_string().into()),
        Err(refusal) => {
            let why = refusal.message.trim_start_matches("pattern: ").to_owned();
            Err(wrong(table.text, &path, value, why))
        }
    }
}

/// A value of the text as JSON; what JSON does not have becomes a text, which no pattern takes.
fn json_of(value: &Value<'_>) -> Json {
    match value.get_ref() {
        DeValue::String(text) => Json::String(text.to_string()),
        DeValue::Boolean(flag) => Json::Bool(*flag),
        DeValue::Array(items) => Json::Array(items.iter().map(json_of).collect()),
        DeValue::Table(entries) => {
            Json::Object(entries.iter().map(|(key, value)| (key.get_ref().to_string(), json_of(value))).collect())
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => Json::Number(Number::from(0)),
    }
}

/// Writes the triggers anew when they differ from what the text says.
pub(super) fn merge(root: &mut EditTable, was: &[ManifestTrigger], now: &[ManifestTrigger]) {
    if was == now {
        return;
    }
    root.remove("triggers");
    if now.is_empty() {
        return;
    }
    let mut tables = ArrayOfTables::new();
    for trigger in now {
        let mut table = EditTable::new();
        let mut set = |key: &str, value: EditValue| {
            table.insert(key, Item::Value(value));
        };
        // A pattern is the text of a JSON object.
        set("pattern", serde_json::from_str::<Json>(&trigger.pattern).map_or_else(|_| "all".into(), |p| toml_of(&p)));
        set("prompt_template", (&*trigger.prompt_template).into());
        if !trigger.enabled {
            set("enabled", false.into());
        }
        if trigger.max_fires > 0 {
            set("max_fires", i64::try_from(trigger.max_fires).unwrap_or(i64::MAX).into());
        }
        if let Some(secs) = trigger.cooldown_secs {
            set("cooldown_secs", i64::from(secs).into());
        }
        if let Some(mode) = trigger.session_mode {
            set("session_mode", super::render::word_of(mode).into());
        }
        if let Some(target) = trigger.target_agent_id {
            set("target_agent_id", target.to_string().into());
        }
        tables.push(table);
    }
    root.insert("triggers", Item::ArrayOfTables(tables));
}

/// JSON as a value of the text.
fn toml_of(json: &Json) -> EditValue {
    match json {
        Json::Object(entries) => {
            let mut table = InlineTable::new();
            entries.iter().for_each(|(key, value)| {
                table.insert(key, toml_of(value));
            });
            EditValue::InlineTable(table)
        }
        Json::Array(items) => EditValue::Array(items.iter().map(toml_of).collect::<Array>()),
        Json::String(text) => text.as_str().into(),
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => number.as_i64().unwrap_or(0).into(),
        Json::Null => "".into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use agentsvc_components::AgentId;
    use agentsvc_components::manifest::SessionMode;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::super::{parse, render};
    use super::ManifestTrigger;

    fn named(extra: &str) -> String {
        format!("name = \"x\"\n{extra}")
    }

    const TWO: &str = "[[triggers]]\npattern = { agent_spawned = { name_pattern = \"web-*\" } }\n\
        prompt_template = \"New: {{event}}\"\nmax_fires = 3\ncooldown_secs = 0\nsession_mode = \"new\"\n\
        [[triggers]]\npattern = \"lifecycle\"\nprompt_template = \"x\"\nenabled = false\n\
        target_agent_id = \"018f0000-0000-7000-8000-000000000001\"\n";

    #[test]
    fn triggers_are_read() {
        let triggers = parse(&named(TWO)).unwrap().manifest.triggers;
        assert_eq!(&*triggers[0].pattern, r#"{"agent_spawned":{"name_pattern":"web-*"}}"#);
        assert_eq!((triggers[0].max_fires, triggers[0].cooldown_secs, triggers[0].enabled), (3, Some(0), true));
        assert_eq!((&*triggers[1].pattern, triggers[1].enabled), (r#"{"lifecycle":{}}"#, false));
        assert!(triggers[0].session_mode.is_some() && triggers[1].target_agent_id.is_some());
    }

    #[test]
    fn errors_name_line_and_key() {
        let base = "[[triggers]]\nprompt_template = \"x\"\n";
        for (extra, expected) in [
            ("triggers = 1".to_owned(), "line 2: `triggers`: expected a list, found a whole number"),
            ("triggers = ['a']".to_owned(), "line 2: `triggers[0]`: expected a table, found a string"),
            ("[[triggers]]".to_owned(), "`triggers[0].prompt_template`: missing; this key is required"),
            (base.to_owned(), "`triggers[0].pattern`: missing; this key is required"),
            (format!("{base}pattern = 7"), "line 4: `triggers[0].pattern`: expected a table with one key"),
            (format!("{base}pattern = 'never'"), "line 4: `triggers[0].pattern`: `never` is not an event kind"),
            (format!("{base}pattern = {{agent_spawned = {{name_pattern = '[a'}}}}"), "unclosed `[`"),
            (format!("{base}pattern = {{all = {{x = 1979-05-27}}}}"), "`all` has no key `x`"),
            (format!("{base}pattern = 'all'\ncooldown_secs = -1"), "line 5: `triggers[0].cooldown_secs`: expected"),
            (format!("{base}pattern = 'all'\nsession_mode = 'old'"), "line 5: `triggers[0].session_mode`: expected"),
            (
                format!("{base}pattern = 'all'\ntarget_agent_id = 'bob'"),
                "`triggers[0].target_agent_id`: expected a UUID",
            ),
            (
                "[[triggers]]\npattern = 'all'\nprompt_template = ' '".to_owned(),
                "line 4: `triggers[0].prompt_template`",
            ),
            ("[[triggers]]\npattern = 'all'\nprompt_template = 'x'\n".repeat(101), "101 triggers; the limit is 100"),
        ] {
            let error = parse(&named(&extra)).unwrap_err().to_string();
            assert!(error.contains(expected), "{extra}: {error}");
        }
    }

    #[test]
    fn triggers_are_written_where_the_text_does_not_say_them() {
        let with = parse(&named(TWO)).unwrap().manifest;
        let mut without = with.clone();
        without.triggers.clear();
        let written = render("not TOML at all", "x", &with);
        assert_eq!(parse(&written).unwrap().manifest, with);
        assert_eq!(render(&written, "x", &with), written);
        let taken = render(&written, "x", &without);
        assert_eq!(parse(&taken).unwrap().manifest, without);
    }

    /// Triggers as a manifest may have them.
    pub(in super::super) fn any_trigger() -> impl Strategy<Value = ManifestTrigger> {
        let patterns =
            [r#"{"all":{}}"#, r#"{"agent_spawned":{"name_pattern":"a\"*"}}"#, r#"{"custom":{"event_type":"x"}}"#];
        let pattern = prop::sample::select(patterns.to_vec());
        let mode = prop::option::of(Just(SessionMode::New));
        (pattern, any::<bool>(), 0..1_u64 << 53, any::<Option<u32>>(), mode, any::<Option<u128>>()).prop_map(
            |(pattern, enabled, max_fires, cooldown_secs, session_mode, target)| ManifestTrigger {
                pattern: pattern.into(),
                prompt_template: "Look \"at\" {{event}}\n".into(),
                enabled,
                max_fires,
                cooldown_secs,
                session_mode,
                target_agent_id: target.map(|id| AgentId(Uuid::from_u128(id))),
            },
        )
    }
}
