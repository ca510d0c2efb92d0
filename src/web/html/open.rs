//! The elements that are open, with the end tags that HTML lets authors leave out.

use super::OPEN_MAX;

/// Open elements, outermost first.
#[derive(Debug, Default)]
pub(super) struct Open {
    stack: Vec<Closed>,
    /// How many of them hide their content.
    hidden: usize,
    /// How many of them are drawings or formulas, with names and rules of their own.
    foreign: usize,
    /// Elements below the deepest that is kept.
    below: usize,
    /// The first of those that hides its content.
    hidden_below: Option<usize>,
}

/// An element that is or was open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Closed {
    /// Its name.
    pub(super) name: String,
    /// Whether it is not shown, by itself or by what it stands in.
    pub(super) hidden: bool,
    /// Whether it hides by itself.
    hides: bool,
}

/// Elements whose content cannot be closed from inside: an end tag looks no further.
const WALLS: &[&str] = &["table", "td", "th", "caption", "html", "body", "object", "template"];

impl Open {
    /// True when something that is open is not shown.
    pub(super) fn hidden(&self) -> bool {
        self.hidden > 0 || self.hidden_below.is_some()
    }

    /// True within a drawing or a formula.
    pub(super) fn foreign(&self) -> bool {
        self.foreign > 0
    }

    /// True when an element of this name is open.
    pub(super) fn inside(&self, name: &str) -> bool {
        self.stack.iter().any(|open| open.name == name)
    }

    /// True when the innermost element has this name.
    pub(super) fn innermost(&self, name: &str) -> bool {
        self.below == 0 && self.stack.last().is_some_and(|open| open.name == name)
    }

    /// Opens an element.
    pub(super) fn push(&mut self, name: &str, hides: bool) {
        if self.stack.len() == OPEN_MAX {
            self.below += 1;
            if hides && self.hidden_below.is_none() {
                self.hidden_below = Some(self.below);
            }
            return;
        }
        self.foreign += usize::from(is_foreign(name));
        self.hidden += usize::from(hides);
        self.stack.push(Closed { name: name.to_owned(), hidden: self.hidden(), hides });
    }

    /// Closes the innermost element of this name and all in it, innermost first. A stray end tag closes nothing.
    pub(super) fn pop(&mut self, name: &str) -> Vec<Closed> {
        if self.below > 0 {
            self.hidden_below = self.hidden_below.filter(|first| *first < self.below);
            self.below -= 1;
            return Vec::new();
        }
        let ends_walls = WALLS.contains(&name) || matches!(name, "tr" | "tbody" | "thead" | "tfoot");
        for at in (0..self.stack.len()).rev() {
            let open = &self.stack[at].name;
            if open == name {
                return self.truncate(at);
            }
            if !ends_walls && WALLS.contains(&open.as_str()) {
                break;
            }
        }
        Vec::new()
    }

    /// Closes what ends because an element of this name begins, innermost first.
    pub(super) fn implied_ends(&mut self, begins: &str) -> Vec<Closed> {
        if self.below > 0 {
            return Vec::new();
        }
        if self.innermost("head") && !belongs_to_head(begins) {
            return self.truncate(self.stack.len() - 1);
        }
        if matches!(begins, "main" | "article" | "body") {
            // The body ends the head; the content of a page stands in no navigation, so that one was left open.
            let left_open = self.stack.iter().position(|open| matches!(open.name.as_str(), "head" | "nav"));
            return left_open.map(|at| self.truncate(at)).unwrap_or_default();
        }
        let (ends, within): (&[&str], &[&str]) = match begins {
            "li" => (&["li"], &["ul", "ol", "menu", "table"]),
            "dt" | "dd" => (&["dt", "dd"], &["dl", "table"]),
            "td" | "th" => (&["td", "th"], &["tr", "table"]),
            "tr" => (&["tr"], &["table"]),
            "tbody" | "thead" | "tfoot" => (&["tbody", "thead", "tfoot", "tr"], &["table"]),
            "option" | "optgroup" => (&["option"], &["select"]),
            "a" => (&["a"], &["table", "p", "div", "li"]),
            _ if ends_paragraph(begins) => (&["p"], &["table", "td", "th", "button", "object", "div", "li"]),
            _ => return Vec::new(),
        };
        for at in (0..self.stack.len()).rev() {
            let open = self.stack[at].name.as_str();
            if ends.contains(&open) {
                return self.truncate(at);
            }
            if within.contains(&open) {
                break;
            }
        }
        Vec::new()
    }

    fn truncate(&mut self, at: usize) -> Vec<Closed> {
        let mut closed = self.stack.split_off(at);
        self.foreign -= closed.iter().filter(|open| is_foreign(&open.name)).count();
        self.hidden -= closed.iter().filter(|open| open.hides).count();
        closed.reverse();
        closed
    }
}

/// Elements that have no content.
pub(super) fn is_void(name: &str) -> bool {
    matches!(
        name,
        "area"
            | "base"
            | "br"
            | "col"
            | "embed"
            | "hr"
            | "img"
            | "input"
            | "link"
            | "meta"
            | "source"
            | "track"
            | "wbr"
    )
}

/// Elements that stand in the head; any other begins the body.
fn belongs_to_head(name: &str) -> bool {
    matches!(name, "base" | "link" | "meta" | "noscript" | "script" | "style" | "template" | "title")
}

fn is_foreign(name: &str) -> bool {
    matches!(name, "svg" | "math")
}

/// Elements that end an open paragraph.
fn ends_paragraph(name: &str) -> bool {
    const ENDS: &str = "address aside blockquote center details div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 \
        header hr menu nav ol p pre section table ul";
    ENDS.split(' ').any(|end| end == name)
}
