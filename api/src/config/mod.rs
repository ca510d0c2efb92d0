//! The routes of the configuration.

pub mod configuration;
pub(crate) mod routes;

#[cfg(test)]
mod tests;
