//! What a domain brings to the daemon.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use agentsvc_api::Api;

use super::cli::Subcommand;
use super::effect::performers::Performers;
use super::egress::Web;
use super::exchange::Exchange;
use super::home::Home;
use super::sandbox::{Commands, Workspaces};
use super::settings::Settings;
use super::store::deferred::DeferredStore;
use super::vault::Vault;

/// One domain: its folder under `src/` exports one of these as `DOMAIN`, and the list of all is `DOMAINS` of the crate.
#[derive(Clone, Copy)]
pub struct Domain {
    /// The folder's name, the same in every crate.
    pub name: &'static str,
    /// The domains that this one names, in this crate and in those below.
    pub uses: &'static [&'static str],
    /// What it brings for other domains, such as tools of agents.
    pub brings: fn(&mut Brought),
    /// Says what carries out its effects.
    pub performers: fn(&mut Performers),
    /// Subcommands of the command line.
    pub commands: &'static [Subcommand],
    /// Gives the API what it has of this domain, before requests are answered.
    pub(crate) open: fn(&Opening<'_>) -> io::Result<()>,
}

impl Domain {
    /// A domain that brings nothing.
    pub const EMPTY: Self =
        Self { name: "", uses: &[], brings: |_| {}, performers: |_| {}, commands: &[], open: |_| Ok(()) };
}

/// What domains bring for one another, by type.
#[derive(Default)]
pub struct Brought(HashMap<TypeId, Box<dyn Any>>);

impl Brought {
    /// Adds `items` behind those that other domains brought.
    pub(crate) fn add<T: 'static>(&mut self, items: impl IntoIterator<Item = T>) {
        let list = self.0.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(Vec::<T>::new()));
        if let Some(list) = list.downcast_mut::<Vec<T>>() {
            list.extend(items);
        }
    }

    /// What was brought of this type, in the order of the domains.
    pub(crate) fn take<T: 'static>(&mut self) -> Vec<T> {
        let list = self.0.remove(&TypeId::of::<T>()).and_then(|list| list.downcast().ok());
        list.map_or_else(Vec::new, |list| *list)
    }
}

/// What a domain finds when the daemon starts.
pub(crate) struct Opening<'a> {
    pub(crate) api: &'a Arc<Api>,
    pub(crate) home: &'a Home,
    /// Where the stored files are.
    pub(crate) data_dir: &'a Path,
    /// What the configuration in force says to domains.
    pub(crate) settings: &'a Settings,
    /// The store of the present world.
    pub(crate) store: &'a Arc<DeferredStore>,
    pub(crate) workspaces: &'a Workspaces,
    /// The present world.
    pub(crate) exchange: &'a Arc<Exchange>,
    /// Secrets.
    pub(crate) vault: &'a Vault,
    /// The way to the web.
    pub(crate) web: &'a Web,
    /// What runs programs in the sandbox.
    pub(crate) commands: &'a Commands,
}

impl Opening<'_> {
    /// Lets routes ask `service`. Name the type where it is a trait.
    pub(crate) fn provide<T: ?Sized + Send + Sync + 'static>(&self, service: Arc<T>) {
        self.api.services.provide(service);
    }
}
