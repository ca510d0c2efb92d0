//! Who carries out which effect: each domain says it for its own.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::sync::Arc;

use agentsvc_components::kernel::effect::{Abort, AnyEffect, Effect};
use agentsvc_components::kernel::job::RunJob;

use super::{Calls, job};

/// Begins an effect. Never blocks.
type Begin = Box<dyn Fn(AnyEffect) + Send + Sync>;

/// Carries out effects by their types, with what the daemon provides.
pub struct Performers {
    calls: Arc<Calls>,
    parts: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    /// Few, so that a look at each costs less than a hash.
    begins: Vec<(TypeId, Begin)>,
    /// What carries out the tries of each kind of jobs.
    pub(super) jobs: Vec<(&'static str, job::Run)>,
}

impl Performers {
    /// Gives up calls, and nothing else yet.
    pub(crate) fn new(calls: Arc<Calls>) -> Self {
        let mut performers =
            Self { calls: Arc::clone(&calls), parts: HashMap::new(), begins: Vec::new(), jobs: Vec::new() };
        performers.on(move |abort: Box<Abort>| calls.in_flight.abort(abort.0));
        performers
    }

    /// What all calls share.
    pub(crate) fn calls(&self) -> Arc<Calls> {
        Arc::clone(&self.calls)
    }

    /// Provides a part for the performers.
    pub(crate) fn provide<T: Clone + Send + Sync + 'static>(&mut self, part: T) {
        self.parts.insert(TypeId::of::<T>(), Box::new(part));
    }

    /// A part that was provided: by the daemon, or by a domain before this one in the list.
    pub(crate) fn part<T: Clone + Send + Sync + 'static>(&self) -> T {
        let part = self.parts.get(&TypeId::of::<T>()).and_then(|part| part.downcast_ref::<T>());
        part.cloned().unwrap_or_else(|| panic!("no {} was provided for the performers", type_name::<T>()))
    }

    /// From now on `begin` carries out every `E`. It never blocks.
    pub(crate) fn on<E: Effect>(&mut self, begin: impl Fn(Box<E>) + Send + Sync + 'static) {
        let begin: Begin = Box::new(move |effect| {
            if let Ok(effect) = effect.take::<E>() {
                begin(effect);
            }
        });
        self.begins.push((TypeId::of::<E>(), begin));
    }

    /// Begins one effect. Never blocks; effects must come in the order of their steps.
    pub(crate) fn perform(&self, effect: AnyEffect) {
        let effect = match effect.take::<RunJob>() {
            Ok(job) => return job::begin(self, *job),
            Err(effect) => effect,
        };
        let kind = effect.kind();
        match self.begins.iter().find(|(of, _)| *of == kind) {
            Some((_, begin)) => begin(effect),
            None => tracing::error!(?effect, "no domain carries out this effect"),
        }
    }
}
