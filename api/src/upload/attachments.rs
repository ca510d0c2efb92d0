//! Attachments of a message: uploads become blocks before the message is sent into the world (spec 1, Attachment
//! handling).

use std::sync::Arc;

use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::{InjectionFound, Taint};
use agentsvc_components::session::message::Block;
use agentsvc_components::{AgentId, FileId};
use agentsvc_systems::injection::InjectionPolicy;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::Api;
use crate::http::error::Error;
use crate::http::files::FilesError;
use crate::http::permit::{Permit, Permits};
use crate::upload::files::{Files, Scan, Scanned};

/// One attachment of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct Attachment {
    /// Upload id.
    file_id: Uuid,
}

/// What a message is made of.
pub(crate) struct Attached {
    /// The text and the attachments.
    pub(crate) blocks: Vec<Block>,
    /// Untrusted content among them.
    pub(crate) taint: Taint,
    /// What the scanner found in it.
    pub(crate) found: Vec<InjectionFound>,
    /// Room for the texts of the attachments, to be held until the world has them.
    pub(crate) room: Permit,
}

/// The blocks of a message that says `text`, which may be empty, and has `attachments`: first the text, then they.
///
/// One of no known class is left out; the log says so. The texts of attachments take room of `permits`, as bodies do.
///
/// # Errors
/// 400 naming `message` for a message of nothing, or one too long; 400 naming `attachments` for too many, too long, or none that can be
/// used; 404 naming `attachments[i].file_id` for an upload that is not there or is another agent's; 503 when there is no room for
/// their texts, or others are read for too long.
pub(crate) async fn blocks(
    api: &Api,
    permits: &Arc<Permits>,
    agent: AgentId,
    text: String,
    attachments: &[Attachment],
) -> Result<Attached, Error> {
    let is_silent = text.trim().is_empty();
    if is_silent && attachments.is_empty() {
        return Err(Error::bad_field("message", "message must not be empty"));
    }
    check_length(&text)?;
    let too_many = attachments.len() > limit::ATTACHMENTS_MAX;
    if too_many {
        let most = limit::ATTACHMENTS_MAX;
        return Err(Error::bad_field("attachments", format!("attachments: the limit is {most} per message")));
    }
    let mut blocks = Vec::with_capacity(1 + attachments.len());
    if !is_silent {
        blocks.push(Block::Text { text });
    }
    let (mut found, mut room) = (Vec::new(), Permit::nothing(permits));
    if attachments.is_empty() {
        return Ok(Attached { blocks, taint: Taint::default(), found, room });
    }
    let scan = Scan { policy: *api.state::<InjectionPolicy>(), source: "an attached file" };
    for (at, attachment) in attachments.iter().enumerate() {
        let (files, file) = (api.service::<dyn Files>()?, FileId(attachment.file_id));
        let read = files.attachment(agent, file, scan).await.map_err(|error| of_file(at, error))?;
        let Some(Scanned { block, found: injection }) = read else { continue };
        if let Some(injection) = injection {
            let reasons = injection.reasons.join(",");
            tracing::warn!(%agent, file = %file, level = &*injection.level, %reasons,
                withheld = injection.withheld, "an attachment looks like a prompt injection");
            found.push(*injection);
        }
        if let Block::Text { text } = &block {
            if room.bytes() + text.len() > limit::ATTACHED_BYTES_MAX {
                let most = limit::ATTACHED_BYTES_MAX;
                return Err(Error::bad_field("attachments", format!("attachments: longer than {most} bytes in total")));
            }
            room.take(text.len())?;
        }
        blocks.push(block);
    }
    if blocks.is_empty() {
        return Err(Error::bad_field("attachments", "attachments: none could be read, and the message is empty"));
    }
    Ok(Attached { blocks, taint: Taint::UPLOAD, found, room })
}

/// Refuses the text of a message that is too long. Whoever works on it before [`blocks`] asks first.
///
/// # Errors
/// 400.
pub(crate) fn check_length(text: &str) -> Result<(), Error> {
    let most = limit::MESSAGE_BYTES_MAX;
    match text.len() <= most {
        true => Ok(()),
        false => Err(Error::bad_field("message", format!("message is longer than {most} bytes"))),
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

#[cfg(test)]
mod tests {
    use hyper::Request;
    use serde_json::json;

    use super::*;
    use crate::http::settings::{ApiSettings, Limits};
    use crate::testing::{TestFiles, loading, send};

    const TEXT_BYTES: usize = 40_000;

    /// A front with room for so many bytes of large bodies, whose every upload holds [`TEXT_BYTES`] of text.
    fn roomy(bodies_bytes_max: usize) -> (Arc<Api>, crate::http::bridge::Intake) {
        let limits = Limits { bodies_bytes_max, ..Limits::default() };
        let (api, intake) = loading(ApiSettings { limits, ..ApiSettings::default() });
        api.services.provide::<dyn Files>(Arc::new(TestFiles { text: Some("x".repeat(TEXT_BYTES)) }));
        (api, intake)
    }

    #[tokio::test]
    async fn texts_of_attachments_take_room_and_without_any_the_message_is_refused() {
        let (api, _intake) = roomy(100_000);
        let read = async |count| {
            let files = vec![Attachment { file_id: Uuid::nil() }; count];
            blocks(&api, &api.permits, AgentId(Uuid::nil()), String::new(), &files).await
        };
        let two = read(2).await.unwrap();
        assert_eq!((two.blocks.len(), two.room.bytes(), api.permits.bytes()), (2, 2 * TEXT_BYTES, 2 * TEXT_BYTES));
        let refused = read(2).await.err().unwrap();
        assert_eq!((refused.status().as_u16(), refused.retry_after_secs()), (503, Some(1)));
        assert_eq!(api.permits.bytes(), 2 * TEXT_BYTES, "what was refused holds nothing");
        drop(two);
        assert_eq!(read(2).await.unwrap().room.bytes(), 2 * TEXT_BYTES);
        assert_eq!(api.permits.bytes(), 0);
        let (api, _intake) = roomy(limit::BODIES_BYTES_MAX);
        let files = vec![Attachment { file_id: Uuid::nil() }; limit::ATTACHMENTS_MAX];
        let text = "x".repeat(limit::ATTACHED_BYTES_MAX / limit::ATTACHMENTS_MAX + 1);
        api.services.provide::<dyn Files>(Arc::new(TestFiles { text: Some(text) }));
        let refused = blocks(&api, &api.permits, AgentId(Uuid::nil()), String::new(), &files).await.err().unwrap();
        assert_eq!(refused.status().as_u16(), 400, "it is more than a message may have");
    }

    #[tokio::test]
    async fn texts_hold_their_room_until_the_world_has_them() {
        let attachments = json!([{ "file_id": Uuid::nil() }, { "file_id": Uuid::nil() }]);
        let agent = Uuid::from_u128(1);
        let between = json!({ "from": agent, "to": agent, "content": "hi", "attachments": attachments });
        for (path, body) in [
            (format!("/api/agents/{agent}/message"), json!({ "message": "hi", "attachments": attachments })),
            ("/api/comms/send".to_owned(), between),
        ] {
            let (api, intake) = roomy(100_000);
            intake.open();
            let asked = tokio::spawn({
                let (api, path) = (Arc::clone(&api), path.clone());
                async move { send(&api, Request::post(path), body.to_string()).await.status() }
            });
            while api.bridge.waiting() == 0 && !asked.is_finished() {
                tokio::task::yield_now().await;
            }
            asked.abort();
            assert!(asked.await.is_err());
            assert_eq!(api.permits.bytes(), 2 * TEXT_BYTES, "{path}: the command is still there");
            drop(intake);
            assert_eq!(api.permits.bytes(), 0);
        }
    }

    #[tokio::test]
    async fn the_world_takes_a_command_and_its_room_is_free_while_the_asker_waits() {
        let (api, intake) = roomy(100_000);
        intake.open();
        let room = Permit::of(&api.permits, TEXT_BYTES).unwrap();
        let asked = tokio::spawn({
            let api = Arc::clone(&api);
            async move { api.bridge.ask_holding(agentsvc_systems::world::GetStats, Some(room)).await }
        });
        while intake.arrivals.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(api.permits.bytes(), TEXT_BYTES);
        drop(intake.arrivals.recv());
        assert_eq!(api.permits.bytes(), 0);
        assert!(asked.await.unwrap().is_err());
    }
}
