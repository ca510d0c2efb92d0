//! The settings of the domains in force, found by their types: whoever knows the type reads and replaces them.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::config::Merged;

/// Settings in force. Copies share them.
#[derive(Clone, Default)]
pub struct Settings(Arc<Shared>);

#[derive(Default)]
struct Shared {
    by_type: RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    /// Tells those who wait that something was replaced.
    changes: watch::Sender<()>,
}

impl Settings {
    /// The settings of this type; their defaults when nobody set them.
    pub fn get<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let found = self.0.by_type.read().get(&TypeId::of::<T>()).cloned();
        found.and_then(|found| found.downcast().ok()).unwrap_or_default()
    }

    /// Puts other settings of this type in force. Who has read the old ones keeps them.
    pub fn set<T: Any + Send + Sync>(&self, settings: T) {
        self.0.by_type.write().insert(TypeId::of::<T>(), Arc::new(settings));
        self.0.changes.send_replace(());
    }

    /// Hears of each change from now on; several at once are one.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }
}

/// Where the configuration keeps the stored files; `None`: in the home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataDir(pub Option<PathBuf>);

/// Where the daemon of a home is reached, as the configuration says it.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Where it listens unless its address file says otherwise.
    pub listen: Option<SocketAddr>,
    /// The key of its API.
    pub key: Option<String>,
}

/// Reads a text as a configuration, for those who get one from elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct ReadConfig {
    /// What it says of the stored files.
    pub data_dir: fn(&str) -> Result<DataDir, String>,
    /// What comes of the text, given first, where clients ask for it and the present text is the second.
    pub merged: fn(&str, &str) -> Result<Merged, String>,
}

impl Default for ReadConfig {
    fn default() -> Self {
        Self {
            data_dir: |_| Err("the configuration cannot be read here".to_owned()),
            merged: |_, _| Err("the configuration cannot be read here".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn each_type_has_settings_of_its_own() {
        let settings = Settings::default();
        let copy = settings.clone();
        assert!(*settings.get::<u8>() == 0 && settings.get::<String>().is_empty());
        settings.set(7_u8);
        let before = copy.get::<u8>();
        settings.set(8_u8);
        assert_eq!((*before, *copy.get::<u8>()), (7, 8));
        assert!(copy.get::<String>().is_empty());
    }

    #[test]
    fn changes_are_heard_of() {
        let settings = Settings::default();
        let changes = settings.clone().changes();
        assert!(!changes.has_changed().unwrap());
        settings.set(7_u8);
        settings.set(8_u8);
        assert!(changes.has_changed().unwrap());
    }
}
