//! Entries of `[[sidecar_channels]]` in the text of the file: added, changed and removed, everything else as it was.

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

const KEY: &str = "sidecar_channels";

/// What is to change of an entry.
#[derive(Clone, Debug, Default)]
pub(super) struct EntryChange {
    /// For a new entry: its program and its arguments.
    pub(super) program: Option<(String, Vec<String>)>,
    /// Values of its `env`; `None` removes one.
    pub(super) env: Vec<(String, Option<String>)>,
    /// The agent that answers; `Some(None)` removes it.
    pub(super) agent: Option<Option<String>>,
}

/// The text with the entry changed, or added if the change names a program.
///
/// # Errors
/// A sentence: why the text cannot be changed.
pub(super) fn changed(text: &str, name: &str, change: &EntryChange) -> Result<String, String> {
    let mut document = parsed(text)?;
    if find(&mut document, name).is_none() {
        let Some((command, args)) = &change.program else { return Err(format!("config.toml has no channel {name}")) };
        let mut table = Table::new();
        table.insert("name", Item::from(Value::from(name)));
        table.insert("command", Item::from(Value::from(command.as_str())));
        table.insert("args", Item::from(Value::from(args.iter().map(String::as_str).collect::<Array>())));
        let list = document.entry(KEY).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        match list {
            Item::ArrayOfTables(list) => list.push(table),
            Item::Table(all) => {
                table.remove("name");
                all.insert(name, Item::Table(table));
            }
            _ => return Err("`sidecar_channels` is written in a form that cannot be changed; edit the file".to_owned()),
        }
    }
    let entry = find(&mut document, name).ok_or("the entry cannot be written; edit the file")?;
    match &change.agent {
        Some(Some(agent)) => drop(entry.insert("agent", Item::from(Value::from(agent.as_str())))),
        Some(None) => drop(entry.remove("agent")),
        None => {}
    }
    if !change.env.is_empty() {
        if entry.get("env").is_none() {
            entry.insert("env", Item::from(Value::InlineTable(InlineTable::new())));
        }
        let env = entry.get_mut("env").and_then(Item::as_table_like_mut).ok_or("its `env` is not a table")?;
        for (key, value) in &change.env {
            match value {
                Some(value) => drop(env.insert(key, Item::from(Value::from(value.as_str())))),
                None => drop(env.remove(key)),
            }
        }
    }
    Ok(document.to_string())
}

/// The text without the entry.
///
/// # Errors
/// As [`changed`].
pub(super) fn removed(text: &str, name: &str) -> Result<String, String> {
    let mut document = parsed(text)?;
    match document.get_mut(KEY) {
        Some(Item::ArrayOfTables(list)) => list.retain(|table| !is_named(table, name)),
        Some(Item::Table(all)) => drop(all.remove(name)),
        _ => return Err("`sidecar_channels` is written in a form that cannot be changed; edit the file".to_owned()),
    }
    Ok(document.to_string())
}

fn parsed(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|_| "config.toml is not valid TOML".to_owned())
}

fn is_named(table: &Table, name: &str) -> bool {
    table.get("name").and_then(Item::as_str) == Some(name)
}

fn find<'d>(document: &'d mut DocumentMut, name: &str) -> Option<&'d mut dyn TableLike> {
    match document.get_mut(KEY)? {
        Item::ArrayOfTables(list) => {
            list.iter_mut().find(|table| is_named(table, name)).map(|table| table as &mut dyn TableLike)
        }
        Item::Table(all) => all.get_mut(name)?.as_table_like_mut(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_change_and_go_and_the_rest_stays() {
        let before = "# mine\nlog_level = \"info\"\n\n[[sidecar_channels]]\nname = \"a\" # first\ncommand = \"x\"\n";
        let program = Some(("python3".to_owned(), vec!["-m".to_owned(), "m".to_owned()]));
        let set = |key: &str, value: Option<&str>| vec![(key.to_owned(), value.map(str::to_owned))];
        let add = EntryChange { program, env: set("T", Some("v \"q\"")), agent: Some(Some("scout".to_owned())) };
        let added = changed(before, "b", &add).unwrap();
        assert!(added.starts_with(before), "{added}");
        let read: toml::Table = added.parse().unwrap();
        let entry = &read["sidecar_channels"][1];
        assert_eq!(entry["env"]["T"].as_str(), Some("v \"q\""));
        assert_eq!((entry["agent"].as_str(), entry["args"][1].as_str()), (Some("scout"), Some("m")));
        let change = EntryChange { env: set("T", None), agent: Some(None), ..EntryChange::default() };
        let read: toml::Table = changed(&added, "b", &change).unwrap().parse().unwrap();
        let entry = &read["sidecar_channels"][1];
        assert!(entry.get("agent").is_none() && entry["env"].as_table().unwrap().is_empty());
        assert_eq!(removed(&added, "b").unwrap().trim_end(), before.trim_end());
        assert!(changed(before, "c", &EntryChange::default()).unwrap_err().contains("no channel c"));
        let first: toml::Table = changed("", "b", &add).unwrap().parse().unwrap();
        assert_eq!(first["sidecar_channels"][0]["name"].as_str(), Some("b"));
    }
}
