//! What MCP servers and their authorization servers say of a sign-in: tokens go where they belong, encrypted.

use super::feed::parts;

/// `input` is the URL of the server, its `WWW-Authenticate`, and metadata as JSON, between lines `---`.
pub fn run(input: &[u8]) {
    let parts = parts(input, "---");
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    let (url, challenge) = (String::from_utf8_lossy(part(0)), String::from_utf8_lossy(part(1)));
    agentsvc::fuzzing::mcp_sign_in(&url, &challenge, part(2));
}
