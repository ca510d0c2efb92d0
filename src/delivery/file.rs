//! One try of an answer to get into a file of its agent's workspace.

use agentsvc_components::RefusalKind;
use agentsvc_components::delivery::DeliveryOrder;
use agentsvc_components::kernel::job::TryEnd;
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::delivery::limits::TARGET_FILE_BYTES_MAX;
use agentsvc_systems::taint::NoteFiles;
use uuid::Uuid;

use crate::kernel::sandbox::{Error, Workspace, Write};
use crate::tool::toolset::ToolParts;

/// Writes an answer into a file, or adds it.
pub(super) async fn write(
    parts: &ToolParts,
    id: Uuid,
    (path, append): (Box<str>, bool),
    order: DeliveryOrder,
) -> TryEnd {
    let Some(agent) = order.agent else { return TryEnd::Failed("no agent wrote it".to_owned()) };
    let (name, holder) = match parts.bridge.ask(GetAgent(agent)).await {
        Ok(view) => (view.name, view.holder),
        Err(refusal) if refusal.kind == RefusalKind::NotFound => {
            return TryEnd::Failed("the agent is gone".to_owned());
        }
        Err(refusal) => return TryEnd::Retry { after_ms: None, reason: refusal.to_string() },
    };
    // Before it is there: whoever reads it knows what is behind it.
    if let Err(refusal) = parts.bridge.ask(NoteFiles { agent, taint: order.taint }).await {
        return TryEnd::Retry { after_ms: None, reason: refusal.to_string() };
    }
    let workspaces = parts.workspaces.clone();
    let written = tokio::task::spawn_blocking(move || {
        let workspace = workspaces.open_for(agent, &name, holder)?;
        let head = format!("<!-- delivery {id} {} -->\n", order.at);
        if append { add(&workspace, &path, &head, &order.text) } else { replace(&workspace, &path, &order.text) }
    });
    match written.await {
        Ok(Ok(())) => TryEnd::Done(String::new()),
        Ok(Err(error @ Error::Io { .. })) => TryEnd::Retry { after_ms: None, reason: error.to_string() },
        Ok(Err(error)) => TryEnd::Failed(error.to_string()),
        Err(_) => TryEnd::Retry { after_ms: None, reason: "the file could not be written".to_owned() },
    }
}

fn replace(workspace: &Workspace, path: &str, text: &str) -> Result<(), Error> {
    workspace.write(path, format!("{}\n", text.trim_end()).as_bytes(), Write::Overwrite).map(|_| ())
}

/// Adds a text to a file in one piece, unless it is there: a kill may have come between the file and the record of it.
fn add(workspace: &Workspace, path: &str, head: &str, text: &str) -> Result<(), Error> {
    let mut bytes = match workspace.read_whole(path, TARGET_FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(Error::NotFound(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    if bytes.windows(head.len()).any(|part| part == head.as_bytes()) {
        return Ok(());
    }
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(text.trim_end().as_bytes());
    bytes.extend_from_slice(b"\n\n");
    workspace.write(path, &bytes, Write::Overwrite).map(|_| ())
}

#[cfg(test)]
mod tests {
    use agentsvc_components::AgentId;

    use super::*;
    use crate::kernel::sandbox::Workspaces;

    #[test]
    fn a_text_is_added_once_and_a_path_stays_in_the_workspace() {
        let home = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::new(home.path().join("workspaces"));
        let workspace = workspaces.open(AgentId(Uuid::from_u128(1)), "scout").unwrap();
        for _ in 0..2 {
            add(&workspace, "log.md", "<!-- delivery 1 -->\n", "one\n").unwrap();
        }
        add(&workspace, "log.md", "<!-- delivery 2 -->\n", "two").unwrap();
        let text = String::from_utf8(workspace.read_whole("log.md", 1 << 20).unwrap()).unwrap();
        assert_eq!(text, "<!-- delivery 1 -->\none\n\n<!-- delivery 2 -->\ntwo\n\n");
        replace(&workspace, "last.md", "three").unwrap();
        assert_eq!(workspace.read_whole("last.md", 100).unwrap(), b"three\n");
        std::fs::write(home.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink(home.path(), workspace.path().join("out")).unwrap();
        for path in ["../x", "/tmp/x", "out/secret", "out/new"] {
            assert!(replace(&workspace, path, "x").is_err(), "{path}");
            assert!(add(&workspace, path, "<!-- -->\n", "x").is_err(), "{path}");
        }
        assert_eq!(std::fs::read_to_string(home.path().join("secret")).unwrap(), "s");
    }
}
