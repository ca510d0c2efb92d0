//! What a domain is to this crate.

/// One domain: its folder exports one of these as `DOMAIN`, and the list of all is `DOMAINS` of the crate.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    /// The folder's name, the same in every crate.
    pub name: &'static str,
    /// The domains whose items it names.
    pub uses: &'static [&'static str],
}
