//! The audit trail's place in the daemon: opened with the store, told of the start and the stop, signed by the checkpoint signer.

use agentsvc_api::world::audit_kinds;
use std::sync::Arc;

use agentsvc_api::audit::trail::AuditLog;
use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::http::error_codes::MOVING;
use agentsvc_components::kernel::error_codes::LOADING;
use agentsvc_components::{Actor, Refusal};
use agentsvc_systems::audit::NoteAction;
use serde_json::json;
use tokio::runtime::Runtime;

use super::world::WorldContext;
use super::{ApiAdapter, Error, system};
use crate::audit::AuditTrail;
use crate::audit::checkpoint_signer::{CheckpointSigner, Parts};
use crate::audit::outside::Outside;
use crate::audit::vault::Vault;
use crate::kernel::exchange::Entry;
use crate::kernel::home::Home;
use crate::kernel::retention::RetentionClock;
use crate::kernel::store::Store;
use crate::kernel::store::writer::Writer;

/// The trail in `store`; from here on the routes read it. Other nodes may have signed one that is shared.
pub(crate) fn open(home: &Home, front: &ApiAdapter, store: Store, is_shared: bool) -> Result<Arc<AuditTrail>, Error> {
    let vault = Arc::new(Vault::open(home.vault_dir())?);
    let outside = Outside::new(&front.in_force.load().audit, home.root());
    let trail = Arc::new(AuditTrail::new(store, vault, outside));
    if is_shared && let Err(error) = trail.adopt_checkpoint() {
        tracing::warn!(error, "the newest checkpoint of the audit log is not kept outside the store");
    }
    front.api.services.provide::<dyn AuditLog>(Arc::clone(&trail) as _);
    Ok(trail)
}

/// The thread that signs the trail.
pub(crate) fn checkpoint_signer(
    ground: &WorldContext,
    trail: Arc<AuditTrail>,
    writer: &Writer,
    bridge: Bridge,
) -> Result<CheckpointSigner, Error> {
    let parts = Parts {
        trail,
        commits: writer.queue(),
        bridge,
        handle: ground.handle.clone(),
        clock: ground.clock.clone(),
        retention: ground.front.settings.get::<RetentionClock>().as_ref().clone(),
        retention_days: Arc::clone(&ground.front.audit_days),
    };
    CheckpointSigner::start(parts).map_err(system("cannot start the audit checkpoint signer"))
}

/// The start goes on the trail with the world's first step.
pub(crate) fn start_entry(front: &ApiAdapter) -> Entry {
    let settings = &front.api.settings;
    let details = json!({
        "version": settings.build.version,
        "crashes": settings.restart_count,
        "pid": std::process::id(),
    });
    Entry { actor: Actor::System, kind: audit_kinds::DAEMON_STARTED, details }
}

/// The stop goes on the trail while the world still takes commands.
pub(crate) fn note_stop(front: &ApiAdapter, runtime: &Runtime) {
    let entry = NoteAction { kind: audit_kinds::DAEMON_STOPPED, agent: None, details: json!({}) };
    match runtime.block_on(front.api.bridge.acting_as(Actor::System).ask(entry)) {
        Ok(_) => {}
        Err(refusal) if is_elsewhere(&refusal) => {
            tracing::info!("no world runs in this process, so its stop is not in the audit log");
        }
        Err(refusal) => tracing::warn!(%refusal, "the stop could not be recorded in the audit log"),
    }
}

/// Does the refusal say that there is no world here: it is that of another node, or was not loaded yet?
fn is_elsewhere(refusal: &Refusal) -> bool {
    refusal.code.is_some_and(|code| [LOADING.as_str(), MOVING.as_str()].contains(&code.as_str()))
}

#[cfg(test)]
mod tests {
    use agentsvc_api::http::bridge::{bridge, exchanging, moving};
    use agentsvc_systems::world::GetStats;

    use super::*;

    #[tokio::test]
    async fn a_process_without_a_world_has_nowhere_to_record_its_stop() {
        let (not_loaded, _intake) = bridge();
        assert!(is_elsewhere(&not_loaded.ask(GetStats).await.unwrap_err()));
        assert!(is_elsewhere(&moving()), "it is another node's");
        assert!(!is_elsewhere(&exchanging()) && !is_elsewhere(&Refusal::busy("too much waits", 1)));
    }
}
