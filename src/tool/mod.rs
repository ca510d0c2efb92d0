//! Tools over an agent's workspace, its conversation and the clock; which tools stand in a prompt; and those that clients
//! call.

mod apply_patch;
mod client;
pub mod config;
mod direct;
mod file_delete;
mod file_list;
mod file_read;
mod file_write;
pub(crate) mod files;
mod offer;
mod patch;
pub mod remote;
mod result_read;
mod result_transform;
pub(crate) mod run;
mod shell_exec;
mod skill_folders;
mod system_time;
mod tool_load;
mod tool_search;
pub mod toolset;
mod untrusted_content;

pub(crate) use client::with_client_tools;
pub use direct::{DirectRules, DirectTools};
pub(crate) use files::{in_workspace, sentence};
pub(crate) use offer::offered;
pub(crate) use patch::patched;
pub(crate) use result_transform::{ResultTransform, Transformed};
pub(crate) use shell_exec::stopped;
pub(crate) use skill_folders::SkillFolders;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use toolset::ToolStores;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "tool",
    uses: &[
        "approval",
        "injection",
        "manifest",
        "turn",
        "taint",
        "session",
        "prompt",
        "memory",
        "knowledge",
        "checkpoint",
        "proactive_memory",
    ],
    brings: |brought| {
        brought.add([
            tool_search::TOOL,
            tool_load::TOOL,
            result_read::TOOL,
            system_time::TOOL,
            file_read::TOOL,
            file_write::TOOL,
            file_list::TOOL,
            file_delete::TOOL,
            apply_patch::TOOL,
            shell_exec::TOOL,
        ])
    },
    performers,
    commands: &[Subcommand::of(61, "tool", "List tools, and call one", &[Resource::at("/api/tools")])
        .examples(&[
            Example::new("tool show file_read", "Show what a tool does and takes"),
            Example::new("tool invoke system_time", "Call one, where the configuration allows it"),
        ])
        .under(Group::Abilities)],
    ..Domain::EMPTY
};

/// Runs tools.
fn performers(performers: &mut Performers) {
    let stores = ToolStores {
        content: performers.part(),
        memory: performers.part(),
        entries: performers.part(),
        knowledge: performers.part(),
    };
    let (calls, streams, parts) = (performers.calls(), performers.part(), performers.part());
    let runner = run::ToolRunner { calls, streams, parts, stores };
    performers.provide(runner.clone());
    performers.on(move |call| run::begin(&runner, call));
}
