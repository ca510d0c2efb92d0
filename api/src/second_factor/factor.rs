//! The second factor as this room sees it: codes of an authenticator beside the key of the API (spec 3, Authentication).
//! Implemented where the vault is known.

use crate::http::error_codes as http_codes;
use crate::second_factor::audit_kinds;
use crate::second_factor::error_codes;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::Refusal;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_systems::audit::NoteAction;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Handle;

use crate::http::call::Call;
use crate::http::error::Error;

/// Why a code did not count. The texts are for clients: no path of the machine stands in them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactorError {
    /// There is no code, and there must be one (400).
    #[error("a code of the second factor is required")]
    Missing,
    /// It has not the form of a code (400). Does not count as an attempt.
    #[error("{0}")]
    Malformed(&'static str),
    /// It is not the code of this moment, or was used before (400).
    #[error("the code is wrong, expired or already used")]
    Wrong,
    /// There is no second factor that could be asked (400).
    #[error("{0}")]
    NotEnrolled(&'static str),
    /// Too many wrong codes (429).
    #[error("too many wrong codes; wait before you try again")]
    Locked {
        /// Seconds until the next code is looked at.
        retry_after_secs: u32,
    },
    /// The change cannot be put on record, so it was not made: what the world says.
    #[error("{}", .0.message)]
    Unrecorded(Refusal),
    /// The vault cannot be read or written; the reason is in the log (500).
    #[error("the vault is unavailable; see the daemon's log for the reason")]
    Unavailable,
}

impl FactorError {
    /// As the client sees it, where the code came in `field`.
    #[must_use]
    pub fn named(&self, field: &str) -> Error {
        let text = self.to_string();
        match self {
            Self::Missing | Self::Malformed(_) | Self::Wrong | Self::NotEnrolled(_) => {
                let code = if matches!(self, Self::NotEnrolled(_)) {
                    error_codes::TOTP_NOT_ENROLLED
                } else {
                    error_codes::TOTP_CODE
                };
                Error::bad_field(field, format!("{field}: {text}")).code(code)
            }
            Self::Locked { retry_after_secs } => {
                Error::of(error_codes::TOTP_LOCKED, text).retry_after(*retry_after_secs)
            }
            Self::Unrecorded(refusal) => Error::from(refusal.clone()),
            Self::Unavailable => Error::of(http_codes::VAULT_UNAVAILABLE, text),
        }
    }
}

/// Status of the second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TotpStatus {
    /// Whether a secret is set, confirmed or not.
    pub enrolled: bool,
    /// Whether the secret is confirmed.
    pub confirmed: bool,
    /// Whether approvals need a code (`[approval] second_factor = "totp"`).
    pub enforced: bool,
    /// Number of unused recovery codes.
    pub remaining_recovery_codes: usize,
}

/// A new secret; shown once. Whoever drops it forgets it.
pub struct NewSecret {
    /// In base32, as authenticators take it.
    pub base32: String,
    /// The same as an `otpauth://` URI, as they read it from a picture.
    pub uri: String,
    /// Codes for the day when the authenticator is lost, each for one use.
    pub recovery_codes: Vec<String>,
}

/// Puts a change on record. Called when nothing but the disk stands in the change's way any more, and before it is made; when
/// it is refused nothing changes. Waits for the disk.
pub type OnRecord<'a> = &'a dyn Fn() -> Result<(), Refusal>;

/// Keeps the secret and judges codes. Every call touches the disk: on a tokio worker use `spawn_blocking`. What a call
/// answers is durable, so that a code that was used is used also after a crash.
pub trait SecondFactor: Send + Sync + 'static {
    /// How it is.
    ///
    /// # Errors
    /// [`FactorError::Unavailable`].
    fn status(&self) -> Result<TotpStatus, FactorError>;

    /// Makes a new secret, which counts once it is confirmed. While there is a confirmed one, `code` must be a code or a
    /// recovery code of it; it counts until the new one is confirmed.
    ///
    /// # Errors
    /// [`FactorError`].
    fn setup(&self, code: Option<&str>, on_record: OnRecord<'_>) -> Result<NewSecret, FactorError>;

    /// Makes the new secret count, if `code` is a code of it.
    ///
    /// # Errors
    /// [`FactorError`].
    fn confirm(&self, code: &str, on_record: OnRecord<'_>) -> Result<(), FactorError>;

    /// Forgets the secret, if `code` is a code or a recovery code of it.
    ///
    /// # Errors
    /// [`FactorError`].
    fn revoke(&self, code: &str, on_record: OnRecord<'_>) -> Result<(), FactorError>;

    /// May a client approve, with `code`? Always, when approving needs no code. Wrong codes are counted for `who` alone, such as a
    /// user or a key. A right one is enough for a while for `by` alone: one key or session at one address, so that nobody else who
    /// comes from there, such as through the same proxy, approves with it.
    ///
    /// # Errors
    /// [`FactorError`].
    fn allow(&self, by: &str, who: &str, code: Option<&str>) -> Result<(), FactorError>;

    /// Is this the code of `user`, who signs in with a password? Wrong codes are counted for that user's sign-ins alone. The grace period of approvals neither replaces it nor begins
    /// with it. None is needed when approving needs none.
    ///
    /// # Errors
    /// [`FactorError`].
    fn verify(&self, user: &str, code: Option<&str>) -> Result<(), FactorError>;
}

/// Runs a look at the second factor on a thread that may wait for the disk. `field` is where the code came in. A wrong code
/// goes on the audit trail.
///
/// # Errors
/// What the client sees of a [`FactorError`]; 503 while there is no second factor yet.
pub(crate) async fn ask<T: Send + 'static>(
    call: &Call,
    field: &'static str,
    look: impl FnOnce(&dyn SecondFactor) -> Result<T, FactorError> + Send + 'static,
) -> Result<T, Error> {
    // Fail closed: who cannot be asked allows nothing.
    let Some(factor) = call.api.services.get::<dyn SecondFactor>() else {
        return Err(Error::unavailable("the second factor is still loading; try again in a moment", 1));
    };
    let looked = spawn_blocking(move || look(&*factor)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "checking the second factor was interrupted");
        Err(FactorError::Unavailable)
    });
    if matches!(looked, Err(FactorError::Wrong)) {
        let details = json!({ "peer": call.peer.to_string(), "route": call.route.path });
        call.ask(NoteAction { kind: audit_kinds::SECOND_FACTOR_FAILED, agent: None, details }).await?;
    }
    looked.map_err(|error| error.named(field))
}

/// Runs a change of the second factor, which goes on the audit trail as `kind` before it is made: one that then fails leaves an
/// entry, one that is made never lacks it, whoever gives up waiting.
///
/// # Errors
/// Those of [`ask`], and the world's refusal of the entry: nothing was changed.
pub(crate) async fn change<T: Send + 'static>(
    call: &Call,
    kind: AuditKind,
    act: impl FnOnce(&dyn SecondFactor, OnRecord<'_>) -> Result<T, FactorError> + Send + 'static,
) -> Result<T, Error> {
    let (bridge, runtime) = (call.api.bridge.clone(), Handle::current());
    ask(call, "code", move |factor| {
        let note = || runtime.block_on(bridge.ask(NoteAction { kind: kind.clone(), agent: None, details: json!({}) }));
        act(factor, &note)
    })
    .await
}
