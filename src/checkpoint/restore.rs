//! Checkpoints as the API reaches them: lists, and the way back.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path};

use agentsvc_api::checkpoint::checkpoints::{Checkpoint, Checkpoints, Directory, NotRestored, Page, Restored};
use agentsvc_api::http::files::FilesError;
use agentsvc_api::http::timestamp::Moment;
use agentsvc_components::{AgentId, Timestamp};

use super::object::{Commit, FileEntry, Kind, ObjectId};
use super::repository::{NotFound, Repository};
use super::store::{Change, CheckpointStore, Open, keep};
use crate::kernel::disk;
use crate::kernel::sandbox::{Error, Workspace, Workspaces, Write};

/// Fewest digits of a commit.
const DIGITS_MIN: usize = 4;
/// Most digits of a commit.
const DIGITS_MAX: usize = 40;
/// Mode of a file that its owner may run.
const RUN_MODE: u32 = 0o700;
/// Files that a restore reports as not restored.
const NOT_RESTORED_MAX: usize = 100;

/// Lists and restores.
pub(super) struct Restorer {
    store: CheckpointStore,
    workspaces: Workspaces,
}

impl Restorer {
    pub(super) fn new(store: CheckpointStore, workspaces: Workspaces) -> Self {
        Self { store, workspaces }
    }
}

impl Checkpoints for Restorer {
    fn directories(&self, page: Page) -> Result<(Vec<Directory>, usize), FilesError> {
        let root = self.store.root().ok_or(FilesError::Failed)?;
        let mut dirs = disk::there(disk::entries(root)).map_err(failed)?.unwrap_or_default();
        dirs.sort_unstable();
        let total = dirs.len();
        // Only those of the page are looked into: there may be one for each agent.
        let shown = dirs.iter().skip(page.offset).take(page.limit).filter_map(|dir| {
            let working_dir = Repository::working_dir(dir)?;
            Some(Directory { working_dir, last_at: Repository::newest(dir).map(|commit| time(&commit)) })
        });
        Ok((shown.collect(), total))
    }

    fn checkpoints(&self, working_dir: &str, page: Page) -> Result<(Vec<Checkpoint>, usize), FilesError> {
        let dir = self.store.dir(absolute(working_dir)?).ok_or(FilesError::Failed)?;
        let repository = Repository::find(&dir).map_err(failed)?.ok_or_else(|| none(working_dir))?;
        let log = repository.log().skip(page.offset).take(page.limit);
        Ok((log.map(|(id, commit)| shown(id, &commit)).collect(), repository.commits()))
    }

    fn owner(&self, working_dir: &str) -> Result<Option<AgentId>, FilesError> {
        Ok(self.workspaces.at(absolute(working_dir)?)?.and_then(|(_, owner)| owner))
    }

    fn restore(&self, working_dir: &str, commit: &str) -> Result<Restored, FilesError> {
        let path = absolute(working_dir)?;
        let is_hex = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || !(DIGITS_MIN..=DIGITS_MAX).contains(&commit.len()) {
            return Err(of_commit(FilesError::Wrong, "must be 4 to 40 hex digits"));
        }
        let dir = self.store.dir(path).ok_or(FilesError::Failed)?;
        let place = self.store.place(&dir);
        let Some(mut open) = place.try_lock() else {
            return Err(FilesError::Conflict(format!("a tool is writing files in {working_dir}; try again")));
        };
        if open.is_none() {
            *open = Open::find(&dir).map_err(failed)?;
        }
        let repository = &open.as_ref().ok_or_else(|| none(working_dir))?.repository;
        let (id, found) = repository.resolve(commit).map_err(|error| match error {
            NotFound::None => of_commit(FilesError::NotFound, &format!("{working_dir} has no checkpoint {commit}")),
            NotFound::Ambiguous => of_commit(FilesError::Wrong, &format!("{commit} begins more than one checkpoint")),
            NotFound::Failed(error) => failed(error),
        })?;
        let files = repository.objects().files(found.tree, &mut |_| {}).map_err(|error| damaged(&error))?;
        let (workspace, owner) = self
            .workspaces
            .at(path)?
            .ok_or_else(|| of_dir(FilesError::NotFound, &format!("{working_dir} is not the workspace of an agent")))?;
        let of = shown(id, &found).agent_id.map(AgentId);
        if of.is_some() && owner.is_some() && of != owner {
            let why = format!("{commit} has files of another agent, which had this directory before");
            return Err(of_commit(FilesError::Conflict, &why));
        }
        let by = Change { tool: "restore", agent: owner, session: None, holder: None };
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        let before = keep(&mut open, (&dir, working_dir), &workspace, (&by, &paths)).map_err(failed)?;
        let open = open.as_ref().ok_or(FilesError::Failed)?;
        self.store.note_size(&dir, &open.repository, None);
        let mut not_restored = Vec::new();
        let mut restored = 0;
        for (path, file) in &files {
            match put_back(open, &workspace, (path, *file)) {
                Ok(()) => restored += 1,
                Err(error) if not_restored.len() < NOT_RESTORED_MAX => {
                    not_restored.push(NotRestored { path: path.clone(), error: error.to_string() });
                }
                Err(_) => {}
            }
        }
        let total = files.len();
        let (commit, checkpoint) = (id.to_string(), before.to_string());
        Ok(Restored { agent: owner, commit, checkpoint, restored, total, not_restored })
    }
}

/// Writes a file as the checkpoint has it. What is there and could not be kept before is not overwritten.
fn put_back(open: &Open, workspace: &Workspace, (path, file): (&str, FileEntry)) -> Result<(), FilesError> {
    let is_there = !matches!(workspace.metadata(path), Err(Error::NotFound(_) | Error::NotDirectory(_)));
    if is_there && !open.has(path) {
        let why = "what is there now cannot be kept in a checkpoint, so it was not overwritten: move it away first";
        return Err(FilesError::Conflict(why.to_owned()));
    }
    let content = open.repository.objects().get(Kind::Blob, file.id).map_err(|error| damaged(&error))?;
    workspace.write(path, &content, Write::Overwrite)?;
    if file.is_executable {
        let (written, _) = workspace.open_file(path)?;
        written.set_permissions(Permissions::from_mode(RUN_MODE)).map_err(failed)?;
    }
    Ok(())
}

/// The path, if it is absolute and has no detours.
fn absolute(working_dir: &str) -> Result<&Path, FilesError> {
    let path = Path::new(working_dir);
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !is_plain || working_dir.contains('\0') {
        return Err(of_dir(FilesError::Wrong, "must be an absolute path without \"..\""));
    }
    // Its text is what the repository is named after.
    Ok(Path::new(working_dir.trim_end_matches('/')))
}

fn shown(id: ObjectId, commit: &Commit) -> Checkpoint {
    let (subject, body) = commit.message.split_once("\n\n").unwrap_or((&commit.message, ""));
    let (tool, path) = subject.split_once(": ").unwrap_or((subject, ""));
    let field = |name: &str| body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok());
    Checkpoint {
        commit: id.to_string(),
        created_at: time(commit),
        tool: tool.to_owned(),
        path: path.trim_end().to_owned(),
        agent_id: field("agent"),
        session_id: field("session"),
    }
}

fn time(commit: &Commit) -> Moment {
    Moment(Timestamp(commit.at.saturating_mul(1_000)))
}

fn none(working_dir: &str) -> FilesError {
    of_dir(FilesError::NotFound, &format!("{working_dir} has no checkpoints"))
}

/// An error because of `working_dir`.
fn of_dir(kind: fn(String) -> FilesError, why: &str) -> FilesError {
    kind(format!("working_dir: {why}")).of_field("working_dir")
}

/// An error because of `commit`.
fn of_commit(kind: fn(String) -> FilesError, why: &str) -> FilesError {
    kind(format!("commit: {why}")).of_field("commit")
}

fn damaged(error: &io::Error) -> FilesError {
    tracing::error!(%error, "a checkpoint is damaged");
    FilesError::Damaged("the checkpoint is damaged; nothing was restored from its damaged part".to_owned())
}

fn failed(error: io::Error) -> FilesError {
    match error.kind() {
        io::ErrorKind::StorageFull => FilesError::Full("the disk is full".to_owned()),
        _ => {
            tracing::error!(%error, "checkpoints could not be read or written");
            FilesError::Failed
        }
    }
}
