//! `plugin`: plugins of the context engine listed, installed, checked and controlled.

use clap::Subcommand;
use serde_json::{Value, json};

use crate::kernel::cli::context::Context;
use crate::kernel::cli::output::{self, Shown, Table};
use crate::kernel::cli::words::said;
use crate::kernel::cli::{Error, Run};

/// The runtimes that there are templates for.
const RUNTIMES: [&str; 11] = ["python", "native", "v", "node", "deno", "go", "ruby", "bash", "bun", "php", "lua"];

/// Subcommands of `plugin`.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List plugins
    List,
    /// List the plugins of the registry
    Search,
    /// Show a plugin
    Info {
        /// The plugin's name
        plugin: String,
    },
    /// Install a plugin
    Install {
        /// Name in the registry, path of a folder or archive on the daemon's machine, or https URL of a Git repository
        source: String,
        /// Branch of the repository
        #[arg(long)]
        branch: Option<String>,
        /// Let its hooks use the network if it asks for that
        #[arg(long)]
        allow_network: bool,
    },
    /// Create a plugin from a template
    New {
        /// Name of the new plugin
        plugin: String,
        /// Language of its hooks
        #[arg(long, default_value = "python", value_parser = RUNTIMES)]
        runtime: String,
        /// What it does
        #[arg(long, default_value = "")]
        description: String,
    },
    /// Check the files of a plugin
    Lint {
        /// The plugin's name
        plugin: String,
    },
    /// Run a hook of a plugin with an example
    Test {
        /// The plugin's name
        plugin: String,
        /// The hook, such as ingest or `after_turn`
        hook: String,
    },
    /// Enable a plugin
    Enable {
        /// The plugin's name
        plugin: String,
    },
    /// Disable a plugin
    Disable {
        /// The plugin's name
        plugin: String,
    },
    /// Reload a plugin after its files changed
    Reload {
        /// The plugin's name
        plugin: String,
    },
    /// Install the newest version of a plugin
    Upgrade {
        /// The plugin's name
        plugin: String,
        /// Let its hooks use the network if it asks for that; without this, as before
        #[arg(long)]
        allow_network: bool,
    },
    /// Install the dependencies of a plugin
    Deps {
        /// The plugin's name
        plugin: String,
    },
    /// Add checksums to a plugin and sign it
    Sign {
        /// The plugin's name
        plugin: String,
    },
    /// Show how often hooks ran and failed
    Health {
        /// The plugin's name
        plugin: String,
    },
    /// Show the newest runs of hooks
    Traces {
        /// The plugin's name
        plugin: String,
    },
    /// Check the runtimes that plugins need
    Doctor,
    /// Uninstall a plugin with its data
    Remove {
        /// The plugin's name
        plugin: String,
    },
}

impl Run for PluginCommand {
    fn run(self, context: &Context) -> Result<(), Error> {
        let client = context.client()?;
        let get = |path: &str| context.block_on(client.get(path, &[]));
        let post = |path: &str, body: Option<&Value>| context.block_on(client.post(path, body));
        let of = |plugin: &str, what: &str| format!("/api/plugins/{plugin}/{what}");
        let (answer, shown): (Value, Shown) = match &self {
            Self::List => with(get("/api/plugins")?, list),
            Self::Search => with(get("/api/plugins/registries")?, registry),
            Self::Info { plugin } => with(get(&format!("/api/plugins/{plugin}"))?, info),
            Self::Install { source, branch, allow_network } => {
                let mut body = json!({ "source": place(source)?, "allow_network": allow_network });
                if let Some(branch) = branch {
                    body["branch"] = branch.as_str().into();
                }
                with(post("/api/plugins/install", Some(&body))?, installed)
            }
            Self::New { plugin, runtime, description } => {
                let body = json!({ "name": plugin, "runtime": runtime, "description": description });
                with(post("/api/plugins/scaffold", Some(&body))?, |made| {
                    format!(
                        "Created {}\nEdit its hooks, then check it: agentsvc plugin lint {}\n",
                        word(made, "path"),
                        word(made, "name")
                    )
                })
            }
            Self::Lint { plugin } => with(get(&of(plugin, "lint"))?, linted),
            Self::Test { plugin, hook } => {
                with(post(&of(plugin, "test-hook"), Some(&json!({ "hook": hook })))?, tested)
            }
            Self::Enable { plugin } => (post(&of(plugin, "enable"), None)?, format!("enabled {plugin}\n").into()),
            Self::Disable { plugin } => (post(&of(plugin, "disable"), None)?, format!("disabled {plugin}\n").into()),
            Self::Reload { plugin } => (post(&of(plugin, "reload"), None)?, format!("reloaded {plugin}\n").into()),
            Self::Upgrade { plugin, allow_network } => {
                let body = allow_network.then(|| json!({ "allow_network": true }));
                with(post(&of(plugin, "upgrade"), body.as_ref())?, installed)
            }
            Self::Deps { plugin } => {
                with(post(&of(plugin, "install-deps"), None)?, |done| format!("{}\n", word(done, "output")))
            }
            Self::Sign { plugin } => with(post(&of(plugin, "sign"), None)?, |signed| {
                format!("Signed with the key {}\n", word(signed, "public_key"))
            }),
            Self::Health { plugin } => with(get(&of(plugin, "health"))?, health),
            Self::Traces { plugin } => with(get(&of(plugin, "traces"))?, traces),
            Self::Doctor => with(get("/api/plugins/doctor")?, doctor),
            Self::Remove { plugin } => {
                let body = json!({ "name": plugin });
                (post("/api/plugins/uninstall", Some(&body))?, format!("removed {plugin}\n").into())
            }
        };
        context.print(&answer, |_| shown)
    }
}

fn with<S: Into<Shown>>(answer: Value, shown: impl Fn(&Value) -> S) -> (Value, Shown) {
    let shown = shown(&answer).into();
    (answer, shown)
}

fn word<'v>(answer: &'v Value, key: &str) -> &'v str {
    answer[key].as_str().unwrap_or("-")
}

fn lines(answer: &Value, key: &str) -> String {
    output::items(answer, key).filter_map(Value::as_str).map(|line| format!("{line}\n")).collect()
}

/// What an installation asks for: a name, a URL, or an absolute path, as the daemon may run in another directory.
fn place(source: &str) -> Result<String, Error> {
    if source.contains("://") || (!source.contains('/') && !source.starts_with('.')) {
        return Ok(source.to_owned());
    }
    let path = std::path::absolute(source).map_err(Error::io("cannot find the plugin"))?;
    Ok(path.to_string_lossy().into_owned())
}

fn list(answer: &Value) -> Shown {
    let columns = [
        ("PLUGIN", "/name"),
        ("VERSION", "/version"),
        ("ENABLED", "/enabled"),
        ("ACTIVE", "/active"),
        ("DESCRIPTION", "/description"),
    ];
    let hint = "Find some with `agentsvc plugin search`.";
    let shown = Shown::from(Table::of("plugins", output::items(answer, "plugins"), &columns).hint(hint));
    let mut text = String::new();
    for failed in output::items(answer, "failed") {
        text.push_str(&format!("Cannot load {}: {}\n", word(failed, "name"), word(failed, "error")));
    }
    shown.and(text)
}

fn registry(answer: &Value) -> Shown {
    let columns =
        [("PLUGIN", "/name"), ("VERSION", "/version"), ("INSTALLED", "/installed"), ("DESCRIPTION", "/description")];
    let found = output::items(answer, "registries").flat_map(|registry| output::items(registry, "plugins"));
    let shown = Shown::from(Table::of("plugins in the registries", found, &columns));
    output::items(answer, "registries").fold(shown, |shown, registry| match registry["error"].as_str() {
        Some(error) => shown.and(format!("Cannot read {}: {error}\n", word(registry, "github_repo"))),
        None => shown,
    })
}

/// Whether its hooks may use the network.
fn network(answer: &Value) -> String {
    match (answer["network"].as_bool(), answer["wants_network"].as_bool()) {
        (Some(true), _) => "allowed".to_owned(),
        (_, Some(true)) => format!(
            "not allowed, though the plugin asks for it; allow it: agentsvc plugin upgrade {} --allow-network",
            word(answer, "name")
        ),
        _ => "not used".to_owned(),
    }
}

fn info(answer: &Value) -> String {
    let hooks: Vec<&str> = output::items(answer, "hooks").filter_map(Value::as_str).collect();
    format!(
        "{} {}\n{}\n\nHooks: {}\nRuntime: {}\nEnabled: {}\nActive: {}\nNetwork: {}\nFolder: {}\n{}",
        word(answer, "name"),
        word(answer, "version"),
        word(answer, "description"),
        hooks.join(", "),
        word(answer, "runtime"),
        said(answer, "/enabled", None),
        said(answer, "/active", None),
        network(answer),
        word(answer, "path"),
        lines(answer, "warnings")
    )
}

fn installed(made: &Value) -> String {
    let (name, version) = (word(made, "name"), word(made, "version"));
    let warnings: String =
        output::items(made, "warnings").filter_map(Value::as_str).map(|line| format!("Warning: {line}\n")).collect();
    format!(
        "{warnings}Installed {name} {version}. To run its hooks, set in config.toml:\n[context_engine]\nplugin = {name:?}\n"
    )
}

fn linted(found: &Value) -> String {
    let ok = if found["ok"] == true { "No errors.\n" } else { "" };
    let errors = lines(found, "errors").lines().map(|line| format!("Error: {line}\n")).collect::<String>();
    let warnings = lines(found, "warnings").lines().map(|line| format!("Warning: {line}\n")).collect::<String>();
    format!("{errors}{warnings}{ok}")
}

fn tested(done: &Value) -> String {
    match done["error"].as_str() {
        Some(error) => format!("Failed after {} ms: {error}\n", done["elapsed_ms"]),
        None => format!("{}\nTook {} ms.\n", done["output"], done["elapsed_ms"]),
    }
}

fn health(answer: &Value) -> Table {
    let rows = answer["hooks"].as_object().into_iter().flatten().map(|(hook, counts)| {
        let mut row = counts.clone();
        row["hook"] = hook.as_str().into();
        row
    });
    let rows: Vec<Value> = rows.collect();
    let columns = [
        ("HOOK", "/hook"),
        ("CALLS", "/calls"),
        ("ERRORS", "/errors"),
        ("AVERAGE", "/avg_elapsed_ms"),
        ("LAST ERROR", "/last_error"),
    ];
    Table::of("hooks", rows.iter(), &columns)
}

fn traces(answer: &Value) -> Table {
    let columns = [("AT", "/at"), ("HOOK", "/hook"), ("TOOK", "/elapsed_ms"), ("TRIES", "/tries"), ("ERROR", "/error")];
    Table::of("runs", output::items(answer, "traces"), &columns)
}

fn doctor(answer: &Value) -> Shown {
    let runtimes = [("RUNTIME", "/runtime"), ("AVAILABLE", "/available"), ("VERSION", "/version")];
    let plugins =
        [("PLUGIN", "/name"), ("RUNTIME", "/runtime"), ("AVAILABLE", "/runtime_available"), ("HOOKS", "/hooks_valid")];
    let missing = output::items(answer, "plugins").map(|plugin| lines(plugin, "missing"));
    Shown::from(Table::of("runtimes", output::items(answer, "runtimes"), &runtimes))
        .and_below(Table::of("plugins", output::items(answer, "plugins"), &plugins))
        .and(missing.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_shown_in_words() {
        let rows = json!({ "plugins": [{ "name": "notes", "version": "1", "enabled": true, "active": false }],
            "failed": [{ "name": "bad", "error": "name: missing" }] });
        let text = list(&rows).text;
        assert!(text.contains("notes") && text.contains("Cannot load bad: name: missing"), "{text}");
        let found = json!({ "ok": false, "errors": ["hooks: none"], "warnings": ["author: missing"] });
        assert_eq!(linted(&found), "Error: hooks: none\nWarning: author: missing\n");
        assert_eq!(linted(&json!({ "ok": true, "errors": [], "warnings": [] })), "No errors.\n");
        assert!(tested(&json!({ "error": "late", "elapsed_ms": 3 })).starts_with("Failed after 3 ms: late"));
        let counts = json!({ "hooks": { "ingest": { "calls": 3, "errors": 1, "avg_elapsed_ms": 2.5 } } });
        assert!(health(&counts).render().contains("ingest"));
        assert!(
            installed(&json!({ "name": "notes", "version": "1", "warnings": ["w"] })).contains("plugin = \"notes\"")
        );
    }

    #[test]
    fn a_source_is_a_name_a_path_or_a_url() {
        assert_eq!(place("notes").unwrap(), "notes");
        assert_eq!(place("https://x.example/a.git").unwrap(), "https://x.example/a.git");
        assert!(place("./notes").unwrap().starts_with('/'));
    }
}
