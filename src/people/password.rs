//! Passwords of users, as `[[users]] password_hash` keeps them: argon2id.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, Params};

use crate::kernel::config::Secret;

/// What computing a hash may take: memory in KiB, passes and lanes.
const MOST: (u32, u32, u32) = (128 << 10, 10, 8);
/// Bytes of the salt of a new hash.
const SALT_BYTES: usize = 16;

/// A hash of the configuration.
///
/// # Errors
/// What it must be.
pub(super) fn checked(text: &str) -> Result<Secret, String> {
    let wrong = || "must be an argon2id hash, such as `agentsvc user hash-password` makes one".to_owned();
    let hash = PasswordHash::new(text).map_err(|_| wrong())?;
    if hash.algorithm.as_str() != "argon2id" || hash.salt.is_none() || hash.hash.is_none() {
        return Err(wrong());
    }
    let params = Params::try_from(&hash).map_err(|_| wrong())?;
    let (memory, passes, lanes) = MOST;
    if params.m_cost() > memory || params.t_cost() > passes || params.p_cost() > lanes {
        return Err(format!("must be an argon2id hash with at most m={memory}, t={passes} and p={lanes}"));
    }
    Ok(Secret::new(text))
}

/// A hash of a password, with a salt of its own.
///
/// # Errors
/// The system gives no random bytes.
pub(super) fn make(password: &str) -> Result<String, String> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|error| error.to_string())?;
    let hash: PasswordHash =
        Argon2::default().hash_password_with_salt(password.as_bytes(), &salt).map_err(|error| error.to_string())?;
    Ok(hash.to_string())
}

/// Is it the password of this hash? Takes the time and the memory that the hash says.
pub(crate) fn is_right(password: &str, hash: &Secret) -> bool {
    PasswordHash::new(hash.expose())
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

/// What computing a hash takes: memory in KiB times passes.
pub(super) fn cost(hash: &Secret) -> u64 {
    let hash = PasswordHash::new(hash.expose()).ok();
    let params = hash.and_then(|hash| Params::try_from(&hash).ok());
    params.map_or(0, |params| u64::from(params.m_cost()) * u64::from(params.t_cost()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_right_for_its_hash_only() {
        let (one, other) = (make("correct horse").unwrap(), make("correct horse").unwrap());
        assert!(one != other && one.starts_with("$argon2id$v=19$"), "{one}");
        let hash = checked(&one).unwrap();
        assert!(is_right("correct horse", &hash) && !is_right("correct hors", &hash) && !is_right("", &hash));
    }

    #[test]
    fn hashes_that_are_weak_or_would_take_too_much_are_refused() {
        let good = make("x").unwrap();
        for text in [
            "secret",
            "",
            "$argon2id$v=19$m=19456,t=2,p=1",
            &good.replace("argon2id", "argon2d"),
            &good.replace("m=19456", "m=1000000"),
            &good.replace("t=2", "t=100"),
        ] {
            assert!(checked(text).is_err(), "{text}");
        }
    }
}
