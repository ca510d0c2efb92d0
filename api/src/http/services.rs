//! The services that routes reach through the API, each found by its type. Domains define them; the daemon provides those
//! that touch the disk, the network or the world.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

/// One service per type. A lookup costs a read lock and a hash.
#[derive(Default)]
pub struct Services(RwLock<HashMap<TypeId, Box<dyn Any + Send + Sync>>>);

impl Services {
    /// The service of type `T`; `None` while nobody provides it.
    #[must_use]
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.read().get(&TypeId::of::<T>())?.downcast_ref().cloned()
    }

    /// Provides the service of type `T` from now on, in place of an earlier one. Name the type where it is a trait:
    /// `provide::<dyn Templates>(Arc::new(files))`.
    pub fn provide<T: ?Sized + Send + Sync + 'static>(&self, service: Arc<T>) {
        self.0.write().insert(TypeId::of::<T>(), Box::new(service));
    }

    /// Nobody provides the service of type `T` any more.
    pub fn withdraw<T: ?Sized + Send + Sync + 'static>(&self) {
        self.0.write().remove(&TypeId::of::<T>());
    }

    /// The state of type `T`, made when it is first asked for.
    #[must_use]
    pub fn state<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        if let Some(state) = self.get() {
            return state;
        }
        let mut services = self.0.write();
        let state = services.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(Arc::<T>::default()));
        state.downcast_ref().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    trait Greets: Send + Sync {
        fn greeting(&self) -> String;
    }

    impl Greets for String {
        fn greeting(&self) -> String {
            format!("hello from {self}")
        }
    }

    #[test]
    fn a_service_is_found_by_its_trait_and_can_be_replaced() {
        let services = Services::default();
        assert!(services.get::<dyn Greets>().is_none());
        services.provide::<dyn Greets>(Arc::new("one".to_owned()));
        services.provide(Arc::new("another type".to_owned()));
        services.provide::<dyn Greets>(Arc::new("two".to_owned()));
        assert_eq!(services.get::<dyn Greets>().unwrap().greeting(), "hello from two");
        services.withdraw::<dyn Greets>();
        assert!(services.get::<dyn Greets>().is_none());
        assert_eq!(*services.get::<String>().unwrap(), "another type");
    }

    #[test]
    fn state_is_made_once_and_shared() {
        let services = Services::default();
        services.state::<AtomicU32>().fetch_add(1, Ordering::Relaxed);
        assert_eq!(services.state::<AtomicU32>().fetch_add(1, Ordering::Relaxed), 1);
    }
}
