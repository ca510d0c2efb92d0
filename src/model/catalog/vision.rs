//! What the name of a model says of pictures, where nobody declared anything. A guess: it is shown as one
//! (`vision_support` `unknown`), and nothing is taken out of a request because of it.

/// Pieces of names of models that take pictures.
const PIECES: &str = "vision -vl vl- 4o gpt-4.1 gpt-5 claude gemini gemma-3 gemma3 pixtral llava qvq internvl llama-4 \
    grok-4 omni multimodal";

/// Does the name of a model let one think that it takes pictures?
pub(super) fn is_likely(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    PIECES.split(' ').any(|piece| id.contains(piece))
}

#[cfg(test)]
mod tests {
    use super::is_likely;

    #[test]
    fn names_are_guessed_from() {
        for id in ["Qwen/Qwen2.5-VL-7B", "gpt-4o-2026", "my-llava", "llama-3.2-90b-vision-preview", "google/gemini-9"] {
            assert!(is_likely(id), "{id}");
        }
        for id in ["llama-3.3-70b", "mistral-7b", "devlin", "phi-4", "deepseek-r1"] {
            assert!(!is_likely(id), "{id}");
        }
    }
}
