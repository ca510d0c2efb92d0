//! Signed tokens (RFC 7515, RFC 7519) and the keys of those who sign them (RFC 7517).
//!
//! The kind of a key says which algorithms it verifies, and only algorithms with public keys are known: a token without a
//! signature, or one "signed" with the public key as a shared secret, has no key that could verify it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Map, Value};

/// Bytes of a token.
pub(super) const TOKEN_BYTES_MAX: usize = 16 << 10;
/// Keys of one provider; further ones are not looked at.
const KEYS_MAX: usize = 64;

/// What a token says.
pub(super) type Claims = Map<String, Value>;

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is no signed token.
    Form,
    /// Its algorithm is none, one with a shared secret, or unknown.
    Algorithm,
    /// No key of the provider verifies it. The provider may have newer ones.
    Key,
}

impl Fault {
    /// In words that continue a sentence about the token.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Form => "is not a signed token",
            Self::Algorithm => "is signed with an algorithm that is not accepted",
            Self::Key => "is signed with none of the provider's keys",
        }
    }
}

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Tells it apart from the others.
    id: Option<String>,
    /// The only algorithm that it is for, where it says so.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

fn bytes(key: &Value, name: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(key[name].as_str()?).ok().filter(|bytes| !bytes.is_empty())
}

/// The keys of a set that verify signatures. Others, and those that make no sense, are left out.
pub(super) fn keys(set: &Value) -> Vec<Key> {
    let list = set["keys"].as_array().into_iter().flatten().take(KEYS_MAX);
    list.filter_map(key).collect()
}

fn key(key: &Value) -> Option<Key> {
    if key["use"].as_str().is_some_and(|word| word != "sig") {
        return None;
    }
    let text = |name: &str| key[name].as_str().map(str::to_owned);
    let point = |size: usize| {
        let (x, y) = (bytes(key, "x")?, bytes(key, "y")?);
        // 4: not compressed.
        (x.len() == size && y.len() == size).then(|| [&[4][..], &x, &y].concat())
    };
    let material = match (key["kty"].as_str()?, key["crv"].as_str()) {
        ("RSA", _) => Material::Rsa { n: bytes(key, "n")?, e: bytes(key, "e")? },
        ("EC", Some("P-256")) => Material::P256(point(32)?),
        ("EC", Some("P-384")) => Material::P384(point(48)?),
        ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(key, "x")?),
        _ => return None,
    };
    Some(Key { id: text("kid"), algorithm: text("alg"), material })
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

impl Key {
    /// Is it the signature of `signed` by this key?
    fn verifies(&self, algorithm: &str, signed: &[u8], signature: &[u8]) -> bool {
        if self.algorithm.as_deref().is_some_and(|only| only != algorithm) {
            return false;
        }
        let plain = |of: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(of, key).verify(signed, signature).is_ok()
        };
        match (&self.material, algorithm) {
            (Material::Rsa { n, e }, _) => {
                let key = RsaPublicKeyComponents { n, e };
                rsa(algorithm).is_some_and(|of| key.verify(of, signed, signature).is_ok())
            }
            (Material::P256(point), "ES256") => plain(&ECDSA_P256_SHA256_FIXED, point),
            (Material::P384(point), "ES384") => plain(&ECDSA_P384_SHA384_FIXED, point),
            (Material::Ed25519(key), "EdDSA" | "Ed25519") => plain(&ED25519, key),
            _ => false,
        }
    }
}

/// What a token says that one of `keys` signed.
///
/// # Errors
/// [`Fault`].
pub(super) fn verify(token: &str, keys: &[Key]) -> Result<Claims, Fault> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Fault::Form);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(Fault::Form)?;
    let (header, claims) = signed.split_once('.').ok_or(Fault::Form)?;
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Fault::Form);
    let object = |part: &str| serde_json::from_slice::<Claims>(&decoded(part)?).map_err(|_| Fault::Form);
    let header = object(header)?;
    let algorithm = header.get("alg").and_then(Value::as_str).ok_or(Fault::Form)?;
    let is_known = rsa(algorithm).is_some() || ["ES256", "ES384", "EdDSA", "Ed25519"].contains(&algorithm);
    // What must be understood is not (RFC 7515, 4.1.11).
    if !is_known || header.contains_key("crit") {
        return Err(Fault::Algorithm);
    }
    let signature = decoded(signature)?;
    let id = header.get("kid").and_then(Value::as_str);
    let is_meant = |key: &&Key| id.is_none() || key.id.is_none() || key.id.as_deref() == id;
    let mut meant = keys.iter().filter(is_meant);
    if meant.any(|key| key.verifies(algorithm, signed.as_bytes(), &signature)) {
        object(claims)
    } else {
        Err(Fault::Key)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
    use serde_json::json;

    use super::*;

    fn encoded(bytes: impl AsRef<[u8]>) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// A key pair of a provider, with the id of its key.
    pub(in crate::sign_in) struct Signer(EcdsaKeyPair, String);

    impl Signer {
        pub(in crate::sign_in) fn new(id: &str) -> Self {
            let random = SystemRandom::new();
            let of = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let pair = EcdsaKeyPair::generate_pkcs8(of, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(of, pair.as_ref(), &random).unwrap(), id.to_owned())
        }

        pub(in crate::sign_in) fn public(&self) -> Value {
            let point = self.0.public_key().as_ref();
            json!({ "kty": "EC", "crv": "P-256", "use": "sig", "kid": self.1, "x": encoded(&point[1..33]), "y": encoded(&point[33..]) })
        }

        pub(in crate::sign_in) fn sign(&self, header: &Value, claims: &Value) -> String {
            let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
            let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", encoded(signature))
        }
    }

    #[test]
    fn a_token_is_verified_by_the_key_that_signed_it() {
        let (signer, other) = (Signer::new("a"), Signer::new("b"));
        let token = signer.sign(&json!({ "alg": "ES256", "kid": "a" }), &json!({ "sub": "x" }));
        let set = keys(&json!({ "keys": [other.public(), signer.public()] }));
        assert_eq!(verify(&token, &set).unwrap()["sub"], "x");
        // Without ids all keys are tried.
        let plain = signer.sign(&json!({ "alg": "ES256" }), &json!({ "sub": "x" }));
        assert!(verify(&plain, &set).is_ok());
        assert_eq!(verify(&token, &keys(&json!({ "keys": [other.public()] }))), Err(Fault::Key));
        let misnamed = signer.sign(&json!({ "alg": "ES256", "kid": "b" }), &json!({ "sub": "x" }));
        assert_eq!(verify(&misnamed, &set), Err(Fault::Key));
        let mut changed = token.clone();
        changed.replace_range(30..31, if &token[30..31] == "A" { "B" } else { "A" });
        assert!(verify(&changed, &set).is_err());
    }

    #[test]
    fn edwards_keys_verify_too() {
        let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap();
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(pair.public_key()) });
        let signed = format!("{}.{}", encoded("{\"alg\":\"EdDSA\"}"), encoded("{\"sub\":\"x\"}"));
        let token = format!("{signed}.{}", encoded(pair.sign(signed.as_bytes())));
        assert!(verify(&token, &keys(&json!({ "keys": [key] }))).is_ok());
    }

    #[test]
    fn algorithms_that_need_no_private_key_are_refused() {
        let signer = Signer::new("a");
        let set = keys(&json!({ "keys": [signer.public()] }));
        let claims = encoded("{\"sub\":\"x\"}");
        for header in
            ["{\"alg\":\"none\"}", "{\"alg\":\"None\"}", "{\"alg\":\"HS256\",\"kid\":\"a\"}", "{\"alg\":\"ES512\"}"]
        {
            for signature in ["", "AAAA"] {
                let token = format!("{}.{claims}.{signature}", encoded(header));
                assert_eq!(verify(&token, &set), Err(Fault::Algorithm), "{header}");
            }
        }
        let critical = signer.sign(&json!({ "alg": "ES256", "crit": ["b64"] }), &json!({}));
        assert_eq!(verify(&critical, &set), Err(Fault::Algorithm));
        // A key of another kind than the algorithm.
        let rsa = signer.sign(&json!({ "alg": "RS256", "kid": "a" }), &json!({}));
        assert_eq!(verify(&rsa, &set), Err(Fault::Key));
        let only = |alg: &str| {
            let mut key = signer.public();
            key["alg"] = alg.into();
            keys(&json!({ "keys": [key] }))
        };
        let token = signer.sign(&json!({ "alg": "ES256" }), &json!({}));
        assert!(verify(&token, &only("ES256")).is_ok());
        assert_eq!(verify(&token, &only("ES384")), Err(Fault::Key));
    }

    #[test]
    fn keys_that_make_no_sense_are_left_out() {
        let mut for_secrets = Signer::new("a").public();
        for_secrets["use"] = "enc".into();
        for key in [
            json!(null),
            json!({ "kty": "oct", "k": "AAAA" }),
            json!({ "kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA" }),
            json!({ "kty": "RSA", "n": "", "e": "AQAB" }),
            for_secrets,
        ] {
            assert_eq!(keys(&json!({ "keys": [key] })), []);
        }
        assert_eq!((keys(&json!({})), keys(&json!([]))), (Vec::new(), Vec::new()));
    }

    proptest! {
        #[test]
        fn any_text_is_read(token in "[A-Za-z0-9_.-]{0,200}") {
            prop_assert!(verify(&token, &[]).is_err());
        }
    }
}
