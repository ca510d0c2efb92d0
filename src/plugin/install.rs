//! Plugins that are fetched, checked and put in their place; also those made from templates, and those that take the place of
//! an older version.

use std::path::PathBuf;
use std::sync::Arc;

use agentsvc_api::http::error::Error;
use agentsvc_api::http::files::FilesError;
use agentsvc_api::plugin::error_codes::{PLUGIN_BUSY, PLUGIN_EXISTS, PLUGIN_INVALID, PLUGIN_NOT_FOUND};
use agentsvc_api::plugin::plugins::{PluginDescription, PluginSource, PreparedPlugin, Scaffold};
use agentsvc_api::skill_source::sources::SourceError;

use super::hook::Hook;
use super::library::{Library, PLUGINS_MAX, State, text_of};
use super::lint::said;
use super::manifest::{FILE, parse};
use super::plugin::now;
use super::runtime::Runtime;
use super::scaffold;
use super::service::Service;
use super::signature::{self, compare, covers};
use crate::skill_scan::{ScanError, scan_folder};
use crate::skill_source::RegistryPlace;
use crate::skill_source::folders::{FolderError, Put, check_name};
use crate::skill_source::staging::Staging;

/// Where the plugins are in the registry.
pub(super) const PLUGINS: &str = "plugins";

/// A plugin that passed its checks.
struct Ready {
    library: Arc<Library>,
    changed: Box<dyn Fn() + Send + Sync>,
    staging: Staging,
    description: PluginDescription,
    /// What is kept of whether its hooks may use the network.
    network: Option<bool>,
    put: Put,
}

impl Service {
    /// Fetches and checks a plugin. `upgrade`: it takes the place of the plugin of this name. `network`: its hooks may use it.
    pub(super) async fn fetched(
        self: Arc<Self>,
        source: PluginSource,
        upgrade: Option<String>,
        network: bool,
    ) -> Result<Box<dyn PreparedPlugin>, Error> {
        let said = said_source(&source);
        let folders = self.library.folders.clone();
        let fetched = match source {
            PluginSource::Local(path) => self.fetcher().path(folders, PathBuf::from(path)).await,
            PluginSource::Git { url, branch, path } => self.fetcher().git(folders, (&url, branch, path)).await,
            PluginSource::Registry(name) => {
                check_name(&name).map_err(|_| Error::bad_field("name", "name: must be the name of a plugin"))?;
                let place = self.settings().get::<RegistryPlace>();
                let registry = place.find().await.map_err(|error| of_source(error, &name))?;
                let found = registry.join(PLUGINS).join(&name);
                if !found.join(FILE).is_file() {
                    return Err(Error::of(PLUGIN_NOT_FOUND, format!("the registry has no plugin {name:?}")));
                }
                self.fetcher().path(folders, found).await
            }
        };
        let (staging, warnings) = fetched.map_err(|error| of_source(error, "source"))?;
        let service = Arc::clone(&self);
        blocking(move || service.ready(staging, (said, warnings), upgrade, Some(network))).await
    }

    /// Checks what was staged. Blocks on the disk.
    fn ready(
        &self,
        staging: Staging,
        (source, mut warnings): (String, Vec<String>),
        upgrade: Option<String>,
        network: Option<bool>,
    ) -> Result<Box<dyn PreparedPlugin>, Error> {
        let invalid = |why: String| Error::of(PLUGIN_INVALID, why);
        let text = text_of(&staging.path()).map_err(invalid)?;
        let manifest = parse(&text).map_err(invalid)?;
        let name = manifest.name.clone();
        if upgrade.as_ref().is_some_and(|wanted| *wanted != name) {
            return Err(invalid(format!("name: the source holds the plugin {name:?}")));
        }
        for (hook, file) in &manifest.hooks {
            if !staging.path().join(file).is_file() {
                return Err(invalid(format!("hooks.{}: {file} does not exist", hook.as_str())));
            }
        }
        let files = staging.files().map_err(|error| of_folder(error, &name))?;
        compare(&files, &manifest.integrity, false)
            .map_err(|message| SourceError::Checksum { message, of_hub: false })?;
        let is_signed = self.library.check_signature(&staging.path(), text.as_bytes()).map_err(invalid)?;
        self.library.check_required(is_signed).map_err(invalid)?;
        if is_signed {
            covers(&files, &manifest.integrity).map_err(invalid)?;
        } else if upgrade.is_some()
            && self.library.present().plugins.get(&name).is_some_and(|present| present.is_signed)
        {
            return Err(invalid(format!("{}: the plugin is signed, and its new version is not", signature::FILE)));
        }
        warnings.extend(scanned(&staging)?);
        warnings.extend(manifest.warnings.iter().cloned());
        let wants_network = manifest.rules.allow_network;
        if wants_network && network == Some(false) {
            warnings.push(NO_NETWORK.to_owned());
        }
        let put = match upgrade {
            Some(_) => Put::Replace,
            None => {
                self.check_place(&name)?;
                Put::New
            }
        };
        let may_use_it = wants_network && network.unwrap_or(true);
        let description = PluginDescription { name, version: manifest.version, source, network: may_use_it, warnings };
        let (library, teller) = (Arc::clone(&self.library), Arc::clone(&self.teller));
        let changed = Box::new(move || teller.changed());
        Ok(Box::new(Ready { library, changed, staging, description, network, put }))
    }

    /// Is there a place for a new plugin of this name?
    fn check_place(&self, name: &str) -> Result<(), Error> {
        let present = self.library.present();
        if present.plugins.contains_key(name)
            || present.failed.contains_key(name)
            || self.library.folders.path(name).exists()
        {
            return Err(exists(name));
        }
        if present.plugins.len() + present.failed.len() >= PLUGINS_MAX {
            return Err(Error::of(PLUGIN_BUSY, format!("the limit of {PLUGINS_MAX} plugins is reached")));
        }
        Ok(())
    }

    /// A plugin from templates. Blocks on the disk.
    pub(super) fn scaffolded(&self, scaffold: Scaffold) -> Result<Box<dyn PreparedPlugin>, Error> {
        let Scaffold { name, description, runtime, hooks } = scaffold;
        check_name(&name).map_err(|_| {
            Error::bad_field(
                "name",
                "name: must be 1 to 200 of A-Z, a-z, 0-9, `.`, `_` and `-`, the first a letter or digit",
            )
        })?;
        let runtime = Runtime::of(&runtime).ok_or_else(|| {
            let all = Runtime::ALL.map(Runtime::as_str).join(", ");
            Error::bad_field("runtime", format!("runtime: must be one of {all}"))
        })?;
        let known = |hook: &String| {
            let all = Hook::ALL.map(Hook::as_str).join(", ");
            Hook::parse(hook).ok_or_else(|| Error::bad_field("hooks", format!("hooks: must be of {all}")))
        };
        let hooks = hooks.iter().map(known).collect::<Result<Vec<_>, _>>()?;
        self.check_place(&name)?;
        let mut staging = self.library.folders.stage().map_err(|error| of_folder(error, &name))?;
        for (path, text, runs) in scaffold::files(&name, &description, runtime, &hooks) {
            staging.write(&path, &mut text.as_bytes(), runs).map_err(|error| of_folder(error, &name))?;
        }
        // Its owner is about to write it: no sums are kept of its files.
        self.ready(staging, (SCAFFOLD.to_owned(), Vec::new()), None, None)
    }
}

/// What is said of a plugin that asks for the network and does not get it.
const NO_NETWORK: &str =
    "the plugin asks for the network and may not use it; to allow that, upgrade it with allow_network";
/// The source of a plugin that was made from a template.
const SCAFFOLD: &str = "scaffold";

impl PreparedPlugin for Ready {
    fn description(&self) -> PluginDescription {
        self.description.clone()
    }

    fn put(self: Box<Self>) -> Result<String, Error> {
        let Self { library, changed, staging, description, network, put } = *self;
        let PluginDescription { name, source, .. } = description;
        let failed = |error| of_folder(error, &name);
        let sums = if source == SCAFFOLD { Vec::new() } else { staging.files().map_err(failed)? };
        let lock = library.folders.lock(&name).map_err(failed)?;
        let _changing = library.changing.lock();
        let io = |error: std::io::Error| failed(FolderError::from(error));
        let former = library.state(&name).map_err(io)?;
        let state = State {
            is_disabled: put == Put::Replace && former.is_disabled,
            source,
            installed_at: now().to_string(),
            network,
            sums: sums.into_iter().map(|file| (file.path, file.sha256)).collect(),
        };
        // The sums come first: after a kill between the two, the folder does not fit them and is not used. With a new
        // plugin there is no folder then.
        library.keep_state(&name, &state).map_err(io)?;
        let path = match staging.put(&lock, put) {
            Ok(path) => path,
            Err(error) => {
                library.keep_state(&name, &former).map_err(io)?;
                return Err(failed(error));
            }
        };
        library.read_again(&name);
        changed();
        Ok(path.display().to_string())
    }
}

/// What the scan warns of.
fn scanned(staging: &Staging) -> Result<Vec<String>, Error> {
    let scan = scan_folder(&staging.path()).map_err(|error| match error {
        ScanError::TooLarge(why) => Error::of(PLUGIN_INVALID, why),
        ScanError::Unreadable(name, error) => {
            tracing::warn!(name, %error, "a plugin could not be scanned");
            Error::from(FilesError::Failed)
        }
    })?;
    if let Some(why) = scan.why() {
        let findings = scan.refused.iter().map(said).collect();
        return Err(SourceError::Blocked { message: format!("the scan refuses the plugin: {why}"), findings }.into());
    }
    Ok(scan.warnings.iter().map(said).collect())
}

/// A source in one line, from which it can be fetched again.
fn said_source(source: &PluginSource) -> String {
    match source {
        PluginSource::Registry(name) => format!("registry:{name}"),
        PluginSource::Local(path) => path.clone(),
        PluginSource::Git { url, branch, path } => {
            let branch = branch.as_ref().map(|branch| format!("@{branch}")).unwrap_or_default();
            let path = path.as_ref().map(|path| format!("#{path}")).unwrap_or_default();
            format!("git+{url}{branch}{path}")
        }
    }
}

/// The source of a line that [`said_source`] gave.
pub(super) fn source_of(said: &str) -> Option<PluginSource> {
    if let Some(name) = said.strip_prefix("registry:") {
        return Some(PluginSource::Registry(name.to_owned()));
    }
    if let Some(rest) = said.strip_prefix("git+") {
        let (rest, path) = rest.split_once('#').map_or((rest, None), |(rest, path)| (rest, Some(path.to_owned())));
        let (url, branch) = match rest.rsplit_once('@').filter(|(url, _)| url.contains("://") && url.len() > 8) {
            Some((url, branch)) => (url, Some(branch.to_owned())),
            None => (rest, None),
        };
        return Some(PluginSource::Git { url: url.to_owned(), branch, path });
    }
    said.starts_with('/').then(|| PluginSource::Local(said.to_owned()))
}

fn exists(name: &str) -> Error {
    Error::of(PLUGIN_EXISTS, format!("plugin {name:?} is already installed; uninstall it first"))
}

/// What went wrong with a folder, in the words of plugins.
pub(super) fn of_folder(error: FolderError, name: &str) -> Error {
    match error {
        FolderError::Exists(name) => exists(&name),
        FolderError::Missing(name) => super::service::missing(&name),
        FolderError::Busy(_) => {
            Error::of(PLUGIN_BUSY, format!("another change of plugin {name:?} is under way; try again later"))
        }
        FolderError::Full => Error::from(FilesError::Full("no space left for the plugin".to_owned())),
        FolderError::TooLarge(why) | FolderError::Unreadable(why) => Error::of(PLUGIN_INVALID, why),
        FolderError::Refused(why) => refused(why).into(),
        other @ FolderError::Disk(_) => SourceError::from(other).into(),
    }
}

/// A plugin whose files break a rule.
fn refused(why: String) -> SourceError {
    SourceError::Blocked { message: format!("the plugin is refused: {why}"), findings: vec![why] }
}

fn of_source(error: SourceError, name: &str) -> Error {
    match error {
        SourceError::Exists(name) => exists(&name),
        SourceError::Busy(_) => {
            Error::of(PLUGIN_BUSY, format!("another change of plugin {name:?} is under way; try again later"))
        }
        SourceError::TooLarge(why) | SourceError::Unreadable(why) | SourceError::Manifest(why) => {
            Error::of(PLUGIN_INVALID, why)
        }
        SourceError::Blocked { findings, .. } => refused(findings.join("; ")).into(),
        other => other.into(),
    }
}

/// Work that waits for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "work on a plugin was interrupted");
        Err(FilesError::Failed.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_can_be_fetched_again() {
        let git = |branch: Option<&str>, path: Option<&str>| PluginSource::Git {
            url: "https://git.example/a.git".to_owned(),
            branch: branch.map(str::to_owned),
            path: path.map(str::to_owned),
        };
        let all = [
            PluginSource::Registry("a".to_owned()),
            PluginSource::Local("/srv/a".to_owned()),
            git(None, None),
            git(Some("main"), None),
            git(Some("main"), Some("plugins/a")),
            git(None, Some("a")),
        ];
        for source in all {
            assert_eq!(source_of(&said_source(&source)), Some(source));
        }
        assert_eq!(source_of(SCAFFOLD), None);
        assert_eq!(source_of(""), None);
    }
}
