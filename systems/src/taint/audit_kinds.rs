//! Kinds of audit log entries: taint.

agentsvc_components::audit_kinds! {
    /// A turn that has read untrusted content makes a sensitive tool call.
    TOOL_TAINTED = "tool_tainted";
    /// A text from outside looks like a prompt injection.
    INJECTION_FOUND = "injection_found";
    /// A file was sent to an agent.
    FILE_UPLOADED = "file_uploaded";
    /// A user declared the files of an agent's workspace trusted.
    FILES_TRUSTED = "files_trusted";
}
