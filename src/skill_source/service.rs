//! The sources of skills as routes ask for them.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use agentsvc_api::skill_source::sources::{
    Browse, Description, Hub, HubCode, HubPage, HubSkill, MarketplacePage, Prepared, RegistrySkill, Request,
    SkillWarning, SourceError, Sources,
};
use futures_util::future::BoxFuture;
use reqwest::Url;

use super::cache::Cache;
use super::config;
use super::convert::Origin;
use super::fetch::{self, Fetched, Remote};
use super::folders::{Folders, Put, check_name};
use super::hub::{self, Hubs, Named};
use super::hub_install::HubInstall;
use super::look::{self, Looked};
use super::marketplace::{self, Marketplaces};
use super::registry::{self, Registry};
use super::source::{Source, kind_of};
use super::wire::{Whose, Wire, blocking};
use super::{git, site};
use crate::kernel::sandbox::Commands;
use crate::kernel::settings::Settings;
use crate::skill::Library;

/// The sources of skills.
pub(super) struct Service {
    folders: Folders,
    library: Arc<Library>,
    wire: Wire,
    commands: Commands,
    settings: Settings,
    registry: Arc<Registry>,
    /// The skills of the registry, by its place.
    listed: Cache<Vec<RegistrySkill>>,
    hubs: Hubs,
    marketplaces: Marketplaces,
}

impl Service {
    pub(super) fn new(
        (folders, library): (Folders, Arc<Library>),
        (wire, commands): (Wire, Commands),
        settings: Settings,
        registry: Arc<Registry>,
    ) -> Self {
        let (listed, hubs, marketplaces) = (Cache::default(), Hubs::default(), Marketplaces::default());
        Self { folders, library, wire, commands, settings, registry, listed, hubs, marketplaces }
    }

    /// Brings back what a kill left between two steps, and removes the rest in the background.
    ///
    /// # Errors
    /// The disk's, or no thread can be started.
    pub(super) fn clean(&self) -> std::io::Result<()> {
        let (skills, registry) = (self.folders.leftovers()?, self.registry.leftovers()?);
        let library = Arc::clone(&self.library);
        let clean = move || {
            if skills.is_restored {
                library.reload();
            }
            skills.remove();
            registry.remove();
        };
        thread::Builder::new().name("skill-leftovers".to_owned()).spawn(clean).map(drop)
    }

    async fn prepare_source(self: Arc<Self>, request: Request) -> Result<Box<dyn Prepared>, SourceError> {
        let Request { field, source, version, verify } = request;
        let source =
            Source::parse(&source, version.as_deref()).map_err(|message| SourceError::Wrong { field, message })?;
        let fetched = self.fetch(source, (field, verify)).await?;
        let service = Arc::clone(&self);
        let looked = blocking(move || {
            let looked = look::look(fetched)?;
            // Said before anything is noted; what another request puts there meanwhile is found later.
            match service.installed(&looked.description.name) {
                Some(_) => Err(SourceError::Exists(looked.description.name)),
                None => Ok(looked),
            }
        })
        .await?;
        Ok(Box::new(Ready { looked, folders: self.folders.clone(), library: Arc::clone(&self.library) }))
    }

    async fn fetch(&self, source: Source, (field, verify): (&'static str, bool)) -> Result<Fetched, SourceError> {
        let (wire, folders) = (&self.wire, self.folders.clone());
        let whose = Whose::Client(field);
        match source {
            Source::Path(path) => blocking(move || fetch::of_path(&folders, &path, verify)).await,
            Source::Archive { url, inner } => {
                let fallback = stem(&url);
                let origin = Origin { kind: "local", fallback, ..Origin::default() };
                let remote = Remote { url: url.as_str(), whose, inner, sum_beside: verify, sums_within: verify };
                fetch::of_archive(wire, folders, remote, origin).await
            }
            Source::GitHub { owner, repo, reference, inner } => {
                let base = self.settings.get::<config::SkillSources>().github_url.clone();
                let url = format!("{base}/{owner}/{repo}/archive/{reference}.tar.gz");
                let named = inner.as_deref().and_then(|inner| inner.rsplit('/').next());
                let fallback = named.unwrap_or(&repo).to_owned();
                let origin = Origin { kind: "local", fallback, ..Origin::default() };
                let remote = Remote { url: &url, whose: Whose::Hub, inner, sum_beside: false, sums_within: verify };
                fetch::of_archive(wire, folders, remote, origin).await
            }
            Source::Git { url, inner } => {
                let repository = git::Repository { url: &url, branch: None, inner };
                git::fetch(wire, &self.commands, folders, repository, (field, verify)).await
            }
            Source::Site { index, name } => site::fetch(wire, folders, (&index, name.as_deref()), field).await,
            Source::Registry(name) => {
                let registry = self.registry_place().await?;
                blocking(move || registry::fetch_skill(&folders, &registry, &name, verify)).await
            }
            Source::Hub { hub, owner, slug, version } => {
                let named = Named::of(hub, owner, slug, version);
                let base = hub::base(&self.settings, hub);
                let said = self.hubs.said(wire, &base, &named).await?;
                HubInstall { wire, folders, base, named, verify }.fetch(said).await
            }
        }
    }

    async fn registry_place(&self) -> Result<PathBuf, SourceError> {
        let settings = self.settings.get::<config::Registry>();
        self.registry.place(&self.wire, &settings).await
    }

    async fn registry_skills(&self) -> Result<Vec<RegistrySkill>, SourceError> {
        let place = self.registry_place().await?;
        let key = place.to_string_lossy().into_owned();
        let found = match self.listed.get(&key) {
            Some(found) => found,
            None => {
                let listed = blocking(move || {
                    registry::list(&place).map_err(|error| {
                        tracing::warn!(%error, "the registry cannot be read");
                        SourceError::Failed("the registry cannot be read".to_owned())
                    })
                });
                self.listed.put(key, listed.await?)
            }
        };
        let catalog = self.library.catalog();
        let with_state = found.iter().map(|skill| {
            let is_installed = catalog.iter().any(|installed| *installed.name == *skill.name);
            RegistrySkill { is_installed, ..skill.clone() }
        });
        Ok(with_state.collect())
    }

    /// The folder of the installed skill of this name.
    fn installed(&self, name: &str) -> Option<PathBuf> {
        let catalog = self.library.catalog();
        let named = catalog.iter().find(|skill| *skill.name == *name).map(|skill| skill.folder.clone());
        named.or_else(|| check_name(name).is_ok().then(|| self.folders.path(name)).filter(|path| path.exists()))
    }

    /// The name of its folder.
    fn folder_of(&self, name: &str) -> Result<String, SourceError> {
        let missing = || SourceError::NotFound(format!("skill \"{name}\" is not installed"));
        let folder = self.installed(name).ok_or_else(missing)?;
        if folder.parent() != Some(self.folders.root()) {
            return Err(SourceError::Bundled(name.to_owned()));
        }
        folder.file_name().and_then(|name| name.to_str()).map(str::to_owned).ok_or_else(missing)
    }
}

impl Sources for Service {
    fn prepare(self: Arc<Self>, request: Request) -> BoxFuture<'static, Result<Box<dyn Prepared>, SourceError>> {
        Box::pin(self.prepare_source(request))
    }

    fn removable(&self, name: &str) -> Result<(), SourceError> {
        self.folder_of(name).map(drop)
    }

    fn remove(&self, name: &str) -> Result<(), SourceError> {
        let lock = self.folders.lock(&self.folder_of(name)?)?;
        lock.remove()?;
        drop(lock);
        self.library.reload();
        Ok(())
    }

    fn registry(self: Arc<Self>) -> BoxFuture<'static, Result<Vec<RegistrySkill>, SourceError>> {
        Box::pin(async move { self.registry_skills().await })
    }

    fn marketplace(
        self: Arc<Self>,
        query: String,
        page: usize,
    ) -> BoxFuture<'static, Result<MarketplacePage, SourceError>> {
        Box::pin(async move {
            let base = self.settings.get::<config::SkillSources>().skills_sh_url.clone();
            let (registry, skills_sh) =
                tokio::join!(self.registry_skills(), self.marketplaces.skills_sh(&self.wire, &base, &query));
            marketplace::page(registry.map(|skills| marketplace::in_registry(skills, &query)), skills_sh, page)
        })
    }

    fn search(
        self: Arc<Self>,
        hub: Hub,
        query: String,
        page: usize,
    ) -> BoxFuture<'static, Result<HubPage, SourceError>> {
        Box::pin(async move {
            let base = hub::base(&self.settings, hub);
            self.hubs.search(&self.wire, &base, (&query, page)).await
        })
    }

    fn browse(self: Arc<Self>, hub: Hub, browse: Browse) -> BoxFuture<'static, Result<HubPage, SourceError>> {
        Box::pin(async move {
            let base = hub::base(&self.settings, hub);
            self.hubs.browse(&self.wire, &base, &browse).await
        })
    }

    fn skill(self: Arc<Self>, hub: Hub, slug: String) -> BoxFuture<'static, Result<HubSkill, SourceError>> {
        Box::pin(async move {
            let (named, base) = (Named::parse(hub, &slug)?, hub::base(&self.settings, hub));
            let said = self.hubs.said(&self.wire, &base, &named).await?;
            let kind = kind_of(hub);
            let catalog = self.library.catalog();
            let mut from_hub = catalog.iter().filter(|skill| *skill.source.kind == *kind);
            let is_installed = from_hub.any(|skill| skill.source.slug.as_deref() == Some(said.item.slug.as_str()));
            Ok(hub::shown(said, is_installed))
        })
    }

    fn code(self: Arc<Self>, hub: Hub, slug: String) -> BoxFuture<'static, Result<HubCode, SourceError>> {
        Box::pin(async move {
            let (named, base) = (Named::parse(hub, &slug)?, hub::base(&self.settings, hub));
            self.hubs.code(&self.wire, &base, &named).await
        })
    }
}

/// A skill that waits for its place.
struct Ready {
    looked: Looked,
    folders: Folders,
    library: Arc<Library>,
}

impl Prepared for Ready {
    fn description(&self) -> &Description {
        &self.looked.description
    }

    fn install(self: Box<Self>) -> Result<Description, SourceError> {
        let Looked { staging, mut description } = self.looked;
        let lock = self.folders.lock(&description.name)?;
        staging.put(&lock, Put::New)?;
        drop(lock);
        self.library.reload();
        let is_there = self.library.catalog().iter().any(|skill| *skill.name == *description.name);
        if !is_there {
            let message = "It is installed and not in use: another skill has its name, or its files cannot be read.";
            description.warnings.push(SkillWarning { severity: "critical".to_owned(), message: message.to_owned() });
        }
        Ok(description)
    }
}

/// The name of an archive without its endings.
fn stem(url: &Url) -> String {
    let name = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let ends = [".tar.gz", ".tgz", ".zip", ".tar"];
    ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn an_archive_names_the_skill_that_has_no_name() {
        for (url, name) in
            [("https://x/a/demo.tar.gz?v=1", "demo"), ("https://x/demo-1.0.zip", "demo-1.0"), ("https://x/d", "d")]
        {
            assert_eq!(stem(&url.parse().unwrap()), name);
        }
    }
}
