//! Devices that were paired: phones and the like, each with an API key of its own.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::{KeyId, uuid_id};
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "pairing", uses: &[] };

uuid_id! {
    /// Names one paired device.
    DeviceId
}

/// A device that was paired.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// What people call it, on one line.
    pub name: Box<str>,
    /// What it runs, such as `ios`, as the device says.
    #[serde(default, skip_serializing_if = "is_default")]
    pub platform: Box<str>,
    /// Its API key: one goes with the other.
    pub key: KeyId,
    /// When it was paired.
    pub paired_at: Timestamp,
}

stored!(Device: b'5', DeviceId);

impl Device {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.name.len() + self.platform.len()
    }
}

/// What is sent to the devices: the input of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// One line above the text.
    pub title: Box<str>,
    /// The text.
    pub message: Box<str>,
}
