//! Models as the world knows them: aliases, prices and contexts.

pub mod alias;
