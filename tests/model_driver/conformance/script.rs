//! What a model says, in no protocol's words.

use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::StopReason;

/// One step of an answer that is written piece by piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More text.
    Text(String),
    /// More of what it thinks.
    Thought(String),
    /// The thought is whole; the provider's own mark on it, such as a signature.
    EndThought(String),
    /// Call number `at` begins.
    Call { at: usize, id: String, name: String },
    /// More of the arguments of call number `at`.
    Arguments { at: usize, piece: String },
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    /// The counts; `None`: the provider says none.
    pub(crate) usage: Option<Usage>,
    pub(crate) stop: StopReason,
}

impl Script {
    /// An answer of these pieces of text.
    pub(crate) fn text(pieces: &[&str]) -> Self {
        let steps = pieces.iter().map(|piece| Step::Text((*piece).to_owned())).collect();
        Self { steps, usage: Some(Usage::of(11, 7)), stop: StopReason::End }
    }

    /// With a text behind what there is.
    pub(crate) fn and_text(mut self, text: &str) -> Self {
        self.steps.push(Step::Text(text.to_owned()));
        self
    }

    /// With a thought, and the provider's mark on it.
    pub(crate) fn and_thought(mut self, text: &str, mark: &str) -> Self {
        self.steps.push(Step::Thought(text.to_owned()));
        self.steps.push(Step::EndThought(mark.to_owned()));
        self
    }

    /// With a call behind what there is, its arguments in these pieces.
    pub(crate) fn and_call(mut self, id: &str, name: &str, pieces: &[&str]) -> Self {
        let at = self.calls();
        self.steps.push(Step::Call { at, id: id.to_owned(), name: name.to_owned() });
        let pieces = pieces.iter().map(|piece| Step::Arguments { at, piece: (*piece).to_owned() });
        self.steps.extend(pieces);
        self.stop = StopReason::ToolUse;
        self
    }

    /// How many calls there are.
    pub(crate) fn calls(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Call { .. })).count()
    }

    /// All text.
    pub(crate) fn all_text(&self) -> String {
        self.steps
            .iter()
            .filter_map(|step| if let Step::Text(text) = step { Some(text.as_str()) } else { None })
            .collect()
    }

    /// The pieces as they are when the answer is whole, in the order in which they began: no piece in two steps.
    pub(crate) fn joined(&self) -> Vec<Whole> {
        let mut whole: Vec<Whole> = Vec::new();
        for step in &self.steps {
            match step {
                Step::Text(piece) => match whole.last_mut() {
                    Some(Whole::Text(text)) => text.push_str(piece),
                    _ => whole.push(Whole::Text(piece.clone())),
                },
                Step::Thought(piece) => match whole.last_mut() {
                    Some(Whole::Thought { text, mark: None }) => text.push_str(piece),
                    _ => whole.push(Whole::Thought { text: piece.clone(), mark: None }),
                },
                Step::EndThought(end) => {
                    if let Some(Whole::Thought { mark, .. }) = whole.last_mut() {
                        *mark = Some(end.clone());
                    }
                }
                Step::Call { at, id, name } => {
                    whole.push(Whole::Call { at: *at, id: id.clone(), name: name.clone(), arguments: String::new() })
                }
                Step::Arguments { at: of, piece } => {
                    let call = whole.iter_mut().find(|whole| matches!(whole, Whole::Call { at, .. } if at == of));
                    if let Some(Whole::Call { arguments, .. }) = call {
                        arguments.push_str(piece);
                    }
                }
            }
        }
        whole
    }

    /// The same answer with every call's steps behind each other, for protocols that cannot mix them.
    pub(crate) fn in_sequence(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for step in &self.steps {
            match step {
                Step::Call { at, .. } => {
                    let own = self.steps.iter().filter(|step| step.call() == Some(*at));
                    steps.extend(own.cloned());
                }
                Step::Arguments { .. } => {}
                other => steps.push(other.clone()),
            }
        }
        steps
    }
}

impl Step {
    /// The call that it belongs to.
    pub(crate) fn call(&self) -> Option<usize> {
        match self {
            Self::Call { at, .. } | Self::Arguments { at, .. } => Some(*at),
            _ => None,
        }
    }
}

/// One piece of a whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    Text(String),
    Thought { text: String, mark: Option<String> },
    Call { at: usize, id: String, name: String, arguments: String },
}
