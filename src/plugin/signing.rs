//! Signing: the sums of all files go into the manifest, and the signature of the manifest beside it.

use std::collections::BTreeMap;
use std::path::Path;

use agentsvc_api::http::error::Error;
use agentsvc_api::http::files::FilesError;
use agentsvc_api::plugin::error_codes::PLUGIN_INVALID;
use agentsvc_api::plugin::plugins::Signed;
use toml_edit::{DocumentMut, Item, Table, value};

use super::install::of_folder;
use super::library::{Library, text_of};
use super::manifest::FILE;
use super::signature;
use crate::kernel::disk;
use crate::skill_source::staging::{FileSum, files};

/// Signs a plugin. Blocks on the disk; what is kept of plugins must not change meanwhile.
///
/// # Errors
/// Its files cannot be read, or its manifest is no TOML.
pub(super) fn sign(library: &Library, name: &str, folder: &Path) -> Result<Signed, Error> {
    let invalid = |why: String| Error::of(PLUGIN_INVALID, why);
    let failed = |error: std::io::Error| {
        tracing::error!(%error, plugin = name, "a plugin could not be signed");
        Error::from(FilesError::Failed)
    };
    let list = files(folder).map_err(|error| of_folder(error, name))?;
    let hashes = hashes(&list);
    let text = with_sums(&text_of(folder).map_err(invalid)?, &hashes).map_err(invalid)?;
    let signer = library.signer().map_err(|why| {
        tracing::error!(why, "a plugin could not be signed");
        Error::internal("the key that signs plugins cannot be used; see the daemon's log")
    })?;
    let signature = signer.sign(text.as_bytes());
    let mut state = library.state(name).map_err(failed)?;
    // A kill between the files leaves a plugin that is not used; signing it again mends it.
    state.sums.clear();
    library.keep_state(name, &state).map_err(failed)?;
    disk::remove_file(&folder.join(signature::FILE)).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(failed(error)),
    })?;
    disk::replace(&folder.join(FILE), text.as_bytes()).map_err(failed)?;
    disk::replace(&folder.join(signature::FILE), signature.as_bytes()).map_err(failed)?;
    let signed = files(folder).map_err(|error| of_folder(error, name))?;
    state.sums = signed.into_iter().map(|file| (file.path, file.sha256)).collect();
    library.keep_state(name, &state).map_err(failed)?;
    Ok(Signed { signed: true, plugin: name.to_owned(), hashes, signature, public_key: signer.public_key() })
}

/// The sums of all files but the manifest and its signature.
fn hashes(list: &[FileSum]) -> BTreeMap<String, String> {
    let own = list.iter().filter(|file| file.path != FILE && file.path != signature::FILE);
    own.map(|file| (file.path.clone(), file.sha256.clone())).collect()
}

/// The manifest with these sums, all else as it was written.
fn with_sums(text: &str, hashes: &BTreeMap<String, String>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| format!("{FILE}: {error}"))?;
    if let Some(hooks) = document.get_mut("hooks").and_then(Item::as_table_mut) {
        hooks.remove("integrity");
    }
    let mut table = Table::new();
    for (path, sum) in hashes {
        table.insert(path, value(sum.as_str()));
    }
    document.insert("integrity", Item::Table(table));
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::manifest::parse;

    #[test]
    fn sums_replace_those_that_were_there() {
        let sum = "0".repeat(64);
        let hashes = BTreeMap::from([("hooks/a.py".to_owned(), sum.clone())]);
        let text =
            format!("name = \"a\" # mine\n[integrity]\n\"old.py\" = \"{sum}\"\n[hooks]\ningest = \"hooks/a.py\"\n");
        let signed = with_sums(&text, &hashes).unwrap();
        assert!(signed.contains("# mine"), "{signed}");
        assert_eq!(parse(&signed).unwrap().integrity, hashes);
        let without = with_sums("name = \"a\"\n[hooks]\ningest = \"hooks/a.py\"\n", &hashes).unwrap();
        assert_eq!(parse(&without).unwrap().integrity, hashes);
    }
}
