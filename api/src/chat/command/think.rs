//! `/think`: extended thinking for the messages that follow.

use super::{Command, Outcome};
use crate::http::error::Error;

pub(super) const COMMAND: Command = Command {
    name: "think",
    argument: "[on|off]",
    summary: "turn extended thinking on or off for the following messages",
    is_slow: false,
    run: |chat, word| Box::pin(async move { think(chat.thinking, &word) }),
};

fn think(now: bool, word: &str) -> Result<Outcome, Error> {
    let thinking = match word {
        "" => !now,
        "on" => true,
        "off" => false,
        _ => return Err(Error::bad_request("usage: /think [on|off]; without an argument it toggles")),
    };
    let state = if thinking { "on" } else { "off" };
    Ok(Outcome { text: format!("Extended thinking is {state}."), thinking: Some(thinking) })
}
