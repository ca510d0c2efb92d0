//! Notifications for the paired devices.

use std::sync::Arc;

use agentsvc_components::Refusal;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::kernel::job::Job;
use agentsvc_components::pairing::Notification;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::index::Devices;
use super::{audit_kinds, limits};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::job::{self, JobEvent, JobKind, NewJob};

/// The name of the kind of jobs. The input is a [`Notification`] as JSON.
pub const NAME: &str = "notification";
/// What a try may take beyond the time of the push service.
const TIMEOUT_MARGIN_MS: u32 = 5_000;
/// Bytes of an input: a byte of a text can be six in JSON.
const INPUT_BYTES_MAX: usize = 6 * (limits::NOTIFICATION_TITLE_BYTES_MAX + limits::NOTIFICATION_MESSAGE_BYTES_MAX) + 64;

/// Notifications. One that was under way when the daemon ended is sent again: twice is better than never.
pub(super) const JOB: JobKind = JobKind {
    name: NAME,
    repeatable: true,
    tries_max: limits::NOTIFICATION_TRIES_MAX,
    backoff_ms: limits::NOTIFICATION_BACKOFF_MS,
    backoff_ms_max: limits::NOTIFICATION_BACKOFF_MS_MAX,
    deadline_ms: limits::NOTIFICATION_DEADLINE_MS,
    timeout_ms: limits::NOTIFICATION_TIMEOUT_MS + TIMEOUT_MARGIN_MS,
    lane: 1,
    subject_lane: 1,
    is_shared: false,
    is_ordered: true,
    count_max: limits::NOTIFICATIONS_OPEN_MAX,
    subject_count_max: limits::NOTIFICATIONS_OPEN_MAX,
    subject_bytes_max: limits::NOTIFICATIONS_OPEN_MAX * INPUT_BYTES_MAX,
    input_bytes_max: INPUT_BYTES_MAX,
    bytes_max: limits::NOTIFICATIONS_OPEN_MAX * INPUT_BYTES_MAX,
    settle,
};

/// Sends a notification to the devices.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NotifyDevices {
    /// One line above the text.
    pub title: String,
    /// The text.
    pub message: String,
    /// Is there a push service?
    pub can_send: bool,
}

command! {
    /// The job and for how many devices it is; nothing where nothing is sent.
    write "notify_devices" NotifyDevices => Option<(JobId, usize)>, Root, |it, world| Answer::stored(notify(world, it))
}

fn notify(world: &mut World, it: NotifyDevices) -> Result<Option<(JobId, usize)>, Refusal> {
    let title = checked("title", &it.title, limits::NOTIFICATION_TITLE_BYTES_MAX)?;
    if title.chars().any(char::is_control) {
        return Err(Refusal::bad_field("title", "title must be one line without control characters"));
    }
    let message = checked("message", &it.message, limits::NOTIFICATION_MESSAGE_BYTES_MAX)?;
    let devices = world.resource::<Devices>().len();
    if !it.can_send || devices == 0 {
        return Ok(None);
    }
    let input = serde_json::to_string(&Notification { title, message }).unwrap_or_default();
    // One line for all: they come in their order.
    let id =
        job::add(world, NAME, NewJob { subject: Uuid::nil(), owner: None, holder: None, input: Arc::from(input) })?;
    world.audit(audit_kinds::DEVICES_NOTIFIED, None, json!({ "notification": id }));
    Ok(Some((id, devices)))
}

fn checked(field: &str, text: &str, most: usize) -> Result<Box<str>, Refusal> {
    let text = text.trim();
    if text.is_empty() || text.len() > most {
        return Err(Refusal::bad_field(field, format!("{field} must have 1 to {most} bytes")));
    }
    Ok(text.into())
}

/// Hears of a try, or of the end of a notification.
fn settle(world: &mut World, id: JobId, of: &Job, event: JobEvent) {
    let reason = match event {
        JobEvent::Done(_) | JobEvent::Retried(_) => return,
        JobEvent::Failed(reason) => reason,
        JobEvent::Unknown => "how it ended is not known".to_owned(),
    };
    world.audit(
        audit_kinds::NOTIFICATION_FAILED,
        None,
        json!({ "notification": id, "tries": of.tries, "reason": reason }),
    );
}
