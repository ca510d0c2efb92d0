//! The parameters in the path of a route, and what a person may type for them.

use clap::Arg;

/// Lists of things that parts of other paths name.
const ELSEWHERE: [(&str, &str); 2] = [("users", "/api/users"), ("sessions", "/api/sessions")];

/// What the items of a resource are named by where the API has their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Their own names, titles or labels.
    Own,
    /// The names of their agents.
    Agents,
    /// Nothing.
    None,
}

/// A parameter of a path.
pub(super) struct Place {
    /// Its name in the pattern.
    pub(super) name: String,
    /// What it names.
    pub(super) means: Means,
}

/// What a parameter of a path names.
pub(super) enum Means {
    /// An agent.
    Agent,
    /// One item of a list.
    Item {
        /// What one is called.
        noun: String,
        /// The subcommand that lists them; `None`: they are listed `elsewhere`.
        list: Option<String>,
        /// The list, if it is not the path before the parameter.
        elsewhere: Option<&'static str>,
        /// It has a name of its own; without one, it goes by its id and the beginning of that.
        is_named: bool,
    },
    /// It is used as it is typed.
    Text {
        /// The subcommand that lists what it may be, if there is one.
        list: Option<String>,
    },
}

/// The parameters of a path, in order. `list_at` names the subcommand that lists what is at a path, if there is one.
pub(super) fn places(path: &str, names: Names, list_at: impl Fn(&str) -> Option<String>) -> Vec<Place> {
    let segments: Vec<&str> = path.split('/').collect();
    let place = |at: usize| {
        let name = segments[at].strip_prefix('{')?.strip_suffix('}')?.trim_start_matches('*');
        let before = segments[at - 1];
        let list = list_at(&segments[..at].join("/"));
        let elsewhere = ELSEWHERE.iter().find(|(segment, _)| *segment == before).map(|(_, path)| *path);
        let elsewhere = elsewhere.filter(|_| list.is_none());
        let is_item = (name == "id" || name.ends_with("_id")) && (list.is_some() || elsewhere.is_some());
        let means = if before == "agents" {
            Means::Agent
        } else if is_item {
            Means::Item { noun: one_of(before), list, elsewhere, is_named: names != Names::None }
        } else {
            Means::Text { list }
        };
        Some(Place { name: name.to_owned(), means })
    };
    (1..segments.len()).filter_map(place).collect()
}

/// A path without the names of its parameters.
pub(super) fn shape(path: &str) -> String {
    let bare = |segment: &str| if segment.starts_with('{') { "{}".to_owned() } else { segment.to_owned() };
    path.split('/').map(bare).collect::<Vec<_>>().join("/")
}

/// `schedules` as a word for one of them: `schedule`.
pub(super) fn one_of(segment: &str) -> String {
    segment.strip_suffix('s').unwrap_or(segment).replace(['_', '-'], " ")
}

impl Place {
    /// The argument for it.
    pub(super) fn argument(&self) -> Arg {
        let arg = Arg::new(self.name.clone()).required(true);
        match &self.means {
            Means::Agent => arg.value_name("AGENT").help("Its name or id"),
            Means::Item { noun, is_named, .. } => {
                let help = if *is_named { "Its name or id" } else { "Its id, or the beginning of it" };
                arg.value_name(noun.to_uppercase().replace(' ', "_")).help(help)
            }
            Means::Text { .. } if self.name == "id" => arg.value_name("ID").help("Its id"),
            Means::Text { .. } => arg.value_name(self.name.to_uppercase()).help(format!("Its {}", self.name)),
        }
    }

    /// The command that lists what it names.
    pub(super) fn listed_by(&self, command: &str) -> Option<String> {
        match &self.means {
            Means::Agent => Some("agent list".to_owned()),
            Means::Item { list: Some(list), .. } | Means::Text { list: Some(list) } => {
                Some(format!("{command} {list}"))
            }
            Means::Item { noun, .. } => Some(format!("{noun} list")),
            Means::Text { list: None } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_has_is_named() {
        let list_at = |path: &str| (path == "/api/workflows").then(|| "list".to_owned());
        let of = |path: &str, names| {
            places(path, names, list_at).into_iter().map(|place| (place.name, place.means)).collect::<Vec<_>>()
        };
        let run = of("/api/workflows/{id}/run", Names::Own);
        assert!(matches!(run[..], [(_, Means::Item { list: Some(_), elsewhere: None, .. })]));
        assert!(matches!(of("/api/workflows/{id}", Names::None)[..], [(_, Means::Item { is_named: false, .. })]));
        assert!(matches!(of("/api/workflows/{name}", Names::Own)[..], [(_, Means::Text { list: Some(_) })]));
        assert!(matches!(of("/api/workflows/runs/{id}", Names::Own)[..], [(_, Means::Text { list: None })]));
        assert!(matches!(of("/api/budget/agents/{id}", Names::None)[..], [(_, Means::Agent)]));
        let two = of("/api/agents/{id}/sessions/{session_id}/switch", Names::Own);
        assert!(matches!(two[..], [(_, Means::Agent), (_, Means::Item { elsewhere: Some("/api/sessions"), .. })]));
    }
}
