//! `device`: phones and other devices that are paired.

use clap::{Args, Subcommand};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde_json::{Value, json};

use crate::kernel::cli::context::Context;
use crate::kernel::cli::names::Listed;
use crate::kernel::cli::output::{Table, field, items};
use crate::kernel::cli::{Error, Run, output};
use crate::kernel::percent::encoded;

/// Subcommands of `device`.
#[derive(Debug, Subcommand)]
pub(crate) enum Device {
    /// List the paired devices
    List,
    /// Create a pairing code and print it, also as a QR code
    Pair(Pair),
    /// Remove a device and revoke its key
    Remove {
        /// Name or id of the device
        device: String,
    },
}

/// Options of `device pair`.
#[derive(Debug, Args)]
pub(crate) struct Pair {
    /// Name or id of the user who owns the device
    #[arg(long)]
    user: Option<String>,
    /// Role of a device without a user
    #[arg(long, conflicts_with = "user", value_parser = ["admin", "owner"])]
    role: Option<String>,
    /// Scope of the device; can be repeated [default: read and chat]
    #[arg(long = "scope", value_name = "SCOPE", value_parser = ["read", "chat", "write", "admin"])]
    scopes: Vec<String>,
    /// Do not print a QR code
    #[arg(long)]
    no_qr: bool,
}

impl Run for Device {
    fn run(self, context: &Context) -> Result<(), Error> {
        match self {
            Self::List => context.show("/api/pairing/devices", devices),
            Self::Pair(pair) => pair.run(context),
            Self::Remove { device } => {
                let answer = context.block_on(async {
                    let client = context.client()?;
                    let id = client.id_of(&Listed::new("/api/pairing/devices", "device"), &device).await?;
                    client.delete(&format!("/api/pairing/devices/{}", encoded(&id))).await
                })?;
                context.print(&answer, |_| format!("removed {device}\n"))
            }
        }
    }
}

impl Pair {
    fn run(self, context: &Context) -> Result<(), Error> {
        let mut body = json!({});
        if let Some(user) = self.user {
            let listed = Listed::new("/api/users", "user");
            body["user_id"] = json!(context.block_on(async { context.client()?.id_of(&listed, &user).await })?);
        }
        if let Some(role) = self.role {
            body["role"] = json!(role);
        }
        if !self.scopes.is_empty() {
            body["scopes"] = json!(self.scopes);
        }
        let made = context.block_on(async { context.client()?.post("/api/pairing/request", Some(&body)).await })?;
        if context.json() {
            return output::json(&made);
        }
        if !self.no_qr {
            output::print(&drawn(&field(&made, "/qr_uri")))?;
        }
        output::print(&output::clean(&format!("{}\n", field(&made, "/pairing_code"))))?;
        output::note(&format!("the code is good for one device, until {}", field(&made, "/expires_at")));
        Ok(())
    }
}

/// A text as a QR code of block characters, light on dark as most terminals are; nothing for one that is too long.
fn drawn(text: &str) -> String {
    let code = QrCode::with_error_correction_level(text, qrcode::EcLevel::L);
    let drawn =
        code.map(|code| code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build());
    drawn.map(|drawn| format!("{drawn}\n")).unwrap_or_default()
}

fn devices(answer: &Value) -> Table {
    let columns = [
        ("NAME", "/display_name"),
        ("PLATFORM", "/platform"),
        ("ROLE", "/role"),
        ("PAIRED", "/paired_at"),
        ("SEEN", "/last_seen"),
        ("ID", "/id"),
    ];
    Table::of("paired devices", items(answer, "devices"), &columns).hint("Pair one with `agentsvc device pair`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_drawn_in_blocks_with_a_light_edge() {
        let text = drawn("librefang://pair?payload=abc");
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.len() > 12 && lines.iter().all(|line| line.chars().count() == lines[0].chars().count()));
        assert!(lines[0].chars().all(|it| it == '█'), "the quiet zone is light");
        assert!(drawn(&"x".repeat(10_000)).is_empty());
    }
}
