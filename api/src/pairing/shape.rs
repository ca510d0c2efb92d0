//! The bodies of devices and their codes.

use agentsvc_systems::pairing::DeviceView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::routes::pairing;
use crate::http::crud::shown;
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::people::shape::{RoleWord, ScopeWord};

/// What the device may do.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct RequestBody {
    /// Whose device it is: it may do what the user may do, and goes with the user. Default: the user who asks, if there is one.
    pub(super) user_id: Option<Uuid>,
    /// `admin` or `owner`, for a device without a user. Default: `admin`.
    pub(super) role: Option<RoleWord>,
    /// The only scopes that it has; an empty list for all those of the role. Default: `["read", "chat"]`.
    pub(super) scopes: Option<Vec<ScopeWord>>,
}

/// A code that waits for its device. It is not shown again.
#[derive(Serialize, JsonSchema)]
pub(super) struct PairingCode {
    /// The code for people, such as `7KQM-2XYZ`.
    pub(super) pairing_code: String,
    /// The same for programs, 64 hexadecimal digits.
    pub(super) token: String,
    /// The text of a QR code: `librefang://pair?payload=` and, in base64url, JSON with `v`, `base_url`, `token` and `expires_at`.
    pub(super) qr_uri: String,
    pub(super) expires_at: Moment,
    pub(super) role: RoleWord,
    /// The only scopes that the device has; empty for all those of the role.
    pub(super) scopes: Vec<ScopeWord>,
}

/// What a device sends. Write the code into one of `pairing_code`, `code` and `token`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct CompleteBody {
    /// The code, with or without the dash, or the token of the QR code.
    pub(super) pairing_code: Option<String>,
    /// The same.
    pub(super) code: Option<String>,
    /// The same.
    pub(super) token: Option<String>,
    /// What people call the device: one line of at most 100 bytes. Default: `Device`.
    #[serde(alias = "device_name", alias = "name")]
    pub(super) display_name: Option<String>,
    /// What it runs, such as `ios`; at most 64 bytes.
    pub(super) platform: Option<String>,
    /// Accepted and not kept: notifications go to the topic or the application that the configuration names.
    #[allow(dead_code, reason = "its shape is for the OpenAPI document")]
    pub(super) push_token: Option<String>,
}

/// A device and its key, which is shown this once.
#[derive(Serialize, JsonSchema)]
pub(super) struct Paired {
    /// The key, for `Authorization: Bearer`.
    pub(super) api_key: String,
    pub(super) device_id: Uuid,
    #[serde(flatten)]
    pub(super) item: DeviceItem,
}

/// A notification.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct NotifyBody {
    /// One line of at most 256 bytes. Default: `agentsvc`.
    pub(super) title: Option<String>,
    /// The text, at most 4096 bytes.
    #[serde(alias = "body")]
    pub(super) message: Option<String>,
}

/// What becomes of a notification.
#[derive(Serialize, JsonSchema)]
pub(super) struct Notified {
    /// Always true.
    pub(super) ok: bool,
    /// Devices that it is for; 0 when there are none, or there is no `push_provider`, and nothing is sent.
    pub(super) notified: usize,
    /// `ntfy`, `gotify` or `none`.
    pub(super) push_provider: &'static str,
    /// The notification, which is sent in the background; null when nothing is sent. If it fails, the audit log says why.
    pub(super) notification_id: Option<Uuid>,
}

shape! {
    /// A paired device.
    pub(crate) struct DeviceItem from view: DeviceView {
        id: Uuid = view.id.0,
        display_name: Box<str> = view.device.name,
        /// What it runs, as it says.
        platform: Box<str> = view.device.platform,
        /// Its API key, as `/api/keys` lists it.
        key_id: Uuid = view.device.key.0,
        /// The user; null if it has none.
        user_id: Option<Uuid> = view.user.map(|user| user.0),
        role: RoleWord = view.role.into(),
        /// The only scopes that it has; empty for all those of the role.
        scopes: Vec<ScopeWord> = view.scopes.into_iter().map(ScopeWord::from).collect(),
        paired_at: Moment = Moment(view.device.paired_at),
        /// When it last used its key, to 10 minutes.
        last_seen: Option<Moment> = view.used_at.map(Moment),
    }
}

shown!(DeviceItem: DeviceView, "the device"; "devices", |call| pairing(call).map(drop));
