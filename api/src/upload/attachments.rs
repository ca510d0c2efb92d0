//! Attachments of a message: uploads become blocks before the message is sent into the world (spec 1, Attachment
//! handling).

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::{InjectionFound, Taint};
use agentsvc_components::session::message::Block;
use agentsvc_components::{AgentId, FileId};
use agentsvc_systems::injection::{InjectionPolicy, Shielded, shield};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::http::error::Error;
use crate::http::files::FilesError;
use crate::http::receive::blocking;
use crate::upload::files::Files;

/// One attachment of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct Attachment {
    /// Upload id.
    file_id: Uuid,
}

/// What a message is made of.
#[derive(Default)]
pub(crate) struct Attached {
    /// The text and the attachments.
    pub(crate) blocks: Vec<Block>,
    /// Untrusted content among them.
    pub(crate) taint: Taint,
    /// What the scanner found in it.
    pub(crate) found: Vec<InjectionFound>,
}

/// The blocks of a message that says `text`, which may be empty, and has `attachments`: first the text, then they.
///
/// One of no known class is left out; the log says so.
///
/// # Errors
/// 400 naming `message` for a message of nothing, or one too long; 400 naming `attachments` for too many, too long, or none that can be
/// used; 404 naming `attachments[i].file_id` for an upload that is not there or is another agent's.
pub(crate) async fn blocks(
    api: &Api,
    agent: AgentId,
    text: String,
    attachments: &[Attachment],
) -> Result<Attached, Error> {
    let is_silent = text.trim().is_empty();
    if is_silent && attachments.is_empty() {
        return Err(Error::bad_field("message", "message must not be empty"));
    }
    if text.len() > limit::MESSAGE_BYTES_MAX {
        let most = limit::MESSAGE_BYTES_MAX;
        return Err(Error::bad_field("message", format!("message is longer than {most} bytes")));
    }
    let too_many = attachments.len() > limit::ATTACHMENTS_MAX;
    if too_many {
        let most = limit::ATTACHMENTS_MAX;
        return Err(Error::bad_field("attachments", format!("attachments: the limit is {most} per message")));
    }
    let mut blocks = Vec::with_capacity(1 + attachments.len());
    if !is_silent {
        blocks.push(Block::Text { text });
    }
    if attachments.is_empty() {
        return Ok(Attached { blocks, ..Attached::default() });
    }
    let (mut attached_bytes, mut found) = (0, Vec::new());
    let policy = *api.state::<InjectionPolicy>();
    for (at, attachment) in attachments.iter().enumerate() {
        let (files, file) = (api.service::<dyn Files>()?, FileId(attachment.file_id));
        let block = files.attachment(agent, file).await.map_err(|error| of_file(at, error))?;
        let (block, injection) = blocking(move || Ok(shielded(block, policy))).await?;
        if let Some(injection) = injection {
            let reasons = injection.reasons.join(",");
            tracing::warn!(%agent, file = %file, level = &*injection.level, %reasons,
                withheld = injection.withheld, "an attachment looks like a prompt injection");
            found.push(*injection);
        }
        if let Some(Block::Text { text }) = &block {
            attached_bytes += text.len();
        }
        if attached_bytes > limit::ATTACHED_BYTES_MAX {
            let most = limit::ATTACHED_BYTES_MAX;
            return Err(Error::bad_field("attachments", format!("attachments: longer than {most} bytes in total")));
        }
        blocks.extend(block);
    }
    if blocks.is_empty() {
        return Err(Error::bad_field("attachments", "attachments: none could be read, and the message is empty"));
    }
    Ok(Attached { blocks, taint: Taint::UPLOAD, found })
}

/// The block of an upload, its text shielded.
fn shielded(block: Option<Block>, policy: InjectionPolicy) -> (Option<Block>, Option<Box<InjectionFound>>) {
    match block {
        Some(Block::Text { text }) => {
            let Shielded { text, found } = shield(policy, "an attached file", text);
            (Some(Block::Text { text }), found)
        }
        block => (block, None),
    }
}

/// The error with the attachment named.
fn of_file(at: usize, error: FilesError) -> Error {
    let field = format!("attachments[{at}].file_id");
    match error {
        FilesError::NotFound(text) => Error::not_found(format!("{field}: {text}")).with("field", field),
        error => error.into(),
    }
}
