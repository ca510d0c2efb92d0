//! A restore into the running daemon: files are exchanged beside it, and the world as a whole.

use agentsvc_api::backup::audit_kinds;
use std::cell::RefCell;

use agentsvc_api::backup::store::{BackupError, BackupRestored, RestoreWanted};
use agentsvc_api::snapshot::store::Before;
use agentsvc_components::Actor;

use super::{HomeBackups, failed, of_error, of_refusal};
use crate::backup::component::{Component, Selection};
use crate::backup::progress::Progress;
use crate::backup::restore::{Decided, Job, Prepared, prepare};
use crate::backup::{self, archives};
use crate::kernel::exchange::Entry;

impl HomeBackups {
    pub(super) fn put_back(&self, actor: Actor, wanted: &RestoreWanted) -> Result<BackupRestored, BackupError> {
        Self::checked(&wanted.filename)?;
        let selection = selection(wanted)?;
        let restore = || self.put_back_selected(actor, wanted, &selection);
        if wanted.dry_run { restore() } else { self.parts.exchange.counted("backup", restore) }
    }

    /// Puts back what is `selected`, or says what that would change.
    fn put_back_selected(
        &self,
        actor: Actor,
        wanted: &RestoreWanted,
        selected: &Selection,
    ) -> Result<BackupRestored, BackupError> {
        let _turn = self.my_turn()?;
        let _next = self.parts.exchange.claim_next().map_err(|_| BackupError::Busy("restore of a snapshot"))?;
        let (_working, progress) = self.begin(if wanted.dry_run { "dry_run" } else { "restore" });
        let places = self.places();
        let unknown = || BackupError::Unknown(wanted.filename.clone());
        let archive = archives::find(&places.backups, &wanted.filename).ok_or_else(unknown)?;
        let vault = &self.parts.vault;
        let (selection, now) = (selected, self.now());
        let job = Job { archive: &archive, places: &places, vault, selection, keeps_protected: true, now };
        let view = self.parts.exchange.view().map_err(|refusal| of_refusal(&refusal))?;
        let prepared = prepare(&job, Some(&view), &progress).map_err(of_error)?;
        drop(view);
        let mut answer = prepared.answer(wanted.dry_run);
        if wanted.dry_run {
            prepared.discard();
            return Ok(answer);
        }
        if prepared.changes_world() {
            let may = self.parts.exchange.may_replace();
            may.inspect_err(|_| prepared.discard()).map_err(|refusal| of_refusal(&refusal))?;
            let kept = self.parts.worlds.take_before(Before::Restore);
            kept.inspect_err(|_| prepared.discard()).map_err(|refusal| of_refusal(&refusal))?;
        }
        // Nobody writes the configuration meanwhile.
        let mut exchanged = Ok(0);
        self.parts.restorable.alone(&mut || {
            exchanged = if prepared.changes_world() {
                self.exchange_world(actor, &prepared, &progress)
            } else {
                progress.begin("exchanging", 0);
                self.exchange_files(actor, &prepared).map(|()| 0)
            };
        });
        let pause_ms = exchanged?;
        answer.pause_ms = pause_ms;
        self.follow(&prepared, &mut answer);
        tracing::info!(filename = wanted.filename, pause_ms, "a backup was restored");
        Ok(answer)
    }

    /// The world stops, and that of the archive comes to life in its place. Whatever goes wrong before brings the old one
    /// and its files back.
    fn exchange_world(&self, actor: Actor, prepared: &Prepared, progress: &Progress) -> Result<u64, BackupError> {
        let entry = Entry { actor, kind: audit_kinds::BACKUP_RESTORED, details: prepared.details() };
        let decided = RefCell::new(None::<Decided>);
        let text = |error: backup::Error| of_error(error).to_string();
        let is_built = prepared.replaces_world();
        if is_built {
            // Beside the world, which goes on as long as that takes.
            let view = self.parts.exchange.view().map_err(|refusal| of_refusal(&refusal))?;
            prepared.build(Some(&view), progress).inspect_err(|_| prepared.discard()).map_err(of_error)?;
        }
        let exchanged = self.parts.exchange.replace_with(
            entry,
            |old| {
                if !is_built {
                    // What stays of the old world must be its last state.
                    prepared.build(Some(&old.view()), progress).map_err(text)?;
                }
                prepared.keep_taint(&old.view()).map_err(text)
            },
            || {
                progress.begin("exchanging", 0);
                let plan = prepared.decide().map_err(text)?;
                decided.borrow_mut().insert(plan).exchange_files().map_err(text)
            },
        );
        let decided = decided.into_inner();
        match (exchanged, decided) {
            (Ok(pause), Some(decided)) => {
                finish(&decided);
                self.forget_done();
                Ok(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX))
            }
            (Ok(_), None) => Err(failed(&"the world was replaced without a stored decision")),
            (Err(refusal), decided) => {
                tracing::error!(%refusal, "the restore was cancelled");
                match decided {
                    Some(decided) => decided.take_back().map_err(of_error)?,
                    None => prepared.discard(),
                }
                Err(of_refusal(&refusal))
            }
        }
    }

    /// Files change beside a world that goes on.
    fn exchange_files(&self, actor: Actor, prepared: &Prepared) -> Result<(), BackupError> {
        let decided = prepared.decide().map_err(of_error)?;
        if let Err(error) = decided.exchange_files() {
            decided.take_back().map_err(of_error)?;
            return Err(of_error(error));
        }
        finish(&decided);
        self.parts.exchange.note(actor, audit_kinds::BACKUP_RESTORED, prepared.details());
        self.forget_done();
        Ok(())
    }

    /// Everybody who read files at the start reads them again.
    fn follow(&self, prepared: &Prepared, answer: &mut BackupRestored) {
        match self.parts.restorable.read_again(prepared.has_config()) {
            None => {}
            Some(Ok(reloaded)) => answer.restart_required = reloaded.restart_required,
            Some(Err(error)) => {
                tracing::error!(%error, "the restored configuration is not in effect");
                let text = format!("config.toml is restored but not in effect: {error}; use POST /api/config/reload");
                answer.warnings.push(text);
            }
        }
    }
}

/// Everything is in its place, whatever becomes of the plan.
fn finish(decided: &Decided) {
    if let Err(error) = decided.finish() {
        tracing::error!(%error, "a restore is complete, but its plan could not be removed; the next start completes \
            it again");
    }
}

/// What is asked for (rules 1 to 3).
fn selection(wanted: &RestoreWanted) -> Result<Selection, BackupError> {
    let wrong = |message: String| BackupError::Wrong { field: "components", message };
    let components = match &wanted.components {
        None => None,
        Some(names) if names.is_empty() => {
            let text =
                format!("must not be empty; omit it to restore all components, or list some of {}", Component::names());
            return Err(wrong(text));
        }
        Some(names) => {
            let parse = |name: &String| {
                let unknown = || wrong(format!("unknown component {name:?}; expected one of {}", Component::names()));
                Component::parse(name).ok_or_else(unknown)
            };
            Some(names.iter().map(parse).collect::<Result<_, _>>()?)
        }
    };
    Ok(Selection { components, keep_config: wanted.keep_config })
}
