//! What a tool call has read while it goes on: its turn knows before the call does more with it.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::taint::Taint;
use serde::{Deserialize, Serialize};

use super::delegate::waiting_parent;
use crate::kernel::command::{Answer, command};
use crate::taint;

/// A tool call that goes on has read something untrusted. What it stores and sends from here on has that taint, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadWithinCall {
    /// The attempt of its turn.
    pub from: Attempt,
    /// The log row of the call.
    pub index: u32,
    /// What the read content has.
    pub taint: Taint,
    /// The tool that reads such content, such as `file_read`: what its agent's other turns left there counts, too.
    pub tool: String,
}

command! {
    write "read_within_call" ReadWithinCall => (), Id(|it| it.from.job.0), |it, world| {
        let parent = match waiting_parent(world, it.from, it.index) {
            Ok(parent) => parent.entity,
            Err(refusal) => return Answer::stored(Err(refusal)),
        };
        taint::add(world, parent, it.taint, &it.tool);
        taint::read_meanwhile(world, parent, &it.tool);
        taint::files_written(world, parent);
        Answer::stored(Ok(()))
    }
}
