//! What was probably meant by a word that names nothing.

use std::pin::Pin;

use agentsvc_api::http::operations::Operation;
use agentsvc_api::http::route::Verb;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use uuid::Uuid;

use super::client::Client;
use super::names::names_of;
use super::output::clean;
use super::resource::Routes;
use crate::kernel::config::nearest;

/// Characters of a word that is looked for within others.
const PART_MIN: usize = 3;
/// Words that contain the typed one and are named.
const WORDS_MAX: usize = 3;

/// `did you mean scout?`, if one of the `known` words is near `typed`, or some contain it.
pub(crate) fn meant<'k>(typed: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let known: Vec<&str> = known.into_iter().filter(|known| *known != typed).collect();
    let near = nearest(typed, known.iter().copied()).map(str::to_owned);
    let words = match near {
        Some(near) => near,
        None => containing(typed, &known)?,
    };
    Some(format!("did you mean {}?", clean(&words)))
}

/// Some words that contain the typed one, as an enumeration.
fn containing(typed: &str, known: &[&str]) -> Option<String> {
    let typed = typed.to_lowercase();
    if typed.chars().count() < PART_MIN {
        return None;
    }
    let mut found: Vec<&str> = known.iter().copied().filter(|known| known.to_lowercase().contains(&typed)).collect();
    found.dedup();
    found.truncate(WORDS_MAX);
    let last = found.pop()?;
    Some(if found.is_empty() { last.to_owned() } else { format!("{} or {last}", found.join(", ")) })
}

/// The list in which the last name of a path should be, and that name. A name in a body is one of the list that the path is under.
fn place_of(routes: Routes, verb: &str, path: &str, body: Option<&Value>) -> Option<(String, String)> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let segments: Vec<&str> = path.split('/').collect();
    let all = routes(&segments.get(..3)?.join("/"));
    let is_list = |path: &str| all.iter().any(|operation| operation.verb == Verb::Get && operation.path == path);
    let fitting = all.iter().filter(|operation| operation.verb.as_str() == verb && fits(operation, &segments));
    let pattern: Vec<&str> =
        fitting.min_by_key(|operation| operation.path.matches('{').count())?.path.split('/').collect();
    let named = (0..pattern.len()).rev().filter(|at| pattern[*at].starts_with('{')).find_map(|at| {
        let typed = percent_decode_str(segments[at]).decode_utf8_lossy().into_owned();
        let is_name = typed.parse::<Uuid>().is_err() && is_list(&pattern[..at].join("/"));
        is_name.then(|| (segments[..at].join("/"), typed))
    });
    named.or_else(|| {
        let name = body?["name"].as_str()?;
        let list = segments[..segments.len() - 1].join("/");
        is_list(&list).then(|| (list, name.to_owned()))
    })
}

/// Is this the route of a path?
fn fits(operation: &Operation, segments: &[&str]) -> bool {
    let pattern: Vec<&str> = operation.path.split('/').collect();
    let is_same = |(pattern, segment): (&&str, &&str)| pattern.starts_with('{') || pattern == segment;
    pattern.len() == segments.len() && pattern.iter().zip(segments).all(is_same)
}

impl Client {
    /// What the daemon says of something that does not exist, with what was probably meant.
    pub(super) fn with_meant<'a>(
        &'a self,
        verb: &str,
        path: &str,
        body: Option<&Value>,
        message: String,
    ) -> Pin<Box<dyn Future<Output = String> + Send + 'a>> {
        let is_said = message.contains("did you mean");
        let place = self.routes().filter(|_| !is_said).and_then(|routes| place_of(routes, verb, path, body));
        Box::pin(async move {
            let Some((list, typed)) = place else { return message };
            // What cannot be listed is no reason for another error.
            let Ok(answer) = self.get(&list, &[]).await else { return message };
            let names = names_in(&answer);
            match meant(&typed, names.iter().map(String::as_str)) {
                Some(meant) => format!("{}; {meant}", message.trim_end_matches('.')),
                None => message,
            }
        })
    }
}

/// The names of the items in the lists of an answer.
fn names_in(answer: &Value) -> Vec<String> {
    let lists: Vec<&Vec<Value>> = match answer {
        Value::Array(list) => vec![list],
        Value::Object(keys) => keys.values().filter_map(Value::as_array).collect(),
        _ => Vec::new(),
    };
    lists.into_iter().flatten().flat_map(names_of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::daemon::cli::routes;

    #[test]
    fn a_near_word_or_one_that_contains_it_is_meant() {
        let tools = ["file_read", "file_write", "shell_exec", "memory_store"];
        assert_eq!(meant("fil_read", tools).as_deref(), Some("did you mean file_read?"));
        assert_eq!(meant("exec", tools).as_deref(), Some("did you mean shell_exec?"));
        assert_eq!(meant("FILE", tools).as_deref(), Some("did you mean file_read or file_write?"));
        assert_eq!((meant("xy", tools), meant("weather", tools), meant("a", [])), (None, None, None));
        assert_eq!(meant("file_read", ["file_read"]), None, "it is that one already");
    }

    #[test]
    fn a_name_is_looked_for_where_its_kind_is_listed() {
        let place = |verb: &str, path: &str| place_of(routes, verb, path, None);
        let of = |list: &str, typed: &str| Some((list.to_owned(), typed.to_owned()));
        assert_eq!(place("GET", "/api/tools/fil%20read?x=1"), of("/api/tools", "fil read"));
        assert_eq!(place("POST", "/api/providers/opnai/test"), of("/api/providers", "opnai"));
        assert_eq!(place("DELETE", "/api/templates/codr"), of("/api/templates", "codr"));
        assert_eq!(place("GET", "/api/goals/01890000-0000-7000-8000-000000000000"), None, "ids are no names");
        assert_eq!((place("GET", "/api/tools"), place("GET", "/nowhere"), place("GET", "")), (None, None, None));
        let body = json!({ "name": "gi" });
        assert_eq!(place_of(routes, "POST", "/api/skills/uninstall", Some(&body)), of("/api/skills", "gi"));
    }

    #[test]
    fn names_are_those_of_all_lists() {
        let answer = json!({ "failed": [], "skills": [{ "name": "git" }], "models": [{ "id": "gpt" }], "total": 2 });
        assert_eq!(names_in(&answer), ["gpt", "git"]);
        assert_eq!(names_in(&json!([{ "id": "01890000-0000-7000-8000-000000000000" }])), [""; 0]);
    }
}
