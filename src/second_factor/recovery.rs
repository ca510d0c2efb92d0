//! Recovery codes: each takes the place of a code once. They have 128 bits, so that a salted SHA-256 keeps them.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Codes of one secret.
pub(super) const CODES: usize = 10;
/// Bytes of a code.
const CODE_BYTES: usize = 16;

/// What is kept of the codes that were not used yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recovery {
    salt: [u8; 16],
    hashes: Vec<[u8; 32]>,
}

impl Recovery {
    /// Fresh codes, and what is kept of them.
    pub(super) fn random() -> Result<(Self, Vec<String>), getrandom::Error> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)?;
        let mut recovery = Self { salt, hashes: Vec::with_capacity(CODES) };
        let mut codes = Vec::with_capacity(CODES);
        for _ in 0..CODES {
            let mut code = Zeroizing::new([0; CODE_BYTES]);
            getrandom::fill(&mut *code)?;
            let hash = recovery.hash(&code);
            recovery.hashes.push(hash);
            codes.push(shown(&code));
        }
        Ok((recovery, codes))
    }

    /// Takes a code out; false when it is none of these.
    pub(super) fn take(&mut self, code: &[u8; CODE_BYTES]) -> bool {
        let hash = self.hash(code);
        let mut found = None;
        for (at, known) in self.hashes.iter().enumerate() {
            if bool::from(known.ct_eq(&hash)) {
                found = Some(at);
            }
        }
        found.map(|at| self.hashes.remove(at)).is_some()
    }

    /// Codes that were not used yet.
    pub(super) fn remaining(&self) -> usize {
        self.hashes.len()
    }

    fn hash(&self, code: &[u8; CODE_BYTES]) -> [u8; 32] {
        Sha256::new().chain_update(self.salt).chain_update(code).finalize().into()
    }
}

/// A code as people write it: hexadecimal digits, with or without hyphens and spaces; `None` for anything else.
pub(super) fn parse(text: &str) -> Option<Zeroizing<[u8; CODE_BYTES]>> {
    let mut code = Zeroizing::new([0; CODE_BYTES]);
    let mut digits = text.chars().filter(|c| !matches!(c, '-' | ' ')).map(|c| c.to_digit(16));
    for byte in code.iter_mut() {
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = (high * 16 + low) as u8;
    }
    digits.next().is_none().then_some(code)
}

fn shown(code: &[u8; CODE_BYTES]) -> String {
    let mut text = String::with_capacity(2 * CODE_BYTES + 3);
    for (at, byte) in code.iter().enumerate() {
        if at > 0 && at % 4 == 0 {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_counts_once() {
        let (mut recovery, codes) = Recovery::random().unwrap();
        assert_eq!((codes.len(), recovery.remaining()), (CODES, CODES));
        let spelt = codes[3].to_uppercase().replace('-', " ");
        let code = parse(&spelt).unwrap();
        assert!(recovery.take(&code) && !recovery.take(&code));
        assert!(!recovery.take(&[0; CODE_BYTES]));
        assert_eq!(recovery.remaining(), CODES - 1);
        assert!(recovery.take(&parse(&codes[9]).unwrap()));
    }

    #[test]
    fn codes_are_not_kept() {
        let (recovery, codes) = Recovery::random().unwrap();
        let kept = serde_json::to_string(&recovery).unwrap();
        for code in codes {
            let bytes = parse(&code).unwrap();
            assert!(!kept.contains(&serde_json::to_string(&*bytes).unwrap().replace(['[', ']'], "")));
        }
    }

    #[test]
    fn other_texts_are_no_codes() {
        let code = "00112233-44556677-8899aabb-ccddeeff";
        assert!(parse(code).is_some());
        for wrong in ["", "123456", &code[1..], &format!("{code}0"), &code.replace('f', "g")] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
