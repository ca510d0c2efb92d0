//! x
#![allow(clippy::print_stdout)]
fn main() {}
