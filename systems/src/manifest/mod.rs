//! The TOML manifest of an agent: text in, typed values out, and changed values merged back into the text
//! (spec 1, Agent manifest; spec 2, Agent type for the keys that survive an edit).
//!
//! Pure functions over text. Unknown keys are allowed everywhere, because the text is kept as written; known
//! keys are typed strictly, and an error names the line and the key.

mod bounds;
pub mod channels;
mod check;
mod depth;
mod error;
mod object;
pub mod profile;
mod read;
mod render;
mod skills;
mod triggers;
mod wake;

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::{Manifest, ManifestHash};
use sha2::{Digest, Sha256};

use crate::kernel::domain::Domain;
pub use bounds::bound_child;
pub(crate) use bounds::lacks;
pub use check::{model_name, validate, validate_name};
pub use error::{Error, Position};
pub use object::{Flat, object};
pub use render::render;
pub use skills::{frozen_skill, has_skill};
pub(crate) use wake::{ManifestWake, schedules as schedules_of, triggers as triggers_of};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { uses: &["event"], limits: channels::ALL, ..Domain::named("manifest") };

/// What a manifest's text says: the name, and everything else.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedManifest {
    /// The agent's name; [`validate_name`] holds for it.
    pub name: Box<str>,
    /// The typed form, which agents share; [`validate`] holds for it.
    pub manifest: Manifest,
}

/// Reads a manifest's text.
///
/// # Errors
/// When the text is longer than [`limit::MANIFEST_BYTES_MAX`], is not TOML, nests too deeply, has no usable
/// `name`, or gives a known key a value of another type or out of range.
pub fn parse(text: &str) -> Result<ParsedManifest, Error> {
    check_text(text)?;
    read::read(text)
}

/// Refuses a text that is too long, or nests too deeply, to be a manifest.
fn check_text(text: &str) -> Result<(), Error> {
    let (bytes, most) = (text.len(), limit::MANIFEST_BYTES_MAX);
    if bytes > most {
        return Err(Error::whole(format!("the manifest is {bytes} bytes long; the limit is {most}")));
    }
    // First, because the parser's own bounds still admit trees whose drop needs megabytes of stack.
    depth::check(text)
}

/// Refuses a TOML text that nests too deeply to be read.
///
/// # Errors
/// Where it does.
pub(crate) fn check_depth(text: &str) -> Result<(), Error> {
    depth::check(text)
}

/// The content hash under which a manifest is shared: SHA-256 over its stored form (MessagePack, named fields).
#[must_use]
pub fn hash(manifest: &Manifest) -> ManifestHash {
    // Proof: encoding into a Vec cannot fail for I/O, and the derived `Serialize` of these plain structs gives
    // every length up front, which are the two ways in which rmp-serde fails.
    let stored = rmp_serde::to_vec_named(manifest).expect("a manifest is plain data, written to memory");
    ManifestHash(Sha256::digest(&stored).into())
}

#[cfg(test)]
mod dream_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;
