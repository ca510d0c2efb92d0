//! `init`: the home, its commented configuration, and the agent types that come with the daemon.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use agentsvc_systems::kernel::record::hex;
use clap::Args;
use serde_json::json;

use crate::config::{ChangeError, Config, ConfigFile, Document as _, Editable as _};
use crate::daemon::launch;
use crate::kernel::cli::context::Context;
use crate::kernel::cli::output;
use crate::kernel::cli::{Error, Run};
use crate::kernel::home::Home;

/// Bytes of randomness of a key.
const KEY_BYTES: usize = 32;

/// Options of `init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Also write a new random api_key into config.toml, which only you can read; this program finds it there
    #[arg(long)]
    key: bool,
}

impl Run for Init {
    fn run(self, context: &Context) -> Result<(), Error> {
        let home = context.home()?;
        let path = home.config_file();
        // A file may be wrong for want of a key.
        let is_there = path.exists();
        if self.key && is_there {
            add_key(&home)?;
        }
        let data_dir = Config::load(&path)?.config.data_dir;
        let (created, types) = launch::install(&home, data_dir.as_deref())?;
        if self.key && !is_there {
            add_key(&home)?;
        }
        if context.json() {
            return output::json(&json!({
                "home": home.root(), "config": path, "config_created": created, "agent_types_created": types,
                "api_key_created": self.key,
            }));
        }
        let deed = if created { "wrote" } else { "kept" };
        output::line(&format!("{deed} {}", path.display()))?;
        if types > 0 {
            output::line(&format!("wrote {types} agent types to {}", home.agent_types_dir().display()))?;
        }
        if self.key {
            output::line(
                "wrote a new api_key to config.toml; a running daemon takes it with `agentsvc config reload`",
            )?;
        }
        output::line("next: `agentsvc start`, then `agentsvc chat` in another terminal")
    }
}

/// Writes a new key into the configuration, which nobody else can read.
fn add_key(home: &Home) -> Result<(), Error> {
    let file = ConfigFile::new(home);
    let has_key = |text: &str| text.parse::<toml::Table>().is_ok_and(|table| table.get("api_key").is_some_and(is_set));
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Error::Failed(format!("no random numbers: {error}")))?;
    fs::set_permissions(file.path(), Permissions::from_mode(0o600)).map_err(Error::io("cannot protect config.toml"))?;
    let added = file.change(|text| {
        if has_key(text) {
            return Ok((text.to_owned(), false));
        }
        let text = if text.is_empty() { Config::template() } else { text.to_owned() };
        let (after, _) = Config::changed(&text, &["api_key".to_owned()], &json!(hex(&bytes)), file.path())?;
        Ok::<_, ChangeError>((after, true))
    })?;
    let there = || Error::Failed("config.toml has an api_key; delete it first to make a new one".to_owned());
    if added { Ok(()) } else { Err(there()) }
}

fn is_set(value: &toml::Value) -> bool {
    value.as_str() != Some("")
}
