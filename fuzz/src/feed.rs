//! Taking a target's input apart. When the bytes are used up everything is zero or empty, so that every input means
//! something.

/// What is left of an input.
pub struct Feed<'a>(pub &'a [u8]);

impl<'a> Feed<'a> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// The next two bytes.
    pub fn pair(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    /// A number below `end`, of one byte; 0 when `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()).checked_rem(end).unwrap_or(0)
    }

    /// One of `choices`, which must not be empty.
    pub fn one<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len())]
    }

    /// So many bytes, or what is left.
    pub fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A piece whose length stands before it in two bytes.
    pub fn piece(&mut self) -> &'a [u8] {
        let length = self.pair();
        self.take(length)
    }

    /// Is nothing left?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The parts of `input` between lines that say `mark` and nothing else.
pub fn parts<'a>(input: &'a [u8], mark: &str) -> Vec<&'a [u8]> {
    let (mut parts, mut begin, mut line) = (Vec::new(), 0, 0);
    while line < input.len() {
        let end = input[line..].iter().position(|byte| *byte == b'\n').map_or(input.len(), |at| line + at);
        if &input[line..end] == mark.as_bytes() {
            parts.push(&input[begin..line.saturating_sub(1).max(begin)]);
            begin = (end + 1).min(input.len());
        }
        line = end + 1;
    }
    parts.push(&input[begin..]);
    parts
}

/// `input` in pieces of `size` bytes; whole when that is 0.
pub fn cut(input: &[u8], size: usize) -> Vec<Vec<u8>> {
    if size == 0 { vec![input.to_vec()] } else { input.chunks(size).map(<[u8]>::to_vec).collect() }
}
