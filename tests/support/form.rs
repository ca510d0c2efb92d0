//! Forms with files, written by hand, and the files that tests send.

use serde_json::{Value, json};

use super::daemon::text;
use super::http::{Client, Reply};

const BOUNDARY: &str = "----a-boundary-of-the-test";

/// A part of a form: its name, the file's name, its declared type, its content.
pub(crate) struct Part<'a> {
    pub(crate) name: &'a str,
    pub(crate) filename: Option<&'a str>,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) content: &'a [u8],
}

/// The body of a form.
pub(crate) fn form(parts: &[Part<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        let mut head = format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{}\"", part.name);
        if let Some(filename) = part.filename {
            head += &format!("; filename=\"{filename}\"");
        }
        if let Some(content_type) = part.content_type {
            head += &format!("\r\ncontent-type: {content_type}");
        }
        body.extend_from_slice((head + "\r\n\r\n").as_bytes());
        body.extend_from_slice(part.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    body
}

impl Client {
    /// Sends a form.
    #[track_caller]
    pub(crate) fn send_form(&self, agent: &str, body: &[u8]) -> Reply {
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let headers = [("content-type", content_type.as_str())];
        self.send("POST", &format!("/api/agents/{agent}/upload"), &headers, Some(body))
    }

    /// Sends one file, its type declared or not.
    #[track_caller]
    pub(crate) fn upload_as(&self, agent: &str, filename: &str, content_type: Option<&str>, content: &[u8]) -> Reply {
        self.send_form(agent, &form(&[Part { name: "file", filename: Some(filename), content_type, content }]))
    }

    /// Sends one file without a type; gives its id.
    #[track_caller]
    pub(crate) fn upload(&self, agent: &str, filename: &str, content: &[u8]) -> String {
        text(&self.upload_as(agent, filename, None, content).expect(201)["file_id"])
    }

    /// Sends a message with attachments; gives the answer's body.
    #[track_caller]
    pub(crate) fn say_with(&self, agent: &str, message: &str, files: &[&str]) -> Value {
        let attachments: Vec<Value> = files.iter().map(|file| json!({ "file_id": file })).collect();
        let body = json!({ "message": message, "attachments": attachments });
        self.post(&format!("/api/agents/{agent}/message"), &body).expect(200)
    }
}

/// The smallest picture there is: one pixel.
pub(crate) const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
    6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0,
    0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x89, 0x99, 0x3d, 0x1d, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];

/// A PDF with one page for each text, and a right table of its objects unless `broken`.
pub(crate) fn pdf(pages: &[&str], broken: bool) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len()).map(|at| format!("{} 0 R", 4 + at * 2)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for (at, page) in pages.iter().enumerate() {
        let content = if page.is_empty() {
            "0 0 100 100 re f".to_owned()
        } else {
            format!("BT /F1 12 Tf 72 700 Td ({page}) Tj ET")
        };
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            5 + at * 2
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(if broken { 7 } else { file.len() });
        file.extend_from_slice(format!("{} 0 obj\n{object}\nendobj\n", at + 1).as_bytes());
    }
    let table = if broken { 3 } else { file.len() };
    file.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes());
    for place in places {
        file.extend_from_slice(format!("{place:010} 00000 n \n").as_bytes());
    }
    let size = objects.len() + 1;
    file.extend_from_slice(format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n").as_bytes());
    file
}
