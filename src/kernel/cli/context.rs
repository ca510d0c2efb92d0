//! What every command gets: the global options, and from them the home, the configuration and the client.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::client::Client;
use super::output::Shown;
use super::resource::Routes;
use super::{Error, output, screen};
use crate::kernel::home::{Home, url_of};
use crate::kernel::settings::{Reach, Settings};

/// Options that every command takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The home directory [default: $AGENTSVC_HOME, else ~/.agentsvc]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The daemon's URL [default: the address of the home's daemon]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The API key [default: from the home's config.toml, unless --url is given]
    #[arg(long, global = true, value_name = "KEY", env = "AGENTSVC_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
    /// Print JSON instead of tables and text
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The surroundings of a command.
pub struct Context {
    global: Global,
    read: ReadSettings,
    routes: Routes,
}

/// Reads the settings of a home. Those of one whose configuration is broken are the defaults.
pub(crate) type ReadSettings = fn(&Home, &Settings) -> Result<(), Error>;

impl Context {
    /// The surroundings given by the global options.
    pub(crate) fn new(global: Global, read: ReadSettings, routes: Routes) -> Self {
        Self { global, read, routes }
    }

    /// The routes of the daemon.
    pub(crate) fn routes(&self) -> Routes {
        self.routes
    }

    /// True when output is for programs.
    pub(crate) fn json(&self) -> bool {
        self.global.json
    }

    /// Prints what came: as JSON for programs, as what `shown` makes of it for people, by a pager if that is long. It may come from
    /// anyone: the text does not drive the terminal.
    pub(crate) fn print<T: Serialize, S: Into<Shown>>(
        &self,
        came: &T,
        shown: impl FnOnce(&T) -> S,
    ) -> Result<(), Error> {
        if self.json() {
            return output::json(came);
        }
        let Shown { text, note } = shown(came).into();
        screen::show(&text)?;
        note.iter().for_each(|note| output::note(note));
        Ok(())
    }

    /// Prints what the daemon answers at a path.
    pub(crate) fn show<S: Into<Shown>>(&self, path: &str, shown: fn(&Value) -> S) -> Result<(), Error> {
        let answer = self.block_on(async { self.client()?.get(path, &[]).await })?;
        self.print(&answer, shown)
    }

    /// True when the daemon was named by URL, so that it need not be the one of the home.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.global.url.is_some()
    }

    /// The home.
    pub(crate) fn home(&self) -> Result<Home, Error> {
        Ok(Home::locate(self.global.home.as_deref())?)
    }

    /// What the configuration of a home says to domains; that of one without a file is the default.
    pub(crate) fn settings(&self, home: &Home) -> Result<Settings, Error> {
        let settings = Settings::default();
        (self.read)(home, &settings)?;
        Ok(settings)
    }

    /// The same, or the defaults where the configuration is broken.
    pub(crate) fn settings_or_default(&self, home: &Home) -> Settings {
        let settings = Settings::default();
        let _broken = (self.read)(home, &settings);
        settings
    }

    /// A client of the daemon. The key of the home's configuration is never sent to a URL given by hand, nor while no daemon
    /// has the home: who listens there then is another program.
    pub(crate) fn client(&self) -> Result<Client, Error> {
        let key = self.global.api_key.clone().filter(|key| !key.is_empty());
        if let Some(url) = &self.global.url {
            return Ok(Client::new(url, key)?.knowing(self.routes));
        }
        let home = self.home()?;
        // A configuration that is broken now need not be the one the daemon runs with; without it the
        // daemon's answer says what is missing.
        let reach = self.settings_or_default(&home).get::<Reach>();
        let listens = || reach.listen.map(url_of).ok_or_else(|| Error::Usage("--url is missing".to_owned()));
        let url = home.address().map_or_else(listens, |address| Ok(address.url()))?;
        let key = key.or_else(|| reach.key.clone().filter(|_| home.is_taken()));
        Ok(Client::new(&url, key)?.knowing(self.routes))
    }

    /// Runs `work` to its end on this thread.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        runtime()?.block_on(work)
    }
}

/// A runtime on the current thread; a client needs no more.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::io("cannot start the client"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Context, Global};
    use crate::kernel::home::{Address, Home};

    fn context(home: &std::path::Path, url: Option<&str>) -> Context {
        let global = Global { home: Some(home.to_owned()), url: url.map(str::to_owned), api_key: None, json: false };
        Context::new(global, crate::daemon::cli::read, crate::daemon::cli::routes)
    }

    #[test]
    fn the_daemon_is_found_by_url_then_address_file_then_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::new(dir.path());
        assert_eq!(context(dir.path(), None).client().unwrap().base(), "http://127.0.0.1:4545");
        fs::write(home.config_file(), "api_listen = \"127.0.0.1:81\"\napi_key = \"k\"\n").unwrap();
        let client = context(dir.path(), None).client().unwrap();
        assert_eq!((client.base(), client.has_key()), ("http://127.0.0.1:81", false), "no daemon is there");
        let lock = home.lock().unwrap();
        let _published = home.publish(&Address::own("127.0.0.1:82".parse().unwrap(), 0), &lock).unwrap();
        let client = context(dir.path(), None).client().unwrap();
        assert_eq!((client.base(), client.has_key()), ("http://127.0.0.1:82", true));
    }

    #[test]
    fn the_key_of_the_home_does_not_leave_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(Home::new(dir.path()).config_file(), "api_key = \"k\"\n").unwrap();
        let client = context(dir.path(), Some("http://192.0.2.1:1/")).client().unwrap();
        assert_eq!((client.base(), client.has_key()), ("http://192.0.2.1:1", false));
    }
}
