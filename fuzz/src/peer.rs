//! Frames and messages of other nodes, cut anywhere.

/// Reads frames and their messages; what was read can be written and read again.
pub fn run(input: &[u8]) {
    agentsvc::fuzzing::peer_frames(input);
}
