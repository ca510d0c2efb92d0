//! The vault on a directory of its own.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn vault(dir: &Path) -> Vault {
    Vault::new(dir.join("vault"), KeySource::File)
}

fn with_key(dir: &Path, text: &str) -> Vault {
    Vault::new(dir.join("vault"), KeySource::Variable(Zeroizing::new(text.to_owned())))
}

fn got(vault: &Vault, name: &str) -> Option<Vec<u8>> {
    vault.get(name).unwrap().map(|secret| secret.to_vec())
}

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "//ECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[test]
fn a_secret_comes_back_and_is_nowhere_in_clear() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    assert_eq!(got(&vault, "totp"), None);
    assert!(!dir.path().join("vault").exists(), "looking makes nothing");
    vault.put("totp", b"a well known secret").unwrap();
    vault.put("other", b"").unwrap();
    assert_eq!(got(&vault, "totp").as_deref(), Some(&b"a well known secret"[..]));
    assert_eq!(got(&vault, "other").as_deref(), Some(&b""[..]));
    vault.put("totp", b"another secret").unwrap();
    // Another process with the same files.
    assert_eq!(got(&super::Vault::new(vault.dir.clone(), KeySource::File), "totp").unwrap(), b"another secret");
    for entry in fs::read_dir(&vault.dir).unwrap() {
        let path = entry.unwrap().path();
        let content = fs::read(&path).unwrap();
        assert!(!content.windows(6).any(|window| window == b"secret"), "{}", path.display());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
    assert_eq!(fs::metadata(&vault.dir).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_sealed_text_opens_under_its_name_and_key_only() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let vault = vault(dir.path());
    let text = vault.seal("hook-1", b"shared secret").unwrap();
    assert!(!text.contains("shared"));
    assert_eq!(*vault.unseal("hook-1", &text).unwrap(), b"shared secret");
    assert!(matches!(vault.unseal("hook-2", &text), Err(Error::DoesNotOpen { .. })));
    assert!(matches!(vault.unseal("hook-1", "no base64"), Err(Error::Damaged { .. })));
    assert!(matches!(self::vault(other.path()).unseal("hook-1", &text), Err(Error::KeyIsGone { .. })));
    let with_other_key = with_key(dir.path(), OTHER_KEY);
    assert!(matches!(with_other_key.unseal("hook-1", &text), Err(Error::DoesNotOpen { .. })));
    assert!(matches!(with_other_key.seal("hook-1", b"new"), Err(Error::DoesNotOpen { .. })), "one key for all");
    fs::remove_file(vault.dir.join("vault.key")).unwrap();
    assert!(matches!(vault.seal("hook-1", b"new"), Err(Error::KeyIsGone { .. })), "no new key beside old texts");
}

#[test]
fn no_two_files_of_one_secret_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    let mut files = std::collections::BTreeSet::new();
    for _ in 0..20 {
        vault.put("a", b"same").unwrap();
        files.insert(fs::read(vault.dir.join("a.sealed")).unwrap());
    }
    assert_eq!(files.len(), 20);
}

#[test]
fn every_changed_byte_is_found_and_nothing_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    vault.put("a", b"secret").unwrap();
    let path = vault.dir.join("a.sealed");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(matches!(vault.get("a"), Err(Error::Damaged { .. } | Error::DoesNotOpen { .. })), "byte {at}");
        assert!(vault.put("a", b"new").is_err());
        assert_eq!(fs::read(&path).unwrap(), damaged, "what is there stays for whoever can mend it");
    }
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(vault.get("a").is_err(), "{length} bytes");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(got(&vault, "a").unwrap(), b"secret");
}

#[test]
fn a_file_under_another_name_does_not_open() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    vault.put("a", b"of a").unwrap();
    fs::copy(vault.dir.join("a.sealed"), vault.dir.join("b.sealed")).unwrap();
    assert!(matches!(vault.get("b"), Err(Error::DoesNotOpen { .. })));
}

#[test]
fn another_key_opens_nothing_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    with_key(dir.path(), KEY).put("a", b"secret").unwrap();
    assert!(!dir.path().join("vault/vault.key").exists(), "the key is in the environment only");
    let other = with_key(dir.path(), OTHER_KEY);
    let error = other.get("a").unwrap_err().to_string();
    assert!(error.contains("AGENTSVC_VAULT_KEY is the wrong key"), "{error}");
    assert!(!error.contains(OTHER_KEY));
    assert!(other.put("a", b"x").is_err());
    assert!(other.put("b", b"x").is_err(), "nor beside it");
    // Without the variable there is no key at all; a new one is not made.
    assert!(matches!(vault(dir.path()).get("a"), Err(Error::KeyIsGone { .. })));
    assert!(matches!(vault(dir.path()).put("a", b"x"), Err(Error::KeyIsGone { .. })));
    assert!(!dir.path().join("vault/vault.key").exists());
    assert_eq!(got(&with_key(dir.path(), KEY), "a").unwrap(), b"secret");
}

#[test]
fn a_key_that_is_none_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for wrong in ["short", "AAEC", "%%%", &format!("{KEY}{KEY}"), &format!("AA{KEY}")] {
        let error = with_key(dir.path(), wrong).put("a", b"x").unwrap_err();
        assert!(matches!(&error, Error::Key { place } if place == VARIABLE), "{error}");
        assert!(!error.to_string().contains(wrong));
    }
    with_key(dir.path(), &format!(" {KEY}\n")).put("a", b"x").unwrap();
    assert!(!format!("{:?}", with_key(dir.path(), KEY)).contains(KEY));
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    vault.put("a", b"x").unwrap();
    let path = vault.dir.join("vault.key");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(vault.get("a"), Err(Error::KeyIsOpen { .. })));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    assert_eq!(got(&vault, "a").unwrap(), b"x");
    // The file's text is what the variable takes.
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(got(&with_key(dir.path(), &text), "a").unwrap(), b"x");
}

#[test]
fn half_a_write_is_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    vault.put("a", b"old").unwrap();
    fs::write(vault.dir.join("a.sealed.new"), b"half").unwrap();
    assert_eq!(got(&vault, "a").unwrap(), b"old");
    vault.put("a", b"new").unwrap();
    assert_eq!(got(&vault, "a").unwrap(), b"new");
}

#[test]
fn names_and_sizes_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    for name in ["", "../a", "a/b", "A", "a.b", &"a".repeat(65)] {
        assert!(matches!(vault.put(name, b"x"), Err(Error::Unfit(_))), "{name}");
        assert!(matches!(vault.get(name), Err(Error::Unfit(_))), "{name}");
    }
    vault.put("a", &vec![7; limit::VAULT_SECRET_BYTES_MAX]).unwrap();
    assert_eq!(got(&vault, "a").unwrap().len(), limit::VAULT_SECRET_BYTES_MAX);
    assert!(vault.put("a", &vec![7; limit::VAULT_SECRET_BYTES_MAX + 1]).is_err());
}

#[test]
fn a_secret_that_is_forgotten_is_gone_and_the_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let vault = vault(dir.path());
    assert!(vault.names().unwrap().is_empty() && !vault.remove("a").unwrap());
    vault.put("a", b"first").unwrap();
    vault.put("b", b"second").unwrap();
    assert_eq!(vault.names().unwrap().into_iter().collect::<Vec<_>>(), ["a", "b"]);
    assert!(vault.clone().remove("a").unwrap());
    assert_eq!((got(&vault, "a"), got(&vault, "b").as_deref()), (None, Some(&b"second"[..])));
    assert!(!vault.remove("a").unwrap());
    // One that does not open can be forgotten all the same.
    fs::write(vault.dir.join("b.sealed"), "damaged").unwrap();
    assert!(vault.get("b").is_err() && vault.remove("b").unwrap());
    assert!(vault.remove("../b").is_err());
}
