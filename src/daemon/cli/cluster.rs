//! `cluster`: how the nodes are, what moves the world, and what makes a home one of a node.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::config::{ChangeError, Config, ConfigFile, Document as _, Editable as _};
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Table, field, items};
use crate::kernel::cli::{Error, Run};
use crate::kernel::home::Home;
use crate::kernel::percent::encoded;
use crate::kernel::vault::VARIABLE;

/// Subcommands of `cluster`.
#[derive(Debug, Subcommand)]
pub(crate) enum Cluster {
    /// Show the nodes, which one owns the world, and how far the others are
    Status,
    /// Move the world to another node
    Move(Move),
    /// Drain a node: what it owns moves, and it owns nothing until it restarts
    Drain {
        /// Its name
        node: String,
    },
    /// Compare the records of all nodes; fails when they are not the same
    Verify,
    /// Make this home the first node of a new cluster; a world that it has becomes that of the cluster
    Init(Node),
    /// Make this home another node of a cluster; it must have no world of its own
    Join(Node),
    /// Make this home that of a single daemon again, with the world as this node has it
    Detach,
}

/// Options of `cluster move`.
#[derive(Debug, Args)]
pub(crate) struct Move {
    /// Name of the node; without it, the standby that is furthest
    node: Option<String>,
    /// Number of the world
    #[arg(long, default_value_t = 0)]
    world: u16,
}

/// Options of `cluster init` and `cluster join`.
#[derive(Debug, Args)]
pub(crate) struct Node {
    /// A NATS server, such as nats://10.0.0.1:4222; repeat it for each
    #[arg(long = "server", required = true)]
    servers: Vec<String>,
    /// Name of this node, different on each
    #[arg(long)]
    node: String,
    /// Where the other nodes reach the API of this one, such as http://10.0.0.1:4545
    #[arg(long)]
    url: String,
    /// Name of the cluster, the same on each node
    #[arg(long, default_value = "agentsvc")]
    name: String,
    /// File with user:password for the servers
    #[arg(long)]
    credentials: Option<String>,
}

impl Run for Cluster {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::Status => status(context),
            Self::Move(Move { node, world }) => {
                let path = format!("/api/cluster/worlds/{world}/move");
                let moved = post(context, &path, node.map(|node| json!({ "node": node })))?;
                context.print(&moved, moved_text)
            }
            Self::Drain { node } => {
                let path = format!("/api/cluster/nodes/{}/drain", encoded(&node));
                context.print(&post(context, &path, None)?, drained)
            }
            Self::Verify => verify(context),
            Self::Init(node) => node.write(context, "the first node"),
            Self::Join(node) => {
                check_empty(&context.home()?)?;
                node.write(context, "a node")
            }
            Self::Detach => detach(context),
        }
    }
}

fn post(context: &Context, path: &str, body: Option<Value>) -> Result<Value, Error> {
    let client = context.client()?;
    context.block_on(async { client.post(path, body.as_ref()).await })
}

fn status(context: &Context) -> Result<(), Error> {
    let client = context.client()?;
    let mut cluster = context.block_on(client.get("/api/cluster", &[]))?;
    if cluster["enabled"] == true {
        cluster["nodes"] = context.block_on(client.get("/api/cluster/nodes", &[]))?["nodes"].take();
    }
    context.print(&cluster, shown)
}

fn shown(cluster: &Value) -> String {
    if cluster["enabled"] != true {
        return "this daemon is not part of a cluster\n".to_owned();
    }
    let of = |key: &str| field(cluster, key);
    let owner = cluster["owner"].as_str().unwrap_or("none");
    let mut text = format!(
        "cluster:  {}\nasked:    {} ({})\nowner:    {owner}\nepoch:    {}\nentries:  {}\n",
        of("/name"),
        of("/node"),
        of("/role"),
        of("/worlds/0/epoch"),
        of("/worlds/0/index"),
    );
    let servers = items(cluster, "servers").map(|server| {
        let state = match (&server["offline"], &server["current"]) {
            (Value::Bool(true), _) => "offline",
            (_, Value::Bool(true)) => "current",
            _ => "behind",
        };
        format!("{} {state}", field(server, "/name"))
    });
    let servers: Vec<_> = servers.collect();
    if !servers.is_empty() {
        text.push_str(&format!("servers:  {}\n", servers.join(", ")));
    }
    for problem in items(cluster, "problems").filter_map(Value::as_str) {
        text.push_str(&format!("problem:  {problem}\n"));
    }
    let mut table = Table::list("nodes", &["NODE", "ROLE", "EPOCH", "ENTRY", "BEHIND", "LAST HEARD", "URL"]);
    for node in items(cluster, "nodes") {
        let of = |key: &str| field(node, key);
        let role = if node["draining"] == true { format!("{} (drained)", of("/role")) } else { of("/role") };
        table.row([&of("/name"), &role, &of("/epoch"), &of("/index"), &of("/lag"), &of("/last_heard"), &of("/url")]);
    }
    format!("{text}\n{}", table.render())
}

fn moved_text(moved: &Value) -> String {
    let of = |key: &str| field(moved, key);
    format!("{} owns world {} (epoch {}); pause {} ms\n", of("/owner"), of("/world"), of("/epoch"), of("/paused_ms"))
}

fn drained(answer: &Value) -> String {
    let moved: String = items(answer, "moved").map(moved_text).collect();
    format!("{moved}{} is drained: it owns nothing until it restarts\n", field(answer, "/node"))
}

fn verify(context: &Context) -> Result<(), Error> {
    let verified = post(context, "/api/cluster/verify", None)?;
    context.print(&verified, verified_text)?;
    if verified["ok"] == true { Ok(()) } else { Err(Error::Failed("the nodes are not all the same".to_owned())) }
}

fn verified_text(verified: &Value) -> String {
    let mut table = Table::list("nodes", &["NODE", "RECORDS"]);
    for node in items(verified, "nodes") {
        let same = match node["same"].as_bool() {
            Some(true) => "same",
            Some(false) => "different",
            None => "no answer",
        };
        table.row([field(node, "/name").as_str(), same]);
    }
    let problems: String =
        items(verified, "problems").filter_map(Value::as_str).map(|problem| format!("problem:  {problem}\n")).collect();
    let of = |key: &str| field(verified, key);
    let head = format!("entry:    {}\nhash:     {}\nfollowed: {} entries\n", of("/index"), of("/hash"), of("/entries"));
    format!("{head}{problems}\n{}", table.render())
}

/// Refuses a home that has a world: two worlds cannot be joined.
fn check_empty(home: &Home) -> Result<(), Error> {
    let data_dir = Config::load(&home.config_file())?.config.data_dir;
    let world = home.world_dir(data_dir.as_deref());
    let has_world = std::fs::read_dir(&world).is_ok_and(|mut files| files.next().is_some());
    if !has_world {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "this home has a world of its own in {}; two worlds cannot be joined: move that directory away, or use `agentsvc \
         cluster init` to make it the world of the cluster",
        world.display()
    )))
}

impl Node {
    /// The keys of `[cluster]`, in an order in which the file is valid after each.
    fn values(&self) -> Vec<(&'static str, Value)> {
        let name = (self.name != "agentsvc").then(|| ("name", json!(self.name)));
        let credentials = self.credentials.as_ref().map(|file| ("credentials", json!(file)));
        let needed = [("node", json!(self.node)), ("url", json!(self.url)), ("servers", json!(self.servers))];
        name.into_iter().chain(credentials).chain(needed).collect()
    }

    /// Writes them.
    fn write(self, context: &Context, what: &str) -> Result<(), Error> {
        let home = context.home()?;
        let file = ConfigFile::new(&home);
        let values = self.values();
        file.change(|text| {
            let text = if text.is_empty() { Config::template() } else { text.to_owned() };
            Ok::<_, ChangeError>((with(text, &values, file.path())?, ()))
        })?;
        let needs_key = std::env::var_os(VARIABLE).is_none();
        if context.json() {
            let (node, config) = (&self.node, file.path());
            return output::json(
                &json!({ "status": "saved", "node": node, "config": config, "needs_vault_key": needs_key }),
            );
        }
        output::line(&format!("saved in {}: this home is that of {what}, {}", file.path().display(), self.node))?;
        if needs_key {
            output::line(&format!(
                "next: set {VARIABLE} to the same value on all nodes; `openssl rand -base64 32` makes one"
            ))?;
        }
        output::line("then start it; a daemon that runs takes it with a restart")
    }
}

/// `text` with these keys of `[cluster]`; null removes one.
fn with(text: String, values: &[(&'static str, Value)], file: &Path) -> Result<String, ChangeError> {
    values.iter().try_fold(text, |text, (key, value)| {
        let path = ["cluster".to_owned(), (*key).to_owned()];
        Config::changed(&text, &path, value, file).map(|(after, _)| after)
    })
}

fn detach(context: &Context) -> Result<(), Error> {
    let home = context.home()?;
    if home.is_taken() {
        return Err(Error::Failed("the daemon of this home is running; stop it first".to_owned()));
    }
    let file = ConfigFile::new(&home);
    if !Config::load(file.path())?.config.cluster.is_on() {
        return Err(Error::Failed("this home is not that of a node".to_owned()));
    }
    // Without servers, the others mean nothing.
    let keys = [
        "servers",
        "name",
        "node",
        "url",
        "replicas",
        "unsafe_single_server",
        "allow_open_server",
        "acks",
        "journal_mb",
        "credentials",
        "check",
    ];
    file.change(|text| {
        Ok::<_, ChangeError>((with(text.to_owned(), &keys.map(|key| (key, Value::Null)), file.path())?, ()))
    })?;
    if context.json() {
        return output::json(&json!({ "status": "detached", "config": file.path() }));
    }
    output::line(&format!("saved in {}: this home is that of a single daemon", file.path().display()))?;
    output::line(
        "its world goes on from what this node had; the other nodes do not see that, so let only one of both go on",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> Node {
        let servers = vec!["nats://10.0.0.1:4222".to_owned(), "nats://10.0.0.2:4222".to_owned()];
        Node {
            servers,
            node: "a".to_owned(),
            url: "http://10.0.0.1:4545".to_owned(),
            name: name.to_owned(),
            credentials: None,
        }
    }

    #[test]
    fn a_home_becomes_one_of_a_node_and_one_of_a_single_daemon_again() {
        let file = Path::new("config.toml");
        let before = "# mine\nlog_level = \"info\"\n".to_owned();
        for name in ["agentsvc", "other"] {
            let text = with(before.clone(), &node(name).values(), file).unwrap();
            let cluster = Config::parse(&text, file).unwrap().config.cluster;
            assert_eq!((&*cluster.name, cluster.node.as_deref(), cluster.servers.len()), (name, Some("a"), 2));
            assert!(cluster.is_on() && text.starts_with("# mine\n"), "{text}");
            let keys = ["servers", "name", "node", "url"].map(|key| (key, Value::Null));
            let text = with(text, &keys, file).unwrap();
            assert!(!Config::parse(&text, file).unwrap().config.cluster.is_on() && !text.contains("nats://"), "{text}");
        }
        let wrong = Node { url: "10.0.0.1".to_owned(), ..node("agentsvc") };
        assert!(with(before, &wrong.values(), file).is_err());
    }

    #[test]
    fn a_home_with_a_world_joins_none() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        check_empty(&home).unwrap();
        home.create(None).unwrap();
        check_empty(&home).unwrap();
        std::fs::write(home.world_dir(None).join("a"), "").unwrap();
        let refused = check_empty(&home).unwrap_err().to_string();
        assert!(refused.contains("two worlds cannot be joined"), "{refused}");
    }

    #[test]
    fn what_is_shown_names_the_owner_and_what_is_wrong() {
        let cluster = json!({
            "enabled": true, "name": "main", "node": "b", "role": "standby", "owner": "a", "problems": ["a disk is full"],
            "worlds": [{ "epoch": 3, "index": 10 }], "servers": [{ "name": "n1", "offline": false, "current": true }],
            "nodes": [{ "name": "c", "role": "standby", "draining": true, "epoch": 3, "index": 8, "lag": 2, "url": "http://c" }],
        });
        let text = shown(&cluster);
        for part in
            ["owner:    a", "asked:    b (standby)", "problem:  a disk is full", "n1 current", "standby (drained)"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(shown(&json!({ "enabled": false })), "this daemon is not part of a cluster\n");
        let verified =
            json!({ "index": 9, "hash": "ab", "entries": 3, "problems": [], "nodes": [{ "name": "c", "same": null }] });
        assert!(verified_text(&verified).contains("no answer"));
    }
}
