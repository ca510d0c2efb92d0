//! Names where the API has ids: what a person types becomes an id, and the ids of agents in an answer become names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use uuid::Uuid;

use super::Error;
use super::client::Client;
use super::output::{clean, field};
use super::suggest::meant;

/// Items of one request while a list is read.
const PAGE: usize = 1_000;
/// Pages that are read to find a name.
const PAGES_MAX: usize = 100;
/// Pages of agents that are read to show their names.
const AGENT_PAGES_MAX: usize = 10;
/// Characters of an id that stand for it, at least.
const SHORT_ID_MIN: usize = 4;
/// Ids that an error lists.
const IDS_SHOWN: usize = 10;
/// The keys under which items have their names. An instance of a hand has that of the hand.
const NAME_KEYS: [&str; 5] = ["name", "title", "label", "display_name", "hand_id"];
/// Keys of agents' ids beside those that end with `agent_id`.
const AGENT_KEYS: [&str; 2] = ["posted_by", "claimed_by"];
/// Keys of what agents and clients wrote themselves. It is shown as it is: what it says of agents is not the daemon's word.
const FREE_KEYS: [&str; 8] =
    ["payload", "input", "arguments", "output", "result", "answer_schema", "input_schema", "metadata"];

/// Where the items of one kind are listed.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// The route, such as `/api/schedules`.
    pub(super) path: String,
    /// What one of them is called, such as `schedule`.
    noun: String,
    /// The command that lists them, such as `schedule list`.
    command: String,
    /// The key of an item's id.
    id: &'static str,
    /// The list can be asked for one name.
    is_filtered: bool,
    /// The items have no names; the name of an agent stands for the only one of that agent.
    is_of_agents: bool,
    /// They are sessions, most of which have no name: the line with which one begins stands for it.
    are_sessions: bool,
}

impl Listed {
    /// The items at `path`, of which one is called `noun`.
    pub(crate) fn new(path: impl Into<String>, noun: impl Into<String>) -> Self {
        let noun = noun.into();
        let (command, are_sessions) = (format!("{noun} list"), noun == "session");
        Self { path: path.into(), noun, command, id: "id", is_filtered: false, is_of_agents: false, are_sessions }
    }

    /// The sessions of the agent with this id.
    pub(crate) fn sessions_of(agent: &str) -> Self {
        Self::new(format!("/api/agents/{agent}/sessions"), "session")
    }

    /// All agents.
    pub(crate) fn agents() -> Self {
        Self { is_filtered: true, ..Self::new("/api/agents", "agent") }
    }

    /// They are listed by this command.
    pub(crate) fn by(self, command: impl Into<String>) -> Self {
        Self { command: command.into(), ..self }
    }

    /// Their ids have this key.
    pub(crate) fn with_id(self, id: &'static str) -> Self {
        Self { id, ..self }
    }

    /// The name of an agent stands for the only one of that agent.
    pub(crate) fn of_agents(self) -> Self {
        Self { is_of_agents: true, ..self }
    }

    pub(super) fn id_of(&self, item: &Value) -> String {
        field(item, &format!("/{}", self.id))
    }

    /// What comes of the items that match.
    fn only(&self, typed: &str, mut ids: Vec<String>) -> Result<Option<String>, Error> {
        if ids.len() < 2 {
            return Ok(ids.pop());
        }
        let (count, noun) = (ids.len(), &self.noun);
        let more = if count > IDS_SHOWN { format!(" and {} more", count - IDS_SHOWN) } else { String::new() };
        ids.truncate(IDS_SHOWN);
        let (ids, typed) = (ids.join(", "), clean(typed));
        let text = if self.is_of_agents {
            format!("agent {typed} has {count} {noun}s; pass the id of one: {ids}{more}")
        } else {
            format!("{count} {noun}s match {typed}; pass the id of one: {ids}{more}")
        };
        Err(Error::Usage(text))
    }

    /// There is none of this name or id.
    fn missing(&self, typed: &str, known: &[String]) -> Error {
        let meant = meant(typed, known.iter().map(String::as_str));
        let next = meant.unwrap_or_else(|| format!("list them with `agentsvc {}`", self.command));
        Error::NotFound(format!("{} {} does not exist; {next}", self.noun, clean(typed)))
    }
}

impl Client {
    /// The id of the agent that is called `agent` or has this id.
    pub(crate) async fn agent_id(&self, agent: &str) -> Result<String, Error> {
        self.id_of(&Listed::agents(), agent).await
    }

    /// The id of the one item that is called `typed`, or whose id is this or begins with it. A UUID is an id without a question.
    ///
    /// # Errors
    /// There is none, or there are several of this name; those of reading the list.
    pub(crate) async fn id_of(&self, listed: &Listed, typed: &str) -> Result<String, Error> {
        if let Ok(id) = typed.parse::<Uuid>() {
            return Ok(id.to_string());
        }
        if listed.is_filtered {
            let (found, _) = self.page(&listed.path, &[("name", typed), ("limit", "2")]).await?;
            if let Some(found) = found.iter().find(|item| item["name"] == typed) {
                return Ok(listed.id_of(found));
            }
            let known = self.page(&listed.path, &[("limit", &PAGE.to_string())]).await?.0;
            let short = known.iter().map(|item| listed.id_of(item)).filter(|id| is_short_of(typed, id)).collect();
            let known: Vec<String> = known.iter().filter_map(name_of).collect();
            return listed.only(typed, short)?.ok_or_else(|| listed.missing(typed, &known));
        }
        let agent = match listed.is_of_agents {
            true => Box::pin(self.agent_id(typed)).await.ok(),
            false => None,
        };
        let (mut ids, mut short, mut known) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_id = false;
        let is_whole = self.walk(&listed.path, PAGES_MAX, |item| {
            let id = listed.id_of(item);
            if id == typed {
                is_id = true;
            } else if NAME_KEYS.iter().any(|key| item[key] == typed)
                || agent.is_some() && item["agent_id"].as_str() == agent.as_deref()
            {
                ids.push(id);
            } else if is_short_of(typed, &id) {
                short.push(id);
            }
            if known.len() < PAGE {
                known.extend(name_of(item));
            }
            !is_id
        });
        let is_whole = is_whole.await?;
        if is_id {
            return Ok(typed.to_owned());
        }
        for ids in [ids, short] {
            if let Some(id) = listed.only(typed, ids)? {
                return Ok(id);
            }
        }
        let titled = if listed.are_sessions { self.titled(listed, typed).await? } else { Vec::new() };
        match listed.only(typed, titled)? {
            Some(id) => Ok(id),
            None if is_whole => Err(listed.missing(typed, &known)),
            None => Err(Error::NotFound(format!(
                "no {} is named {} among the first {}; pass its id",
                listed.noun,
                clean(typed),
                PAGE * PAGES_MAX
            ))),
        }
    }

    /// The ids of several: all are known before anything happens to the first.
    ///
    /// # Errors
    /// As [`id_of`](Self::id_of), for any of them.
    pub(crate) async fn ids_of(&self, listed: &Listed, typed: &[String]) -> Result<Vec<String>, Error> {
        let mut ids = Vec::with_capacity(typed.len());
        for typed in typed {
            let id = self.id_of(listed, typed).await?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// What was asked for: as it is where it is printed as JSON, with the names of agents where people read it.
    pub(crate) async fn shown_answer(
        &self,
        is_json: bool,
        asked: impl Future<Output = Result<Value, Error>>,
    ) -> Result<Value, Error> {
        let mut answer = asked.await?;
        if !is_json {
            self.name_agents(&mut answer).await;
        }
        Ok(answer)
    }

    /// Puts the names of agents into an answer that is shown to people.
    pub(crate) async fn name_agents(&self, answer: &mut Value) {
        let mut ids = BTreeSet::new();
        walk_agents(answer, &mut |_, id| {
            ids.insert(id.to_owned());
        });
        let mut names = BTreeMap::new();
        if !ids.is_empty() {
            // One that may not read agents sees their ids.
            let _refused = self
                .walk("/api/agents", AGENT_PAGES_MAX, |agent| {
                    let id = field(agent, "/id");
                    if ids.remove(&id) {
                        names.insert(id, field(agent, "/name"));
                    }
                    !ids.is_empty()
                })
                .await;
        }
        put_names(answer, &names);
    }

    /// Gives each item of a list to `each` until that says no. True when nothing is left.
    async fn walk(&self, path: &str, pages: usize, mut each: impl FnMut(&Value) -> bool) -> Result<bool, Error> {
        let limit = PAGE.to_string();
        let mut cursor: Option<String> = None;
        for _ in 0..pages {
            let mut query = vec![("limit", limit.as_str())];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let (items, next) = self.page(path, &query).await?;
            if !items.iter().all(&mut each) || next.is_none() {
                return Ok(true);
            }
            cursor = next;
        }
        Ok(false)
    }
}

/// Does it stand for an id that begins so? Only UUIDs have short forms.
fn is_short_of(typed: &str, id: &str) -> bool {
    let is_short = typed.len() >= SHORT_ID_MIN && typed.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let beginning = id.get(..typed.len()).filter(|_| is_short);
    beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(typed)) && Uuid::try_parse(id).is_ok()
}

fn name_of(item: &Value) -> Option<String> {
    NAME_KEYS.iter().find_map(|key| item[key].as_str()).map(str::to_owned)
}

/// What may be typed for an item: its name, and an id that is a word.
pub(super) fn names_of(item: &Value) -> Vec<String> {
    let id = item["id"].as_str().filter(|id| Uuid::try_parse(id).is_err()).map(str::to_owned);
    let is_word = item.as_str().map(str::to_owned);
    id.into_iter().chain(name_of(item)).chain(is_word).collect()
}

/// True for the name of a parameter or key that has an agent's id.
pub(crate) fn is_agent(key: &str) -> bool {
    key == "agent_id" || key.ends_with("_agent_id")
}

/// Calls `each` with the key and the value of each agent's id in `value`.
fn walk_agents(value: &Value, each: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk_agents(item, each)),
        Value::Object(keys) => {
            for (key, value) in keys {
                match value {
                    Value::String(id)
                        if (is_agent(key) || AGENT_KEYS.contains(&key.as_str())) && !has_name(keys, key) =>
                    {
                        each(key, id);
                    }
                    _ if FREE_KEYS.contains(&key.as_str()) => {}
                    _ => walk_agents(value, each),
                }
            }
        }
        _ => {}
    }
}

/// Has an object the name of an agent beside its id?
fn has_name(keys: &Map<String, Value>, key: &str) -> bool {
    key.strip_suffix("_id").is_some_and(|agent| keys.get(&format!("{agent}_name")).is_some_and(Value::is_string))
}

/// Each `agent_id` becomes `agent`, with the name if that is known; one beside an `agent_name` gives way to it.
fn put_names(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| put_names(item, names)),
        Value::Object(keys) => {
            for (_, value) in keys.iter_mut().filter(|(key, _)| !FREE_KEYS.contains(&key.as_str())) {
                put_names(value, names);
            }
            // An id whose place is taken stays as it is.
            let is_free = |key: &&String| !keys.contains_key(key.trim_end_matches("_id"));
            let agents: Vec<String> = keys.keys().filter(|key| is_agent(key)).filter(is_free).cloned().collect();
            for key in agents {
                let short = key.trim_end_matches("_id").to_owned();
                let known = keys.remove(&format!("{short}_name")).filter(Value::is_string);
                let Some(id) = keys.remove(&key) else { continue };
                let name = known.unwrap_or_else(|| named(id, names));
                keys.insert(short, name);
            }
            for key in AGENT_KEYS {
                if let Some(id) = keys.get_mut(key) {
                    *id = named(id.take(), names);
                }
            }
        }
        _ => {}
    }
}

fn named(id: Value, names: &BTreeMap<String, String>) -> Value {
    id.as_str().and_then(|id| names.get(id)).map_or(id.clone(), |name| Value::String(name.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kernel::cli::Exit;

    #[test]
    fn ids_of_agents_become_names() {
        let names = BTreeMap::from([("1".to_owned(), "scout".to_owned())]);
        let mut list = json!({ "tasks": [
            { "id": "1", "agent_id": "1", "claimed_by": "1" },
            { "id": "2", "agent_id": "9", "target_agent_id": null },
            { "id": "3", "agent_id": "1", "agent_name": "as it was" },
            // What an agent wrote is shown as it is.
            { "id": "4", "payload": { "agent_id": "1", "agent_name": "harmless", "agent": "x" }, "agent": "y", "agent_id": "1" },
        ]});
        let mut asked = Vec::new();
        walk_agents(&list, &mut |key, id| asked.push(format!("{key} {id}")));
        assert_eq!(asked, ["agent_id 1", "claimed_by 1", "agent_id 9", "agent_id 1"]);
        put_names(&mut list, &names);
        let expected = json!({ "tasks": [
            { "id": "1", "agent": "scout", "claimed_by": "scout" },
            { "id": "2", "agent": "9", "target_agent": null },
            { "id": "3", "agent": "as it was" },
            { "id": "4", "payload": { "agent_id": "1", "agent_name": "harmless", "agent": "x" }, "agent": "y", "agent_id": "1" },
        ]});
        assert_eq!(list, expected);
    }

    #[test]
    fn several_of_one_name_are_listed() {
        let goals = Listed::new("/api/goals", "goal");
        assert_eq!(goals.only("a", vec!["1".to_owned()]).unwrap().as_deref(), Some("1"));
        let error = goals.only("a", (1..=12).map(|id: u8| id.to_string()).collect()).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        let text = "12 goals match a; pass the id of one: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more";
        assert_eq!(error.to_string(), text);
        let error = goals.clone().of_agents().only("a", vec!["1".to_owned(), "2".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "agent a has 2 goals; pass the id of one: 1, 2");
    }

    #[test]
    fn the_beginning_of_an_id_is_known() {
        let id = "01890a00-0000-7000-8000-000000000000";
        assert!(is_short_of("0189", id) && is_short_of("01890A00-", id) && is_short_of(id, id));
        assert!(!is_short_of("018", id) && !is_short_of("0190", id) && !is_short_of("0189", "0189-is-a-name"));
        let sessions = Listed::sessions_of("7");
        let error = sessions.only("0189", vec!["0189-a".to_owned(), "0189-b".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "2 sessions match 0189; pass the id of one: 0189-a, 0189-b");
    }

    #[test]
    fn what_is_missing_says_how_to_go_on() {
        let goals = Listed::new("/api/goals", "goal");
        let known = ["ship it".to_owned()];
        assert_eq!(goals.missing("ship ti", &known).to_string(), "goal ship ti does not exist; did you mean ship it?");
        let error = goals.missing("\u{1b}x", &known);
        assert_eq!(error.to_string(), "goal x does not exist; list them with `agentsvc goal list`");
        assert_eq!(error.exit(), Exit::NotFound);
    }
}
