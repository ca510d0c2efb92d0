//! A skill of a hub: what the hub says of it, its archive, and the sums of its files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _};

use agentsvc_api::skill_source::sources::{Hub, SourceError};
use serde_json::Value;

use super::convert::Origin;
use super::fetch::{self, Fetched, Remote, without};
use super::folders::{FolderError, Folders};
use super::hub::{Named, Said};
use super::source::kind_of;
use super::staging::{FileSum, Staging};
use super::sums;
use super::wire::{Whose, Wire, blocking, one_line, unreadable};
use crate::kernel::percent::encoded;

/// The file that hubs add to their archives; no list has it.
const META: &str = "_meta.json";
/// Bytes of an answer in place of an archive.
const HAND_OFF_BYTES_MAX: u64 = 64 << 10;
/// The word for a skill that is in a repository of GitHub.
const PUBLIC_GITHUB: &str = "public-github";

/// A place elsewhere that a hub names in place of an archive.
struct HandOff {
    url: String,
    inner: Option<String>,
    content_hash: Option<String>,
}

/// Fetches a skill of a hub.
pub(super) struct HubInstall<'a> {
    pub(super) wire: &'a Wire,
    pub(super) folders: Folders,
    /// URL of the hub.
    pub(super) base: String,
    pub(super) named: Named,
    pub(super) verify: bool,
}

impl HubInstall<'_> {
    /// Fetches it and compares the sums of its files with those that the hub lists.
    ///
    /// # Errors
    /// [`SourceError`].
    pub(super) async fn fetch(self, said: Said) -> Result<Fetched, SourceError> {
        let Said { item, is_blocked, warnings, .. } = said;
        if is_blocked {
            let message = format!("the hub has blocked {:?} as malware", item.slug);
            return Err(SourceError::Blocked { findings: vec![message.clone()], message });
        }
        let version = self.named.version.clone().or(Some(item.version).filter(|version| !version.is_empty()));
        let listed = match &version {
            Some(version) => self.listed(version).await?,
            None => Listed::default(),
        };
        let origin = Origin {
            kind: kind_of(self.named.hub),
            slug: Some(item.slug.clone()),
            version: version.clone(),
            author: Some(item.author).filter(|author| !author.is_empty()),
            fallback: item.slug,
        };
        let Listed { files, warning } = listed;
        let mut fetched = self.archive(version.as_deref(), origin, files).await?;
        for message in warnings.into_iter().chain(warning) {
            fetched.warn(message);
        }
        Ok(fetched)
    }

    /// The files of a version, as the hub lists them.
    async fn listed(&self, version: &str) -> Result<Listed, SourceError> {
        let (slug, owner) = (encoded(&self.named.slug), self.named.of_owner('?'));
        let url = format!("{}/skills/{slug}/versions/{}{owner}", self.base, encoded(version));
        let answer: Value = match self.wire.json(&url, Whose::Hub).await {
            Err(SourceError::NotFound(_)) => Value::Null,
            answer => answer?,
        };
        listed(&answer)
    }

    async fn archive(
        self,
        version: Option<&str>,
        origin: Origin,
        listed: BTreeMap<String, String>,
    ) -> Result<Fetched, SourceError> {
        let (slug, owner) = (encoded(&self.named.slug), self.named.of_owner('&'));
        let version = version.map(|version| format!("&version={}", encoded(version))).unwrap_or_default();
        let url = format!("{}/download?slug={slug}{version}{owner}", self.base);
        let (staging, file) = fetch::staged(&self.folders).await?;
        let file = self.wire.archive(&url, Whose::Hub, file).await?.body;
        let (file, hand_off) = blocking(move || hand_off(file)).await?;
        let verify = self.verify;
        let Some(HandOff { url, inner, content_hash }) = hand_off else {
            return blocking(move || of_zip(file, staging, origin, (listed, verify))).await;
        };
        drop((file, staging));
        let remote = Remote { url: &url, whose: Whose::Hub, inner, sum_beside: false, sums_within: false };
        let fetched = fetch::of_archive(self.wire, self.folders, remote, origin.clone()).await?;
        blocking(move || {
            let mut fetched = Fetched { origin, ..fetched };
            if verify {
                of_repository(&mut fetched, content_hash.as_deref(), &listed)?;
            }
            Ok(fetched)
        })
        .await
    }
}

/// What a hub lists of a version.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listed {
    /// Sums by path.
    files: BTreeMap<String, String>,
    /// What its scanners say.
    warning: Option<String>,
}

fn listed(answer: &Value) -> Result<Listed, SourceError> {
    let version = if answer["version"].is_object() { &answer["version"] } else { answer };
    let mut files = BTreeMap::new();
    for file in version["files"].as_array().into_iter().flatten() {
        let (path, sum) = (file["path"].as_str(), file["sha256"].as_str());
        let (Some(path), Some(sum)) = (path, sum.filter(|sum| sums::is_sum(sum))) else {
            return Err(SourceError::Failed("the hub lists a file without a path or a SHA-256".to_owned()));
        };
        files.insert(path.to_owned(), sum.to_ascii_lowercase());
    }
    let security = if version["security"].is_object() { &version["security"] } else { &answer["security"] };
    let status = ["status", "verdict"].iter().find_map(|key| security[*key].as_str()).unwrap_or_default();
    match status {
        "malicious" => {
            let message = "the scanners of the hub call the skill malicious".to_owned();
            Err(SourceError::Blocked { findings: vec![message.clone()], message })
        }
        "suspicious" => {
            Ok(Listed { files, warning: Some("the scanners of the hub call the skill suspicious".to_owned()) })
        }
        _ => Ok(Listed { files, warning: None }),
    }
}

/// Reads the answer in place of an archive, if it is one.
fn hand_off(mut file: File) -> Result<(File, Option<HandOff>), SourceError> {
    file.rewind().map_err(FolderError::from)?;
    let mut head = Vec::new();
    (&mut file).take(HAND_OFF_BYTES_MAX).read_to_end(&mut head).map_err(FolderError::from)?;
    file.rewind().map_err(FolderError::from)?;
    if head.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Ok((file, None));
    }
    let answer: Value = serde_json::from_slice(&head).map_err(|error| unreadable(&error))?;
    let source = answer["sourceRef"].as_str().unwrap_or_default();
    let (Some(url), PUBLIC_GITHUB) = (answer["archiveUrl"].as_str(), source) else {
        let source = one_line(source, 60);
        return Err(SourceError::Failed(format!("the hub refers to a source that is not known: {source:?}")));
    };
    let inner = answer["path"].as_str().map(|path| path.trim_matches('/')).filter(|path| !matches!(*path, "" | "."));
    let inner = inner.map(super::entry::checked).transpose().map_err(SourceError::Failed)?;
    let content_hash = answer["contentHash"].as_str().map(str::to_owned);
    Ok((file, Some(HandOff { url: url.to_owned(), inner, content_hash })))
}

/// The archive of the hub itself: each of its files is one that is listed.
fn of_zip(
    file: File,
    mut staging: Staging,
    origin: Origin,
    (listed, verify): (BTreeMap<String, String>, bool),
) -> Result<Fetched, SourceError> {
    fetch::unpack_into(file, &mut staging, None).map_err(of_hub)?;
    staging.remove(META)?;
    let mut fetched = Fetched::new(staging, origin);
    if verify && listed.is_empty() {
        fetched.warn("the hub lists no checksums of the files");
    } else if verify {
        let files = fetched.staging.files()?;
        exact(&files, &listed)?;
        fetched.verified = true;
    }
    Ok(fetched)
}

/// The archive of a repository: the folder has the hash that the hub says, or its files those that are listed.
fn of_repository(
    fetched: &mut Fetched,
    content_hash: Option<&str>,
    listed: &BTreeMap<String, String>,
) -> Result<(), SourceError> {
    let files = fetched.staging.files()?;
    if !listed.is_empty() {
        exact(&files, listed)?;
        fetched.verified = true;
    } else if let Some(expected) = content_hash {
        let expected = expected.trim_start_matches("sha256:");
        if !sums::is_content_hash(&files, expected) {
            let message =
                format!("the files are not those that the hub names: their hash is not {}", one_line(expected, 80));
            return Err(SourceError::Checksum { message, of_hub: true });
        }
        fetched.verified = true;
    } else {
        fetched.warn("the hub lists no checksums of the files");
    }
    Ok(())
}

/// Each file is listed, and each that is listed is there.
fn exact(files: &[FileSum], listed: &BTreeMap<String, String>) -> Result<(), SourceError> {
    let wrong = |message: String| SourceError::Checksum { message, of_hub: true };
    let files = without(files.to_vec(), META);
    let unlisted = sums::compare(&files, listed).map_err(wrong)?;
    match unlisted.first() {
        Some(path) => Err(wrong(format!("{path:?} is in the archive of the hub, which does not list it"))),
        None => Ok(()),
    }
}

/// An archive of a hub that holds no skill is a fault of the hub.
fn of_hub(error: SourceError) -> SourceError {
    match error {
        SourceError::Manifest(why) => SourceError::Failed(format!("the hub sent no skill: {why}")),
        SourceError::Unreadable(why) => SourceError::Failed(format!("the hub sent no archive: {why}")),
        other => other,
    }
}

impl Named {
    /// What names it, of a source that is a hub's.
    pub(super) fn of(hub: Hub, owner: Option<String>, slug: String, version: Option<String>) -> Self {
        Self { hub, owner, slug, version }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    fn file(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file
    }

    #[test]
    fn an_answer_in_place_of_an_archive_is_followed_or_refused() {
        let answer = |value: Value| hand_off(file(value.to_string().as_bytes())).map(|(_, hand_off)| hand_off);
        let found = answer(json!({ "sourceRef": "public-github", "repo": "o/r", "commit": "c", "path": "skills/a/",
            "contentHash": "h", "archiveUrl": "https://x/a.zip" }));
        let found = found.unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.inner.as_deref()), ("https://x/a.zip", Some("skills/a")));
        assert!(hand_off(file(b"PK\x03\x04")).unwrap().1.is_none());
        for wrong in [
            json!({ "sourceRef": "private", "archiveUrl": "https://x/a.zip" }),
            json!({ "sourceRef": "public-github" }),
            json!({ "sourceRef": "public-github", "archiveUrl": "https://x/a.zip", "path": "../.." }),
        ] {
            assert!(matches!(answer(wrong).err(), Some(SourceError::Failed(_))));
        }
        assert!(hand_off(file(b"{ broken")).is_err());
    }

    #[test]
    fn sums_and_verdicts_are_read() {
        let sum = "A".repeat(64);
        let answer = json!({ "version": { "files": [{ "path": "SKILL.md", "size": 1, "sha256": sum }],
            "security": { "status": "suspicious" } } });
        let found = listed(&answer).unwrap();
        assert_eq!((found.files["SKILL.md"].as_str(), found.warning.is_some()), ("a".repeat(64).as_str(), true));
        assert_eq!(listed(&Value::Null).unwrap(), Listed::default());
        assert!(listed(&json!({ "version": { "files": [{ "path": "SKILL.md" }] } })).is_err());
        let bad = json!({ "version": { "files": [], "security": { "status": "malicious" } } });
        assert!(matches!(listed(&bad).unwrap_err(), SourceError::Blocked { .. }));
    }
}
