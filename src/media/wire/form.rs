//! Multipart forms, as providers take recordings.

use agentsvc_systems::kernel::record::hex;
use sha2::{Digest, Sha256};

/// A multipart form.
#[derive(Default)]
pub(in crate::media) struct Form(Vec<(String, Vec<u8>)>);

impl Form {
    /// A part that is a text.
    pub(super) fn field(&mut self, name: &str, value: &str) {
        self.0.push((format!("content-disposition: form-data; name=\"{name}\""), value.as_bytes().to_vec()));
    }

    /// A part that is a file.
    pub(super) fn file(&mut self, name: &str, filename: &str, content_type: &str, content: &[u8]) {
        let head = format!(
            "content-disposition: form-data; name=\"{name}\"; filename=\"{filename}\"\r\ncontent-type: {content_type}"
        );
        self.0.push((head, content.to_vec()));
    }

    /// The content type and the body. The boundary is a digest of the parts, so that none of them can hold it.
    pub(in crate::media) fn finish(self) -> (String, Vec<u8>) {
        let mut digest = Sha256::new();
        for (head, content) in &self.0 {
            digest.update(head);
            digest.update(content);
        }
        let boundary = format!("agentsvc-{}", hex(&digest.finalize()[..16]));
        let mut body = Vec::new();
        for (head, content) in &self.0 {
            body.extend_from_slice(format!("--{boundary}\r\n{head}\r\n\r\n").as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        (format!("multipart/form-data; boundary={boundary}"), body)
    }
}

#[cfg(test)]
mod tests {
    use super::Form;

    fn form(content: &str) -> (String, String) {
        let mut form = Form::default();
        form.field("model", "whisper-1");
        form.file("file", "audio.wav", "audio/wav", content.as_bytes());
        let (content_type, body) = form.finish();
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap().to_owned();
        (boundary, String::from_utf8(body).unwrap())
    }

    #[test]
    fn a_form_has_a_boundary_that_is_in_no_part() {
        let (before, _) = form("a");
        let (boundary, body) = form(&format!("a --{before}-- b"));
        assert_ne!(boundary, before, "a file cannot hold the boundary of its form");
        assert_eq!(body.matches(&format!("--{boundary}")).count(), 3);
        let file = format!("name=\"file\"; filename=\"audio.wav\"\r\ncontent-type: audio/wav\r\n\r\na --{before}-- b");
        assert!(body.contains(&file) && body.ends_with(&format!("\r\n--{boundary}--\r\n")), "{body}");
    }
}
