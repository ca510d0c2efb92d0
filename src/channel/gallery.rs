//! Platforms for which a channel can be set up: files of `{home}/channels`, and the adapters of the SDK.

use std::collections::BTreeMap;
use std::path::Path;

use agentsvc_api::channel::shape::{RegistryEntry, RegistryText};
use serde::Deserialize;

use crate::kernel::disk;

/// The adapters of the SDK.
const ADAPTERS: &[&str] = &[
    "bluesky",
    "dingtalk",
    "discord",
    "email",
    "feishu",
    "google_chat",
    "gotify",
    "line",
    "mastodon",
    "matrix",
    "mattermost",
    "nextcloud",
    "ntfy",
    "qq",
    "reddit",
    "rocketchat",
    "signal",
    "slack",
    "teams",
    "telegram",
    "twitch",
    "webex",
    "webhook",
    "wechat",
    "wecom",
    "whatsapp",
    "zulip",
];
/// Files that are read, and the bytes of one.
const FILES_MAX: usize = 500;
const FILE_BYTES_MAX: usize = 256 << 10;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    id: String,
    name: String,
    description: String,
    category: String,
    tags: Vec<String>,
    icon: String,
    protocol: String,
    metadata: Metadata,
    i18n: BTreeMap<String, Texts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    url: Option<String>,
    docs: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Texts {
    name: Option<String>,
    description: Option<String>,
}

/// All of them, by id; `running` are adapters with the channels that run them. Blocks on the disk.
///
/// # Errors
/// Why the directory cannot be read.
pub(super) fn entries(directory: &Path, running: &[(String, String)]) -> Result<Vec<RegistryEntry>, String> {
    let files = disk::entries(directory).map_err(|error| error.to_string())?;
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "toml")).take(FILES_MAX);
    let mut all: BTreeMap<String, RegistryEntry> = BTreeMap::new();
    for path in files {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let entry =
            read(&path).unwrap_or_else(|error| RegistryEntry { error: Some(error), ..RegistryEntry::default() });
        let id = if entry.id.is_empty() { stem } else { entry.id.clone() };
        all.insert(id.clone(), RegistryEntry { id, ..entry });
    }
    for adapter in ADAPTERS {
        all.entry((*adapter).to_owned()).or_insert_with(|| RegistryEntry {
            id: (*adapter).to_owned(),
            name: (*adapter).to_owned(),
            protocol: "sidecar".to_owned(),
            ..RegistryEntry::default()
        });
    }
    for (id, entry) in &mut all {
        let known = id.replace('-', "_");
        entry.adapter = ADAPTERS.contains(&known.as_str()).then_some(known);
        let adapter = entry.adapter.as_ref();
        let of_this = running.iter().filter(|(name, _)| Some(name) == adapter);
        entry.channels = of_this.map(|(_, name)| name.clone()).collect();
    }
    Ok(all.into_values().collect())
}

fn read(path: &Path) -> Result<RegistryEntry, String> {
    let text = disk::read_text(path).map_err(|error| error.to_string())?;
    if text.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    let it: Written = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    let texts = |(language, texts): (String, Texts)| {
        (language, RegistryText { name: texts.name, description: texts.description })
    };
    Ok(RegistryEntry {
        id: it.id,
        name: it.name,
        description: it.description,
        category: it.category,
        tags: it.tags,
        icon: it.icon,
        protocol: it.protocol,
        url: it.metadata.url,
        docs: it.metadata.docs,
        i18n: it.i18n.into_iter().map(texts).collect(),
        ..RegistryEntry::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_beside_the_adapters_of_the_sdk() {
        let home = tempfile::tempdir().unwrap();
        let text = "id = \"ntfy\"\nname = \"ntfy\"\nicon = \"🔔\"\n[i18n.de]\nname = \"n\"\n[metadata]\nurl = \"https://ntfy.sh\"\n";
        std::fs::write(home.path().join("ntfy.toml"), text).unwrap();
        std::fs::write(home.path().join("broken.toml"), "id = ").unwrap();
        let all = entries(home.path(), &[("ntfy".to_owned(), "alerts".to_owned())]).unwrap();
        let find = |id: &str| all.iter().find(|entry| entry.id == id).unwrap();
        assert_eq!(
            (find("ntfy").channels.as_slice(), find("ntfy").adapter.as_deref()),
            (&["alerts".to_owned()][..], Some("ntfy"))
        );
        assert!(find("broken").error.is_some() && find("broken").adapter.is_none());
        assert!(find("google_chat").adapter.is_some() && all.len() == ADAPTERS.len() + 1);
    }
}
