//! Subcommands made from routes: `agentsvc goal list` is `GET /api/goals`, with an option for each parameter of its query and
//! each key of its body. A domain names the paths and the columns of its lists ([`Resource`]); the rest is in the routes.

use agentsvc_api::http::operations::{Input, Operation, Takes};
use agentsvc_api::http::route::Verb;
use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use reqwest::Method;
use serde_json::{Map, Value};

use super::client::{Body, Client};
use super::{Context, Error, show};
use crate::kernel::percent::encoded;

/// The option that reads a body from a file.
const FROM: &str = "from";

/// Gives the routes at and under a path.
pub(crate) type Routes = fn(&str) -> Vec<Operation>;

/// What of the API becomes subcommands of one noun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    /// Their path, such as `/api/goals`, with everything under it.
    pub(crate) path: &'static str,
    /// Paths under it that are left out.
    pub(crate) without: &'static [&'static str],
    /// Headings and JSON pointers of a list's columns; empty: the first keys of its items.
    pub(crate) columns: &'static [(&'static str, &'static str)],
    /// The path that `list` reads, where it is not the resource's own.
    list: Option<&'static str>,
}

impl Resource {
    /// Everything at and under `path`.
    pub(crate) const fn at(path: &'static str) -> Self {
        Self { path, without: &[], columns: &[], list: None }
    }

    /// Leaves paths out.
    pub(crate) const fn without(mut self, paths: &'static [&'static str]) -> Self {
        self.without = paths;
        self
    }

    /// Makes `list` another name of `GET` at this path.
    pub(crate) const fn listed_at(mut self, path: &'static str) -> Self {
        self.list = Some(path);
        self
    }

    /// Shows lists with these headings and JSON pointers.
    pub(crate) const fn columns(mut self, columns: &'static [(&'static str, &'static str)]) -> Self {
        self.columns = columns;
        self
    }
}

/// One subcommand: what is called, and how it was named.
struct Deed {
    name: String,
    operation: Operation,
    resource: Resource,
    /// The parameters of its path, in order.
    places: Vec<Place>,
}

/// A parameter of a path.
struct Place {
    /// Its name in the pattern.
    name: String,
    /// It is an agent, which may be named instead.
    is_agent: bool,
}

/// The subcommands of these resources that a command does not have already.
pub(super) fn added(command: Command, routes: Routes, resources: &[Resource]) -> Command {
    let missing = deeds(routes, resources).into_iter().filter(|deed| command.find_subcommand(&deed.name).is_none());
    let missing: Vec<Command> = missing.map(|deed| deed.command(&command)).collect();
    command.subcommands(missing)
}

/// Calls the route of the subcommand `name`.
///
/// # Errors
/// Those of reading a body, of the daemon, and of writing the answer.
pub(super) fn run(name: &str, typed: &ArgMatches, context: &Context, resources: &[Resource]) -> Result<(), Error> {
    let deed = deeds(context.routes(), resources).into_iter().find(|deed| deed.name == name);
    deed.ok_or_else(|| Error::Usage(format!("unknown subcommand {name}")))?.run(typed, context)
}

fn deeds(routes: Routes, resources: &[Resource]) -> Vec<Deed> {
    let mut all: Vec<Deed> = Vec::new();
    for resource in resources {
        let operations: Vec<Operation> =
            routes(resource.path).into_iter().filter(|operation| !resource.without.contains(&operation.path)).collect();
        for operation in &operations {
            let name = name_of(operation, resource.path, &operations);
            all.push(Deed { name, places: places(operation.path), operation: operation.clone(), resource: *resource });
        }
    }
    all
}

/// What a route is called below its noun, such as `list`, `show` or `deliveries`.
fn name_of(operation: &Operation, prefix: &str, others: &[Operation]) -> String {
    let rest = operation.path.strip_prefix(prefix).unwrap_or_default();
    let segments: Vec<&str> = rest.split('/').filter(|segment| !segment.is_empty()).collect();
    let words: Vec<&str> = segments.iter().copied().filter(|segment| !segment.starts_with('{')).collect();
    let is_one = segments.last().is_some_and(|last| last.starts_with('{'));
    let shares = others.iter().filter(|other| other.path == operation.path).count() > 1;
    let has_ones = others.iter().any(|other| other.path.starts_with(&format!("{}/{{", operation.path)));
    let deed = match operation.verb {
        Verb::Get if is_one => "show",
        Verb::Get if words.is_empty() => {
            if has_ones {
                "list"
            } else {
                "show"
            }
        }
        Verb::Get => "",
        Verb::Post if words.is_empty() || shares => "create",
        Verb::Post => "",
        Verb::Put | Verb::Patch if is_one || words.is_empty() => "update",
        Verb::Put | Verb::Patch if shares => "set",
        Verb::Put | Verb::Patch => "",
        Verb::Delete => "delete",
    };
    words.into_iter().chain((!deed.is_empty()).then_some(deed)).collect::<Vec<_>>().join("-").replace('_', "-")
}

fn places(path: &str) -> Vec<Place> {
    let segments: Vec<&str> = path.split('/').collect();
    let place = |pair: &[&str]| {
        let [before, segment] = pair else { return None };
        let name = segment.strip_prefix('{')?.strip_suffix('}')?.trim_start_matches('*');
        Some(Place { name: name.to_owned(), is_agent: *before == "agents" })
    };
    segments.windows(2).filter_map(place).collect()
}

/// `next_run` as an option: `next-run`. An agent is named without the word `id`.
fn option_of(name: &str) -> String {
    let name = if name == "agent_id" { "agent" } else { name };
    name.replace('_', "-")
}

impl Deed {
    /// What the parser is told of it; `beside` has those that are there already.
    fn command(&self, beside: &Command) -> Command {
        let mut command = Command::new(self.name.clone()).about(self.operation.summary);
        let is_list = self.operation.verb == Verb::Get && self.resource.list == Some(self.operation.path);
        let aliases: &[&'static str] = match self.name.as_str() {
            _ if is_list => &["list", "ls"],
            "list" => &["ls"],
            "show" => &["get"],
            "create" => &["new"],
            "update" => &["edit"],
            "delete" => &["rm"],
            _ => &[],
        };
        let is_free = |alias: &&&str| beside.find_subcommand(alias).is_none();
        command = command.visible_aliases(aliases.iter().filter(is_free).copied());
        for place in &self.places {
            let (value, about) = if place.is_agent { ("AGENT", "Its name or id") } else { ("ID", "Its id") };
            let value = if place.name == "id" || place.is_agent { value.to_owned() } else { place.name.to_uppercase() };
            let about = if value == "ID" || place.is_agent { about.to_owned() } else { format!("Its {}", place.name) };
            command = command.arg(Arg::new(place.name.clone()).required(true).value_name(value).help(about));
        }
        for input in self.operation.query.iter().chain(self.operation.body.iter().flatten()) {
            let id = option_of(&input.name);
            if command.get_arguments().all(|arg| arg.get_id() != &id) {
                command = command.arg(argument(id, input));
            }
        }
        if self.operation.body.is_some() {
            let from = Arg::new(FROM).long(FROM).value_name("FILE");
            command = command.arg(from.help("Read the JSON body from a file, or from standard input with -"));
        }
        command
    }

    fn run(&self, typed: &ArgMatches, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let body = self.operation.body.as_ref().map(|inputs| self.body(inputs, typed)).transpose()?;
        let answer = context.block_on(async {
            let path = self.path(typed, &client).await?;
            let mut query = Vec::new();
            for input in &self.operation.query {
                if let Some(value) = given(input, typed)? {
                    let value = named(&input.name, value, &client).await?;
                    query.push((input.name.as_str(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
                }
            }
            let mut body = body;
            if let Some(agent) = body.as_mut().and_then(|body| body.get_mut("agent_id")) {
                *agent = named("agent_id", agent.take(), &client).await?;
            }
            let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let method = Method::from_bytes(self.operation.verb.as_str().as_bytes()).unwrap_or(Method::GET);
            client.call(method, &path, &query, body.as_ref()).await
        })?;
        match answer {
            Body::Json(answer) if context.json() => super::output::json(&answer),
            Body::Json(answer) => super::output::print(&show::answer(&answer, self.columns())),
            Body::Text(text) => super::output::text(&text),
            Body::None if context.json() => Ok(()),
            Body::None => super::output::line("done"),
        }
    }

    /// The columns of its list: those of the resource are for the things that it is named after.
    fn columns(&self) -> &'static [(&'static str, &'static str)] {
        if self.operation.path == self.resource.path { self.resource.columns } else { &[] }
    }

    async fn path(&self, typed: &ArgMatches, client: &Client) -> Result<String, Error> {
        let mut path = self.operation.path.to_owned();
        for place in &self.places {
            let typed = typed.get_one::<String>(&place.name).map(String::as_str).unwrap_or_default();
            let value = if place.is_agent { client.agent_id(typed).await? } else { typed.to_owned() };
            // The rest of a path may have slashes of its own.
            let rest = value.split('/').map(encoded).collect::<Vec<_>>().join("/");
            path = path.replace(&format!("{{{}}}", place.name), &encoded(&value));
            path = path.replace(&format!("{{*{}}}", place.name), &rest);
        }
        Ok(path)
    }

    /// The body that was given: that of a file, with the options over its keys.
    fn body(&self, inputs: &[Input], typed: &ArgMatches) -> Result<Value, Error> {
        let mut body = match typed.get_one::<String>(FROM) {
            Some(file) => read(file)?,
            None => Map::new(),
        };
        for input in inputs {
            if let Some(value) = given(input, typed)? {
                body.insert(input.name.clone(), value);
            }
        }
        Ok(Value::Object(body))
    }
}

/// The option of an input.
fn argument(id: String, input: &Input) -> Arg {
    let about = match input.about.as_str() {
        "" if input.name == "agent_id" => "Name or id of the agent",
        about => about.trim_end_matches('.'),
    };
    let arg = Arg::new(id.clone()).long(id).help(about.to_owned());
    match input.takes {
        Takes::Switch => {
            let arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL");
            arg.value_parser(BoolishValueParser::new())
        }
        Takes::Number => arg.value_name("NUMBER").allow_negative_numbers(true),
        Takes::Json => arg.value_name("JSON"),
        Takes::Text if input.name == "agent_id" => arg.value_name("AGENT"),
        Takes::Text => arg.value_name("TEXT"),
    }
    .action(ArgAction::Set)
}

/// What was typed for an input.
fn given(input: &Input, typed: &ArgMatches) -> Result<Option<Value>, Error> {
    let id = option_of(&input.name);
    if input.takes == Takes::Switch {
        return Ok(typed.get_one::<bool>(&id).map(|given| Value::Bool(*given)));
    }
    let Some(text) = typed.get_one::<String>(&id) else { return Ok(None) };
    Ok(Some(match input.takes {
        Takes::Text | Takes::Switch => Value::String(text.clone()),
        Takes::Number => {
            let number = serde_json::from_str(text).ok().filter(Value::is_number);
            number.ok_or_else(|| Error::Usage(format!("--{id} {text}: not a number")))?
        }
        // Words need no quotes; what it may be, the daemon knows.
        Takes::Json => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone())),
    }))
}

/// An agent's id where its name was given.
async fn named(input: &str, value: Value, client: &Client) -> Result<Value, Error> {
    match (input, value.as_str()) {
        ("agent_id", Some(agent)) => client.agent_id(agent).await.map(Value::String),
        _ => Ok(value),
    }
}

/// Reads a JSON object from a file or from standard input.
fn read(file: &str) -> Result<Map<String, Value>, Error> {
    let failed = || Error::io(format!("cannot read {file}"));
    let text = match file {
        "-" => std::io::read_to_string(std::io::stdin().lock()).map_err(failed())?,
        _ => std::fs::read_to_string(file).map_err(failed())?,
    };
    serde_json::from_str(&text).map_err(|error| Error::Usage(format!("--{FROM} {file}: not a JSON object: {error}")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::DOMAINS;
    use crate::daemon::cli::routes;

    #[test]
    fn names_are_those_of_the_field() {
        let names = |path| {
            let resource = Resource::at(path);
            deeds(routes, &[resource]).into_iter().map(|deed| deed.name).collect::<BTreeSet<_>>()
        };
        let expected = ["children", "create", "delete", "list", "show", "templates", "update"];
        assert_eq!(names("/api/goals"), expected.map(str::to_owned).into());
        let workflows = names("/api/workflows");
        for name in ["list", "create", "run", "runs", "runs-show", "runs-cancel", "import"] {
            assert!(workflows.contains(name), "{name}: {workflows:?}");
        }
    }

    #[test]
    fn no_two_routes_of_a_noun_have_one_name() {
        for subcommand in DOMAINS.iter().flat_map(|domain| domain.commands) {
            let mut seen = BTreeSet::new();
            for deed in deeds(routes, subcommand.resources()) {
                assert!(seen.insert(deed.name.clone()), "{} {}: {}", subcommand.name, deed.name, deed.operation.path);
            }
        }
    }

    #[test]
    fn options_become_the_body_and_the_query() {
        let resource = Resource::at("/api/goals");
        let command = added(Command::new("goal"), routes, &[resource]);
        let typed = command.try_get_matches_from(["goal", "create", "--title", "3", "--due-at=x"]).unwrap();
        let (name, typed) = typed.subcommand().unwrap();
        let deed = deeds(routes, &[resource]).into_iter().find(|deed| deed.name == name).unwrap();
        let body = deed.body(deed.operation.body.as_ref().unwrap(), typed).unwrap();
        assert_eq!(body, serde_json::json!({"title": "3", "due_at": "x"}));
    }
}
