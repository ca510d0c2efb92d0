//! The audit trail's place in the daemon: opened with the store, told of the start and the stop, signed by the notary.

use std::sync::Arc;

use agentsvc_components::audit::{Actor, AuditKind};
use agentsvc_systems::audit::NoteAction;
use agentsvc_systems::{Engine, ReplySlot};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{Error, Front, system};
use crate::audit::AuditTrail;
use crate::audit::notary::{Notary, Parts};
use crate::audit::vault::Vault;
use crate::launch::Launch;
use crate::store::Store;
use crate::store::writer::Writer;
use crate::world_loop::Clock;

/// The trail in `store`; from here on the routes read it.
pub(super) fn open(launch: &Launch, front: &Front, store: Store) -> Result<Arc<AuditTrail>, Error> {
    let vault = Arc::new(Vault::open(launch.home.vault_dir())?);
    let trail = Arc::new(AuditTrail::new(store, vault));
    front.api.set_trail(Arc::clone(&trail) as _);
    front.api.add_probe(Arc::clone(&trail) as _);
    Ok(trail)
}

/// The thread that signs the trail.
pub(super) fn notary(
    front: &Front,
    trail: Arc<AuditTrail>,
    writer: &Writer,
    runtime: &Runtime,
    clock: &Clock,
) -> Result<Notary, Error> {
    let parts = Parts {
        trail,
        commits: writer.queue(),
        bridge: front.api.bridge.clone(),
        handle: runtime.handle().clone(),
        clock: clock.clone(),
        retention_days: Arc::clone(&front.audit_days),
    };
    Notary::start(parts).map_err(system("cannot start the audit notary"))
}

/// The start goes on the trail with the world's first step.
pub(super) fn note_start(engine: &mut Engine, front: &Front) {
    let settings = &front.api.settings;
    let details = json!({
        "version": settings.build.version,
        "crashes": settings.restart_count,
        "pid": std::process::id(),
    });
    let entry = NoteAction { kind: AuditKind::DaemonStarted, agent: None, details };
    engine.command(Actor::System, entry, ReplySlot::new(drop));
}

/// The stop goes on the trail while the world still takes commands.
pub(super) fn note_stop(front: &Front, runtime: &Runtime) {
    let entry = NoteAction { kind: AuditKind::DaemonStopped, agent: None, details: json!({}) };
    if let Err(refusal) = runtime.block_on(front.api.bridge.acting_as(Actor::System).ask(entry)) {
        tracing::warn!(%refusal, "the stop is not on the audit trail");
    }
}
