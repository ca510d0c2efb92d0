//! Media, asked for and reserved at random.

use agentsvc_components::media::{MediaRequest, MediaTaskId};
use agentsvc_components::{Actor, FileId, Micros};
use agentsvc_systems::Engine;
use agentsvc_systems::media::{CreateMedia, RemoveMedia, ReserveMedia};

use super::{Fuzz, Out, ask};

impl Fuzz {
    pub(super) fn of_media(&mut self, engine: &mut Engine) {
        if self.random.one_in(3) {
            let job = |out: &Out| if let Out::Job(attempt) = out { Some(*attempt) } else { None };
            let newest = self.out.iter().rev().find_map(job);
            if let Some(attempt) = newest {
                // It may be the try of another job.
                ask(engine, Actor::System, ReserveMedia { task: MediaTaskId(self.some(b'3')), attempt });
            }
            return;
        }
        if self.random.one_in(8) {
            return ask(engine, Actor::Api, RemoveMedia(MediaTaskId(self.some(b'3'))));
        }
        let (text, other) = (self.text(), self.text());
        let request = match self.random.below(5) {
            0 => MediaRequest::Image { prompt: text.into(), count: self.random.below(6) as u32, size: None },
            1 => {
                MediaRequest::Speech { text: text.into(), voice: Some(other.into()), format: None, speed_percent: None }
            }
            2 => MediaRequest::Video { prompt: text.into(), duration_secs: Some(self.random.below(70) as u32) },
            3 => MediaRequest::Music { prompt: None, lyrics: Some(text.into()), instrumental: true, format: None },
            _ => {
                let file = FileId(self.random.uuid());
                MediaRequest::Transcription { file, is_temporary: true, language: Some(other.into()) }
            }
        };
        let agent = self.random.one_in(2).then(|| self.agent());
        let key = if self.random.one_in(3) { format!("k{}", self.random.below(9)) } else { String::new() };
        let (provider, model) = ("openai".to_owned(), self.random.of(&["m", "", "a b"]).to_owned());
        let (most, is_priced) = (Micros(self.random.below(1_000) as u64), self.random.below(4) > 0);
        ask(engine, Actor::Api, CreateMedia { agent, turn: None, key, provider, model, request, most, is_priced });
    }
}
