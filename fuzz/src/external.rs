//! Cards and answers of external agents: what is kept of them is bounded, and messages stay encrypted.

/// Reads the input as a card, and as an answer in each dialect.
pub fn run(input: &[u8]) {
    agentsvc::fuzzing::external_agent(input);
}
