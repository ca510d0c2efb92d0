//! Subcommands made from routes: `agentsvc goal list` is `GET /api/goals`, with an option for each parameter of its query and
//! each key of its body. A domain names the paths and the columns of its lists ([`Resource`]); the rest is in the routes.

use agentsvc_api::http::operations::{Input, Operation};
use agentsvc_api::http::route::Verb;
use chrono::Utc;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use reqwest::Method;
use serde_json::{Map, Value};

use super::client::{Body, Client};
use super::made;
use super::names::{Listed, is_agent};
use super::options::{FROM, argument, given, option_of, read};
use super::path::{Means, Names, Place, one_of, places, shape};
use super::show::IsShown;
use super::show::{Columns, Items};
use super::verb::name_of;
use super::{Context, Error, show};
use crate::kernel::percent::encoded;

/// Options that choose a page of a list, and narrow nothing.
const PAGING: [&str; 5] = ["limit", "offset", "cursor", "sort", "order"];
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
    pub(crate) columns: Columns,
    /// The path that `list` reads, where it is not the resource's own.
    list: Option<&'static str>,
    /// What its items are named by.
    names: Names,
    /// What its items are called, where the answer has another word for them.
    noun: &'static str,
    /// Which items of its list people see.
    rows: Option<IsShown>,
}

impl Resource {
    /// Everything at and under `path`.
    pub(crate) const fn at(path: &'static str) -> Self {
        Self { path, without: &[], columns: &[], list: None, names: Names::Own, noun: "", rows: None }
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

    /// Its items are called so, in the plural.
    pub(crate) const fn called(mut self, noun: &'static str) -> Self {
        self.noun = noun;
        self
    }

    /// People see only those items of its list: the others are for programs.
    pub(crate) const fn showing(mut self, rows: IsShown) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Shows lists with these headings and JSON pointers.
    pub(crate) const fn columns(mut self, columns: Columns) -> Self {
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
    /// The subcommand that makes what its list has, if there is one.
    creates: Option<String>,
}

/// The subcommands of these resources that a command does not have already.
pub(super) fn added(command: Command, routes: Routes, resources: &[Resource]) -> Command {
    let missing = deeds(routes, resources).into_iter().filter(|deed| command.find_subcommand(&deed.name).is_none());
    let missing: Vec<Command> = missing.map(|deed| deed.command(&command)).collect();
    if let ([only], false) = (missing.as_slice(), command.has_subcommands())
        && only.get_positionals().next().is_none()
    {
        // The noun alone means the only thing that can be done with it.
        let only = only.get_name().to_owned();
        return alone(command.subcommands(missing), Some(&only));
    }
    command.subcommands(missing)
}

/// The noun alone means its subcommand `verb`, with the options of that.
pub(super) fn alone(command: Command, verb: Option<&str>) -> Command {
    let Some(meant) = verb.and_then(|verb| command.find_subcommand(verb)) else { return command };
    let options: Vec<Arg> = meant.get_arguments().cloned().collect();
    let command = command.args(options).args_conflicts_with_subcommands(true);
    command.subcommand_required(false).arg_required_else_help(false)
}

/// Calls the route of the subcommand `name` of `command`; without a name, the only one.
///
/// # Errors
/// Those of reading a body, of the daemon, and of writing the answer.
pub(super) fn run(
    command: &str,
    name: Option<&str>,
    typed: &ArgMatches,
    context: &Context,
    resources: &[Resource],
) -> Result<(), Error> {
    let mut deeds = deeds(context.routes(), resources).into_iter();
    let deed = deeds.find(|deed| name.is_none_or(|name| deed.name == name));
    deed.ok_or_else(|| Error::Usage(format!("{command} needs a subcommand")))?.run(command, typed, context)
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
        let made_at = |path: &str| {
            let makes = |other: &&Operation| other.verb == Verb::Post && other.path == path;
            operations.iter().find(makes).map(|create| name_of(create, resource.path, &operations))
        };
        for operation in &operations {
            let name = name_of(operation, resource.path, &operations);
            all.push(Deed {
                name,
                places: places(operation.path, resource.names, list_at),
                creates: made_at(operation.path),
                operation: operation.clone(),
                resource: *resource,
            });
        }
    }
    all
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
                client.title_sessions(answer).await;
            }
            Ok(answer)
        });
        let answer = asked.map_err(|error| self.with_next_step(command, error))?;
        match (answer, self.deleted(typed)) {
            (Body::Json(answer), Some(deleted)) => context.print(&answer, |_| deleted),
            (Body::Json(answer), None) => context.print(&answer, |answer| match self.made(command, typed, answer) {
                Some(sentence) => sentence.into(),
                None => show::answer(answer, self.columns(), &self.items(command, typed)),
            }),
            (Body::Text(text), _) => super::output::text(&text),
            (Body::None, _) if context.json() => Ok(()),
            (Body::None, deleted) => super::output::print(&deleted.unwrap_or_else(|| "done\n".to_owned())),
        }
    }

    /// What is said of an item that was deleted, by the name that was typed.
    fn deleted(&self, typed: &ArgMatches) -> Option<String> {
        let is_one = self.operation.verb == Verb::Delete && self.operation.path.ends_with('}');
        let typed = typed.get_one::<String>(&self.places.last().filter(|_| is_one)?.name)?;
        Some(format!("deleted {}\n", super::output::clean(typed)))
    }

    /// What is said of an item that was created or changed.
    fn made(&self, command: &str, typed: &ArgMatches, answer: &Value) -> Option<String> {
        let noun = if self.resource.noun.is_empty() { command } else { self.resource.noun };
        let (done, typed) = match self.operation.verb {
            Verb::Post if self.operation.path != self.resource.path => return None,
            Verb::Post if answer["status"] == "published" => ("Published", None),
            Verb::Post => ("Created", None),
            Verb::Put | Verb::Patch if self.is_own_item() => {
                ("Updated", Some(typed.get_one::<String>(&self.places.last()?.name)?.as_str()))
            }
            _ => return None,
        };
        made::sentence(done, &one_of(noun), typed, answer, Utc::now())
    }

    /// What the daemon refused, with the command that helps.
    fn with_next_step(&self, command: &str, error: Error) -> Error {
        let name = &self.name;
        let next = match (&error, self.places.last()) {
            (Error::Answer { status: 400 | 422, .. }, _) => format!("see `agentsvc {command} {name} --help`"),
            (Error::Answer { status: 404, message }, Some(place)) if !message.contains("did you mean") => {
                match place.listed_by(command) {
                    Some(list) => format!("list them with `agentsvc {list}`"),
                    None => return error,
                }
            }
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
        let field = message.strip_suffix(": missing")?;
        let is_key = self.operation.body.iter().flatten().any(|input| input.name == field);
        is_key.then(|| format!("--{} is required", option_of(field)))
    }

    /// The columns of its list: those of the resource are for the things that it is named after.
    fn columns(&self) -> Columns {
        if self.is_own() { self.resource.columns } else { &[] }
    }

    /// Does its list have the things that the resource is named after?
    fn is_own(&self) -> bool {
        self.operation.path == self.resource.path || self.resource.list == Some(self.operation.path)
    }

    /// Is it about one of the things that the resource is named after?
    fn is_own_item(&self) -> bool {
        let below = self.operation.path.strip_prefix(self.resource.path).and_then(|rest| rest.strip_prefix("/{"));
        below.is_some_and(|rest| !rest.contains('/'))
    }

    /// What is said where its list is empty.
    fn items(&self, command: &str, typed: &ArgMatches) -> Items {
        let noun = if self.is_own() { self.resource.noun } else { "" };
        let is_narrowed = self.operation.query.iter().any(|input| {
            let id = option_of(&input.name);
            !PAGING.contains(&id.as_str()) && typed.value_source(&id) == Some(ValueSource::CommandLine)
        });
        let hint = match &self.creates {
            Some(create) if self.is_own() && !is_narrowed => format!("Create one with `agentsvc {command} {create}`."),
            _ => String::new(),
        };
        let rows = self.resource.rows.filter(|_| self.is_own());
        Items { noun: noun.to_owned(), is_narrowed, hint, rows }
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
                Means::Text { .. } => typed.to_owned(),
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
