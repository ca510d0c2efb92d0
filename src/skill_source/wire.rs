//! What is asked of sources over the network, and what their errors mean.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_api::http::files::FilesError;
use agentsvc_api::skill_source::sources::SourceError;
use reqwest::StatusCode;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::folders::FolderError;
use crate::kernel::egress::{Download, Downloaded, Error, Web};

/// Bytes of a list or of what is said of a skill.
const JSON_BYTES_MAX: u64 = 2 << 20;
/// Bytes of a text of a hub.
pub(super) const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Bytes of an archive.
pub(super) const ARCHIVE_BYTES_MAX: u64 = 256 << 20;
/// For a list, and what is said of a skill.
const ASK_TIME_MAX: Duration = Duration::from_secs(20);
/// For an archive.
const ARCHIVE_TIME_MAX: Duration = Duration::from_secs(300);
/// Requests to sources at once; others are refused.
const REQUESTS_MAX: usize = 16;
/// Seconds that a source may make clients wait.
const RETRY_AFTER_SECS_MAX: u64 = 3_600;
/// Seconds to wait when a source does not say.
const RETRY_AFTER_SECS_DEFAULT: u32 = 30;
/// Characters of what a source says.
const REASON_CHARS_MAX: usize = 200;

/// Whose URL is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The client's: one that may not be used is its mistake, in this key of the body.
    Client(&'static str),
    /// The configuration's, or one that a hub gave.
    Hub,
}

/// The way to sources. Copies share its limit.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) web: Web,
    places: Arc<Semaphore>,
}

impl Wire {
    pub(super) fn new(web: Web) -> Self {
        Self { web, places: Arc::new(Semaphore::new(REQUESTS_MAX)) }
    }

    fn place(&self) -> Result<SemaphorePermit<'_>, SourceError> {
        self.places.try_acquire().map_err(|_| SourceError::TooMany(REQUESTS_MAX))
    }

    /// What is at `url`, in memory.
    pub(super) async fn bytes(&self, url: &str, whose: Whose, bytes_max: u64) -> Result<Vec<u8>, SourceError> {
        self.may_be_missing(url, whose, bytes_max).await?.ok_or_else(|| missing(url))
    }

    /// As [`bytes`](Self::bytes); `None` where there is nothing.
    pub(super) async fn may_be_missing(
        &self,
        url: &str,
        whose: Whose,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, SourceError> {
        let _place = self.place()?;
        let request = Download { url, accept: "*/*", bytes_max, timeout: ASK_TIME_MAX, only_for: None };
        let found = self.web.download(request).await.map_err(|error| failed(error, whose))?;
        if found.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        checked(found, whose).map(|found| Some(found.body))
    }

    /// The JSON at `url`.
    pub(super) async fn json<T: DeserializeOwned + Send + 'static>(
        &self,
        url: &str,
        whose: Whose,
    ) -> Result<T, SourceError> {
        let bytes = self.bytes(url, whose, JSON_BYTES_MAX).await?;
        let read = blocking(move || serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))).await;
        read.map_err(|error| match error {
            SourceError::Failed(why) => SourceError::Failed(format!("{} sent {why}", host(url))),
            other => other,
        })
    }

    /// Downloads an archive into a file.
    pub(super) async fn archive(&self, url: &str, whose: Whose, file: File) -> Result<Downloaded<File>, SourceError> {
        let _place = self.place()?;
        let request =
            Download { url, accept: "*/*", bytes_max: ARCHIVE_BYTES_MAX, timeout: ARCHIVE_TIME_MAX, only_for: None };
        let found = self.web.download_file(request, file).await.map_err(|error| failed(error, whose))?;
        if found.status == StatusCode::NOT_FOUND {
            return Err(missing(url));
        }
        checked(found, whose)
    }
}

/// Work that waits for the disk or takes long.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SourceError> + Send + 'static,
) -> Result<T, SourceError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a skill could not be prepared");
        Err(SourceError::Files(FilesError::Failed))
    })
}

/// One line of what others wrote, without control characters and not too long.
pub(super) fn one_line(text: &str, chars_max: usize) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let cut: String = plain.take(chars_max).collect();
    cut.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The error of JSON that is not what it should be.
pub(super) fn unreadable(error: &serde_json::Error) -> SourceError {
    SourceError::Failed(format!("an answer that cannot be read: {}", one_line(&error.to_string(), REASON_CHARS_MAX)))
}

fn host(url: &str) -> String {
    let parsed = reqwest::Url::parse(url).ok();
    parsed.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| "the source".to_owned())
}

/// Nothing is there.
fn missing(url: &str) -> SourceError {
    SourceError::NotFound(format!("{} does not have it (404)", host(url)))
}

/// The answer, if its status is good.
fn checked<T>(found: Downloaded<T>, whose: Whose) -> Result<Downloaded<T>, SourceError> {
    let Downloaded { status, retry_after, reason, url, .. } = &found;
    if status.is_success() {
        return Ok(found);
    }
    let said = one_line(reason, REASON_CHARS_MAX);
    // A page for people says nothing here.
    let said = if said.is_empty() || said.starts_with('<') { String::new() } else { format!(": {said}") };
    let host = url.host_str().unwrap_or("the source");
    let text = format!("{host} returned status {}{said}", status.as_u16());
    Err(match (*status, whose) {
        (StatusCode::GONE, _) => SourceError::Gone(text),
        (StatusCode::TOO_MANY_REQUESTS, _) => {
            let secs = retry_after.map(|wait| wait.as_secs().clamp(1, RETRY_AFTER_SECS_MAX));
            let secs = secs.and_then(|secs| u32::try_from(secs).ok()).unwrap_or(RETRY_AFTER_SECS_DEFAULT);
            SourceError::Limited { message: text, retry_after_secs: secs }
        }
        // Several owners have a skill of this name.
        (StatusCode::CONFLICT, Whose::Hub) => SourceError::Busy(text),
        (StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT, _) => SourceError::Late(text),
        _ => SourceError::Failed(text),
    })
}

/// What an error of the way there means.
pub(super) fn failed(error: Error, whose: Whose) -> SourceError {
    let text = error.to_string();
    let mut cause = &error;
    while let Error::Hop { cause: inner, .. } = cause {
        cause = inner;
    }
    match (cause, whose) {
        (Error::Timeout(_), _) => SourceError::Late(text),
        (Error::TooLarge(_), Whose::Client(_)) => SourceError::TooLarge(text),
        (Error::Disk(kind), _) => FolderError::from(std::io::Error::from(*kind)).into(),
        (
            Error::Url(_)
            | Error::NotGranted(_)
            | Error::Private { .. }
            | Error::LocalName(_)
            | Error::Port(_)
            | Error::Unencrypted(_)
            | Error::Downgrade(_),
            Whose::Client(field),
        ) => SourceError::Wrong { field, message: text },
        _ => SourceError::Failed(text),
    }
}

impl From<FolderError> for SourceError {
    fn from(error: FolderError) -> Self {
        let text = error.to_string();
        match error {
            FolderError::Refused(why) => {
                Self::Blocked { message: format!("the skill is refused: {why}"), findings: vec![why] }
            }
            FolderError::Unreadable(_) => Self::Unreadable(text),
            FolderError::TooLarge(_) => Self::TooLarge(text),
            FolderError::Exists(name) => Self::Exists(name),
            FolderError::Missing(_) => Self::NotFound(text),
            FolderError::Busy(_) => Self::Busy(text),
            FolderError::Full => Self::Files(FilesError::Full(text)),
            FolderError::Disk(_) => Self::Files(FilesError::Failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_way_are_the_clients_or_the_sources() {
        let private = || Error::Private { host: "h".into(), class: "loopback" };
        let hop = Error::Hop { url: "http://h/".into(), cause: Box::new(private()) };
        for error in [private(), hop, Error::Unencrypted("h".into())] {
            assert!(matches!(failed(error, Whose::Client("source")), SourceError::Wrong { field: "source", .. }));
        }
        assert!(matches!(failed(private(), Whose::Hub), SourceError::Failed(_)));
        assert!(matches!(failed(Error::Timeout(1), Whose::Hub), SourceError::Late(_)));
        assert!(matches!(failed(Error::TooLarge(1), Whose::Client("source")), SourceError::TooLarge(_)));
        let full = Error::Disk(std::io::ErrorKind::StorageFull);
        assert!(matches!(failed(full, Whose::Hub), SourceError::Files(FilesError::Full(_))));
    }

    #[test]
    fn words_of_others_are_one_short_line() {
        assert_eq!(one_line(" a\n\tb\u{1b}[31m ", 80), "a b [31m");
        assert_eq!(one_line(&"x".repeat(300), 10).len(), 10);
    }
}
