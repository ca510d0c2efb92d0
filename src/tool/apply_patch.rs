//! `apply_patch`: changes parts of files, all or none.

use std::rc::Rc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::files::{Keeper, in_workspace, sentence};
use super::patch::{self, Change, Looks};
use crate::kernel::sandbox::{Error, Workspace, WorkspacePath, Write};
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// Bytes of a file that a patch changes.
const FILE_BYTES_MAX: u64 = 8 << 20;
/// Bytes of all files that a patch changes.
const FILES_BYTES_MAX: u64 = 32 << 20;
/// Files of one patch.
const FILES_MAX: usize = 200;
/// Patches that are applied at once: each has its files in memory.
static PATCHES: Semaphore = Semaphore::const_new(2);

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "apply_patch",
    "Changes text files of your private workspace with a patch, all or none. Either a unified diff \
        (`--- a/FILE`, `+++ b/FILE`, `@@ -LINE,COUNT +LINE,COUNT @@`; /dev/null for a new or deleted file), or this \
        form:\n*** Begin Patch\n*** Update File: FILE\n@@ a line before the change, optional\n kept line\n-old \
        line\n+new line\n*** Add File: FILE\n+line\n*** Delete File: FILE\n*** End Patch\nGive about three lines of \
        context around each change.",
    |context, text| on_input(context, text, run),
)
.needs(Need::Files)
.order(16);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The whole patch.
    patch: String,
}

async fn run(context: Context, Input { patch }: Input) -> Result<Ended, String> {
    // It is never closed.
    let _turn = PATCHES.acquire().await;
    let keeper = Keeper::of(&context, "apply_patch");
    let work = in_workspace(&context, move |workspace| {
        let changes = changes(&patch)?;
        let paths: Vec<String> = changes.iter().flat_map(Change::paths).map(str::to_owned).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        keeper.around(workspace, &paths, || apply(workspace, changes))
    });
    work.await.map(Ended::Text)
}

/// One file as it is and as it will be; `None` where there is none.
struct Target {
    path: String,
    before: Option<Rc<Vec<u8>>>,
    after: Option<Rc<Vec<u8>>>,
}

/// What a patch comes to, as far as it was worked out.
struct Plan {
    targets: Vec<Target>,
    /// Bytes that may still be read.
    bytes_left: u64,
    looks: Looks,
}

fn changes(text: &str) -> Result<Vec<Change>, String> {
    let changes = patch::read(text)?;
    if changes.len() > FILES_MAX {
        return Err(format!("The patch changes {} files; the limit is {FILES_MAX}.", changes.len()));
    }
    Ok(changes)
}

fn apply(workspace: &Workspace, changes: Vec<Change>) -> Result<String, String> {
    let mut plan = Plan { targets: Vec::new(), bytes_left: FILES_BYTES_MAX, looks: Looks::of_patch() };
    let mut said = Vec::new();
    for change in changes {
        said.push(plan.add(workspace, change)?);
    }
    write_all(workspace, &plan.targets)?;
    Ok(format!("Done.\n{}", said.join("\n")))
}

impl Plan {
    /// Works out what a change comes to; nothing is written yet. Gives the line that reports it.
    fn add(&mut self, workspace: &Workspace, change: Change) -> Result<String, String> {
        match change {
            Change::Add { path, text } => {
                let at = self.target(workspace, &path)?;
                if self.targets[at].after.is_some() {
                    return Err(format!("{path} exists already; update it, or delete it first. Nothing was changed."));
                }
                self.targets[at].after = Some(Rc::new(text.into_bytes()));
                Ok(format!("A {path}"))
            }
            Change::Delete { path } => {
                let at = self.target(workspace, &path)?;
                self.targets[at].after.take().ok_or_else(|| missing(&path))?;
                Ok(format!("D {path}"))
            }
            Change::Update { path, to, hunks } => {
                let from = self.target(workspace, &path)?;
                let old = self.targets[from].after.as_ref().ok_or_else(|| missing(&path))?;
                let old =
                    std::str::from_utf8(old).map_err(|_| format!("{path} is not UTF-8 text. Nothing was changed."))?;
                let new = patch::fit(old, &hunks, &self.looks)
                    .map_err(|why| format!("{path}: {why} Nothing was changed."))?;
                let Some(to) = to else {
                    self.targets[from].after = Some(Rc::new(new.into_bytes()));
                    return Ok(format!("M {path}"));
                };
                let at = self.target(workspace, &to)?;
                if at != from && self.targets[at].after.is_some() {
                    return Err(format!("{to} exists already; {path} cannot be renamed to it. Nothing was changed."));
                }
                self.targets[from].after = None;
                self.targets[at].after = Some(Rc::new(new.into_bytes()));
                Ok(format!("R {path} -> {to}"))
            }
        }
    }

    /// The place of a file among the targets; read when it is named first.
    fn target(&mut self, workspace: &Workspace, path: &str) -> Result<usize, String> {
        let path = WorkspacePath::parse(path).map_err(sentence)?.as_str().to_owned();
        if let Some(at) = self.targets.iter().position(|target| target.path == path) {
            return Ok(at);
        }
        let before = match workspace.read_whole(&path, FILE_BYTES_MAX) {
            Ok(bytes) => Some(Rc::new(bytes)),
            Err(Error::NotFound(_)) => None,
            Err(error) => return Err(format!("{} Nothing was changed.", sentence(error))),
        };
        let bytes = before.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(|| {
            format!("The patch changes files of more than {FILES_BYTES_MAX} bytes together. Nothing was changed.")
        })?;
        self.targets.push(Target { path, after: before.clone(), before });
        Ok(self.targets.len() - 1)
    }
}

fn missing(path: &str) -> String {
    format!("{path} does not exist. Nothing was changed.")
}

/// Writes every target, or, when one cannot be written, puts back those that were.
fn write_all(workspace: &Workspace, targets: &[Target]) -> Result<(), String> {
    for (at, target) in targets.iter().enumerate() {
        if let Err(error) = put(workspace, &target.path, target.before.as_ref(), target.after.as_ref()) {
            let back = |done: &Target| put(workspace, &done.path, done.after.as_ref(), done.before.as_ref());
            let stuck: Vec<&str> =
                targets[..at].iter().rev().filter(|done| back(done).is_err()).map(|done| done.path.as_str()).collect();
            let state = if stuck.is_empty() {
                "Nothing was changed.".to_owned()
            } else {
                format!("These files were changed and could not be restored: {}.", stuck.join(", "))
            };
            return Err(format!("{} {state}", sentence(error)));
        }
    }
    Ok(())
}

fn put(
    workspace: &Workspace,
    path: &str,
    before: Option<&Rc<Vec<u8>>>,
    after: Option<&Rc<Vec<u8>>>,
) -> Result<(), Error> {
    match (before, after) {
        _ if before == after => Ok(()),
        (Some(_), None) => workspace.remove(path, false).map(drop),
        (None, Some(bytes)) => workspace.write(path, bytes, Write::Create).map(drop),
        (_, Some(bytes)) => workspace.write(path, bytes, Write::Overwrite).map(drop),
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentsvc_components::AgentId;
    use uuid::Uuid;

    use crate::kernel::sandbox::{Workspace, Workspaces, Write};

    fn workspace(dir: &tempfile::TempDir) -> Workspace {
        let workspace = Workspaces::new(dir.path().join("w")).open(AgentId(Uuid::from_u128(1)), "a").unwrap();
        workspace.write("a", b"1\n2\n", Write::Create).unwrap();
        workspace.write("b", b"x\n", Write::Create).unwrap();
        workspace
    }

    fn apply(workspace: &Workspace, text: &str) -> Result<String, String> {
        super::apply(workspace, super::changes(text)?)
    }

    fn text(workspace: &Workspace, path: &str) -> Option<String> {
        fs::read_to_string(workspace.path().join(path)).ok()
    }

    #[test]
    fn several_files_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let w = workspace(&dir);
        let patch = "*** Begin Patch\n*** Update File: a\n-2\n+two\n*** Delete File: b\n*** Add File: d/new\n+n\n\
            *** Update File: a\n*** Move to: ./c\n-1\n+one\n*** End Patch";
        assert_eq!(apply(&w, patch).unwrap(), "Done.\nM a\nD b\nA d/new\nR a -> ./c");
        assert_eq!((text(&w, "a"), text(&w, "b")), (None, None));
        assert_eq!(text(&w, "c").unwrap(), "one\ntwo\n");
        assert_eq!(text(&w, "d/new").unwrap(), "n\n");
    }

    #[test]
    fn files_count_together() {
        let dir = tempfile::tempdir().unwrap();
        let w = workspace(&dir);
        let mut patch = String::new();
        for n in 0..6 {
            w.write(&format!("f{n}"), "x\n".repeat(3 << 20).as_bytes(), Write::Create).unwrap();
            patch.push_str(&format!("*** Delete File: f{n}\n"));
            let said = apply(&w, &format!("*** Begin Patch\n{patch}*** Update File: a\n-9\n+x\n*** End Patch"));
            let why = if n < 5 { "no line of the file matches" } else { "files of more than 33554432 bytes together" };
            assert!(said.as_ref().unwrap_err().contains(why), "{n}: {said:?}");
        }
        assert!(w.path().join("f0").exists());
    }

    #[test]
    fn all_or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let w = workspace(&dir);
        let first = "*** Begin Patch\n*** Update File: a\n-1\n+one\n";
        for (rest, why) in [
            ("*** Update File: b\n-y\n+z\n", "b: Change 1: no line of the file matches \"y\""),
            ("*** Delete File: none\n", "none does not exist."),
            ("*** Add File: b\n+z\n", "b exists already"),
            ("*** Add File: ../out\n+z\n", "contains \"..\""),
            ("*** Add File: /etc/x\n+z\n", "is absolute"),
            // It can only be found out when it is written.
            ("*** Add File: b/under\n+z\n", "is not a directory"),
        ] {
            let error = apply(&w, &format!("{first}{rest}*** End Patch")).unwrap_err();
            assert!(error.contains(why), "{error}");
            assert_eq!(text(&w, "a").unwrap(), "1\n2\n");
            assert_eq!(text(&w, "b").unwrap(), "x\n");
        }
        // The second of two new files cannot be made: the first is taken away again.
        let patch = "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n--- /dev/null\n+++ b/new/under\n@@ -0,0 +1 @@\n+n\n";
        assert!(apply(&w, patch).unwrap_err().ends_with("Nothing was changed."));
        assert_eq!(text(&w, "new"), None);
    }
}
