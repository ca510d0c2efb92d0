//! Shared manifests: agents with equal manifests hold one value, stored once.

use std::collections::BTreeMap;
use std::sync::Arc;

use bevy_ecs::prelude::{Resource, World};
use hashbrown::HashMap;

use agentsvc_components::Refusal;
use agentsvc_components::agent::Agent;
use agentsvc_components::manifest::{Interned, Manifest, ManifestHash, SharedManifest};

use super::{error_codes, limits, rows};
use crate::kernel::check::Faults;
use crate::kernel::footprint::{KindFootprint, SAMPLES, entries};
use crate::kernel::outbox::Emit;
use crate::kernel::quota::{Quota, Used};

/// Every manifest some agent has, with the number of agents that have it.
#[derive(Resource, Default)]
pub(crate) struct Manifests {
    by_hash: HashMap<ManifestHash, (SharedManifest, u32)>,
    /// Bytes of their texts.
    pub(super) bytes: usize,
}

/// What manifests may take, those of equal agents once.
const QUOTA: Quota =
    Quota { count: usize::MAX, bytes: limits::MANIFESTS_BYTES_MAX, what: "manifests", code: error_codes::AGENTS_FULL };

impl Manifests {
    /// Every manifest.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Interned> {
        self.by_hash.values().map(|(shared, _)| &**shared)
    }

    /// Takes a stored manifest in without an owner yet (restore).
    pub(crate) fn load(&mut self, hash: ManifestHash, manifest: Manifest) {
        self.bytes += manifest.bytes();
        if let Some((before, _)) = self.by_hash.insert(hash, (Arc::new(Interned { hash, manifest }), 0)) {
            self.bytes -= before.manifest.bytes();
        }
    }

    /// Refuses `manifest` where there is no room for it. `instead_of` is the manifest that its agent has now.
    pub(super) fn admit(
        &self,
        manifest: &Manifest,
        hash: ManifestHash,
        instead_of: Option<ManifestHash>,
    ) -> Result<(), Refusal> {
        if self.by_hash.contains_key(&hash) {
            return Ok(());
        }
        let before = instead_of.and_then(|before| self.get(before)).filter(|(_, owners)| *owners == 1);
        let freed = before.map_or(0, |(shared, _)| shared.manifest.bytes());
        QUOTA.admit(self.used(), 0, manifest.bytes().saturating_sub(freed))
    }

    /// Refuses manifests of new agents where there is no room for all of them.
    pub(super) fn admit_all<'a>(
        &self,
        manifests: impl Iterator<Item = (&'a Manifest, ManifestHash)>,
    ) -> Result<(), Refusal> {
        let new: BTreeMap<ManifestHash, usize> = manifests
            .filter(|(_, hash)| !self.by_hash.contains_key(hash))
            .map(|(manifest, hash)| (hash, manifest.bytes()))
            .collect();
        QUOTA.admit(self.used(), 0, new.values().sum())
    }

    fn used(&self) -> Used {
        Used { count: self.len(), bytes: self.bytes }
    }

    fn remove(&mut self, hash: ManifestHash) {
        if let Some((shared, _)) = self.by_hash.remove(&hash) {
            self.bytes -= shared.manifest.bytes();
        }
    }

    /// One more owner of a manifest that is already known.
    pub(crate) fn adopt(&mut self, hash: ManifestHash) -> Option<SharedManifest> {
        let (shared, owners) = self.by_hash.get_mut(&hash)?;
        *owners += 1;
        Some(Arc::clone(shared))
    }

    /// How many different manifests there are.
    pub(crate) fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Their hashes, in no order.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = ManifestHash> + '_ {
        self.by_hash.keys().copied()
    }

    /// The manifest of this hash, and how many agents have it.
    pub(crate) fn get(&self, hash: ManifestHash) -> Option<(&SharedManifest, u32)> {
        self.by_hash.get(&hash).map(|(shared, owners)| (shared, *owners))
    }

    /// Manifests without an owner: left over when a crash fell between two commits of an older release.
    pub(crate) fn drop_orphans(&mut self) -> Vec<ManifestHash> {
        let orphans: Vec<_> = self.by_hash.iter().filter(|(_, (_, n))| *n == 0).map(|(hash, _)| *hash).collect();
        for hash in &orphans {
            self.remove(*hash);
        }
        orphans
    }
}

/// The shared value of `manifest`, stored when it is new.
pub(crate) fn intern(world: &mut World, manifest: Manifest, hash: ManifestHash) -> SharedManifest {
    if let Some(shared) = world.resource_mut::<Manifests>().adopt(hash) {
        return shared;
    }
    world.op(rows::put_manifest(hash, &manifest));
    let mut manifests = world.resource_mut::<Manifests>();
    manifests.load(hash, manifest);
    manifests.adopt(hash).expect("just loaded")
}

/// Says where owners are not counted right ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let mut agents = world.query::<&Agent>();
    let world = &*world;
    let mut owners: BTreeMap<ManifestHash, u32> = BTreeMap::new();
    for agent in agents.iter(world) {
        *owners.entry(agent.manifest.hash).or_default() += 1;
    }
    let manifests = world.resource::<Manifests>();
    faults.same("bytes of manifests", &manifests.bytes, &manifests.all().map(|it| it.manifest.bytes()).sum());
    QUOTA.check(manifests.used(), faults);
    let kept = &manifests.by_hash;
    let kept: BTreeMap<ManifestHash, u32> = kept.iter().map(|(hash, (_, owners))| (*hash, *owners)).collect();
    faults.same("owners of manifests", &kept, &owners);
}

/// One owner less; the last one takes the record with it.
pub(crate) fn release(world: &mut World, hash: ManifestHash) {
    let mut manifests = world.resource_mut::<Manifests>();
    let Some((_, owners)) = manifests.by_hash.get_mut(&hash) else { return };
    *owners = owners.saturating_sub(1);
    if *owners == 0 {
        manifests.remove(hash);
        world.op(rows::remove_manifest(hash));
    }
}

/// What the manifests take that agents share.
pub(super) fn footprint(world: &World) -> Option<KindFootprint> {
    Some(measured(world.resource::<Manifests>()))
}

fn measured(manifests: &Manifests) -> KindFootprint {
    let count = manifests.len();
    let samples = manifests.hashes().take(SAMPLES).filter_map(|hash| manifests.get(hash));
    let (sampled, heap) = samples.fold((0, 0), |(n, sum), (shared, _)| (n + 1, sum + manifest_heap(&shared.manifest)));
    KindFootprint {
        kind: "manifests",
        count,
        rows_bytes: count * (size_of::<Interned>() + 16),
        heap_bytes: (heap * count).checked_div(sampled).unwrap_or(0),
        index_bytes: count * entries(48, 1),
    }
}

/// Texts of a manifest; of its lists the longest ones take more than their texts.
fn manifest_heap(manifest: &Manifest) -> usize {
    let words = [&manifest.tags, &manifest.skills, &manifest.capabilities.tools, &manifest.tool_allowlist];
    manifest.bytes()
        + words.iter().map(|words| size_of_val(words.as_slice())).sum::<usize>()
        + size_of_val(manifest.triggers.as_slice())
}
