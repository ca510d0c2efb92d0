//! Subcommands made from routes: `agentsvc goal list` is `GET /api/goals`, with an option for each parameter of its query and
//! each key of its body. A domain names the paths and the columns of its lists ([`Resource`]); the rest is in the routes.

use agentsvc_api::http::operations::{Input, Operation, Takes};
use agentsvc_api::http::route::Verb;
use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};
use reqwest::Method;
use serde_json::{Map, Value};

use super::client::{Body, Client};
use super::names::{Listed, is_agent};
use super::path::{Means, Names, Place, one_of, places, shape};
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
    /// What its items are named by.
    names: Names,
}

impl Resource {
    /// Everything at and under `path`.
    pub(crate) const fn at(path: &'static str) -> Self {
        Self { path, without: &[], columns: &[], list: None, names: Names::Own }
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

    /// Its items have no names: the name of an agent stands for the only one of that agent.
    pub(crate) const fn of_agents(mut self) -> Self {
        self.names = Names::Agents;
        self
    }

    /// Its items have ids alone.
    pub(crate) const fn without_names(mut self) -> Self {
        self.names = Names::None;
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

/// The subcommands of these resources that a command does not have already.
pub(super) fn added(command: Command, routes: Routes, resources: &[Resource]) -> Command {
    let missing = deeds(routes, resources).into_iter().filter(|deed| command.find_subcommand(&deed.name).is_none());
    let missing: Vec<Command> = missing.map(|deed| deed.command(&command)).collect();
    command.subcommands(missing)
}

/// Calls the route of the subcommand `name` of `command`.
///
/// # Errors
/// Those of reading a body, of the daemon, and of writing the answer.
pub(super) fn run(
    command: &str,
    name: &str,
    typed: &ArgMatches,
    context: &Context,
    resources: &[Resource],
) -> Result<(), Error> {
    let deed = deeds(context.routes(), resources).into_iter().find(|deed| deed.name == name);
    deed.ok_or_else(|| Error::Usage(format!("unknown subcommand {name}")))?.run(command, typed, context)
}

fn deeds(routes: Routes, resources: &[Resource]) -> Vec<Deed> {
    let mut all: Vec<Deed> = Vec::new();
    for resource in resources {
        let operations: Vec<Operation> =
            routes(resource.path).into_iter().filter(|operation| !resource.without.contains(&operation.path)).collect();
        let list_at = |path: &str| {
            let lists = |other: &&Operation| other.verb == Verb::Get && shape(other.path) == shape(path);
            operations.iter().find(lists).map(|list| name_of(list, resource.path, &operations))
        };
        for operation in &operations {
            let name = name_of(operation, resource.path, &operations);
            all.push(Deed {
                name,
                places: places(operation.path, resource.names, list_at),
                operation: operation.clone(),
                resource: *resource,
            });
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

/// `next_run` as an option: `next-run`. An agent is named without the word `id`.
fn option_of(name: &str) -> String {
    let name = if is_agent(name) { name.trim_end_matches("_id") } else { name };
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
            "update" => &["edit", "set"],
            "delete" => &["rm"],
            _ => &[],
        };
        let is_free = |alias: &&&str| beside.find_subcommand(alias).is_none();
        command = command.visible_aliases(aliases.iter().filter(is_free).copied());
        command = command.args(self.places.iter().map(Place::argument));
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

    fn run(&self, command: &str, typed: &ArgMatches, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let body = self.operation.body.as_ref().map(|inputs| self.body(inputs, typed)).transpose()?;
        let asked = context.block_on(async {
            let path = self.path(command, typed, &client).await?;
            let mut query = Vec::new();
            for input in &self.operation.query {
                if let Some(value) = given(input, typed)? {
                    let value = self.named(&input.name, value, &client).await?;
                    query.push((input.name.as_str(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
                }
            }
            let mut body = body;
            for input in self.operation.body.iter().flatten() {
                if let Some(value) = body.as_mut().and_then(|body| body.get_mut(&input.name)) {
                    *value = self.named(&input.name, value.take(), &client).await?;
                }
            }
            let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let method = Method::from_bytes(self.operation.verb.as_str().as_bytes()).unwrap_or(Method::GET);
            let mut answer = client.call(method, &path, &query, body.as_ref()).await?;
            if let Body::Json(answer) = &mut answer
                && !context.json()
            {
                client.name_agents(answer).await;
            }
            Ok(answer)
        });
        match asked.map_err(|error| self.with_next_step(command, error))? {
            Body::Json(answer) if context.json() => super::output::json(&answer),
            Body::Json(answer) => super::output::print(&show::answer(&answer, self.columns())),
            Body::Text(text) => super::output::text(&text),
            Body::None if context.json() => Ok(()),
            Body::None => super::output::line("done"),
        }
    }

    /// What the daemon refused, with the command that helps.
    fn with_next_step(&self, command: &str, error: Error) -> Error {
        let name = &self.name;
        let next = match (&error, self.places.last()) {
            (Error::Answer { status: 400 | 422, .. }, _) => format!("see `agentsvc {command} {name} --help`"),
            (Error::Answer { status: 404, .. }, Some(place)) => match place.listed_by(command) {
                Some(list) => format!("list them with `agentsvc {list}`"),
                None => return error,
            },
            _ => return error,
        };
        match error {
            Error::Answer { status, message } => {
                let message = format!("{}; {next}", self.of_option(&message).unwrap_or(message));
                Error::Answer { status, message }
            }
            other => other,
        }
    }

    /// What the daemon says of a key of the body that is missing, said of its option.
    fn of_option(&self, message: &str) -> Option<String> {
        let (field, rest) = message.split_once(": missing field `")?;
        let is_key = self.operation.body.iter().flatten().any(|input| input.name == field);
        let is_its = rest.split_once('`').is_some_and(|(named, _)| named == field);
        (is_key && is_its).then(|| format!("--{} is required", option_of(field)))
    }

    /// The columns of its list: those of the resource are for the things that it is named after.
    fn columns(&self) -> &'static [(&'static str, &'static str)] {
        if self.operation.path == self.resource.path { self.resource.columns } else { &[] }
    }

    async fn path(&self, command: &str, typed: &ArgMatches, client: &Client) -> Result<String, Error> {
        let mut path = String::new();
        for segment in self.operation.path.split('/').skip(1) {
            let name = segment.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
            let name = name.map(|name| name.trim_start_matches('*'));
            let Some(place) = self.places.iter().find(|place| Some(place.name.as_str()) == name) else {
                path.push_str(&format!("/{segment}"));
                continue;
            };
            let typed = typed.get_one::<String>(&place.name).map(String::as_str).unwrap_or_default();
            let value = match &place.means {
                Means::Agent => client.agent_id(typed).await?,
                Means::Item { noun, elsewhere, .. } => {
                    let listed = Listed::new(elsewhere.unwrap_or(&path), noun.as_str());
                    let listed = listed.by(place.listed_by(command).unwrap_or_default());
                    let listed = if self.resource.names == Names::Agents { listed.of_agents() } else { listed };
                    client.id_of(&listed, typed).await?
                }
                Means::Text => typed.to_owned(),
            };
            // The rest of a path may have slashes of its own.
            let is_rest = segment.starts_with("{*");
            let value = if is_rest {
                value.split('/').map(encoded).collect::<Vec<_>>().join("/")
            } else {
                encoded(&value).to_string()
            };
            path.push_str(&format!("/{value}"));
        }
        Ok(path)
    }

    /// An id where a name was given.
    async fn named(&self, input: &str, value: Value, client: &Client) -> Result<Value, Error> {
        let listed = match input {
            _ if is_agent(input) => Listed::agents(),
            "parent_id" => {
                Listed::new(self.resource.path, one_of(self.resource.path.rsplit('/').next().unwrap_or_default()))
            }
            "session_id" => Listed::new("/api/sessions", "session"),
            "user_id" => Listed::new("/api/users", "user"),
            _ => return Ok(value),
        };
        match value.as_str().filter(|typed| !typed.is_empty()) {
            Some(typed) => client.id_of(&listed, typed).await.map(Value::String),
            None => Ok(value),
        }
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
        "" if is_agent(&input.name) => "Name or id of the agent".to_owned(),
        "" => words(&input.name),
        about => about.trim_end_matches('.').to_owned(),
    };
    let arg = Arg::new(id.clone()).long(id).help(about);
    match input.takes {
        Takes::Switch => {
            let arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL");
            arg.value_parser(BoolishValueParser::new())
        }
        Takes::Number => arg.value_name("NUMBER").allow_negative_numbers(true),
        Takes::Json => arg.value_name("JSON"),
        Takes::Text if is_agent(&input.name) => arg.value_name("AGENT").alias(input.name.replace('_', "-")),
        Takes::Text => arg.value_name("TEXT"),
    }
    .action(ArgAction::Set)
}

/// `due_at` as words: `Due at`.
fn words(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    first + &characters.as_str().replace('_', " ")
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
