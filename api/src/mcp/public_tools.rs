//! Which tools those may call who have no key.

/// Knows them.
pub trait PublicTools: Send + Sync + 'static {
    /// May clients without a key list and call the tool of this name?
    fn is_public(&self, name: &str) -> bool;
}
