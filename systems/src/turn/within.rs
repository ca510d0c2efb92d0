//! What a tool call has read while it goes on: its turn knows before the call does more with it, and what it does next is judged
//! by that.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::ToolCall;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::delegate::{Parent, waiting_parent};
use super::tool_audit;
use crate::agent;
use crate::kernel::command::{Answer, command};
use crate::taint::{self, Judgement};

/// A tool call that goes on has read something untrusted. What it stores and sends from here on has that taint, too. Without a
/// taint, it is about to do what this tool does: the answer says why it must not. Otherwise it is all that the turn has read by now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadWithinCall {
    /// The attempt of its turn.
    pub from: Attempt,
    /// The log row of the call.
    pub index: u32,
    /// What the read content has.
    pub taint: Taint,
    /// The tool that reads such content, such as `file_read`: what its agent's other turns left there counts, too. Behind a
    /// space the address that it fetches, or the agent that it writes to.
    pub tool: String,
}

command! {
    write "read_within_call" ReadWithinCall => Result<Taint, String>, Id(|it| it.from.job.0), |it, world| {
        let parent = match waiting_parent(world, it.from, it.index) {
            Ok(parent) => parent,
            Err(refusal) => return Answer::stored(Err(refusal)),
        };
        let (tool, about) = it.tool.split_once(' ').unwrap_or((&*it.tool, ""));
        if it.taint.is_none()
            && let Some(why) = judge(world, &parent, tool, about)
        {
            return Answer::stored(Ok(Err(why)));
        }
        taint::add(world, parent.entity, it.taint, tool);
        taint::read_meanwhile(world, parent.entity, tool);
        taint::files_written(world, parent.entity);
        Answer::stored(Ok(Ok(taint::of(world, parent.entity))))
    }
}

/// Judges what a call is about to do as if the model had asked for it. Gives why it must not; nothing within a call waits for a
/// person.
fn judge(world: &mut World, parent: &Parent, tool: &str, about: &str) -> Option<String> {
    let input = json!({ "url": about, "agent": about }).to_string();
    let call = ToolCall { id: String::new(), name: tool.to_owned(), input };
    let judgement = taint::judge(world, parent.entity, &call, agent::named);
    tool_audit::tainted(world, parent.agent, parent.entity, &call, &judgement);
    match judgement {
        Judgement::Run | Judgement::Note(_) => None,
        Judgement::Approve(_, because) => {
            Some(format!("{tool} needs the approval of a person, for which a module cannot ask. {because}"))
        }
        Judgement::Deny(_, _, why) => Some(why),
    }
}
