//! Forks in virtual time.
