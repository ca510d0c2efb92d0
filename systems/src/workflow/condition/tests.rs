//! The condition language: examples, errors and their columns, and properties against a model of its own.

use proptest::prelude::*;

use super::*;
use crate::kernel::expr::{Comparison, compiled};

const OUTPUT: &str = " Verdict: Approved \n";
const INPUT: &str = "42";

fn variable(name: &str) -> Option<&'static str> {
    match name {
        "score" => Some(" 7.50"),
        "words" => Some("It's \"done\""),
        _ => None,
    }
}

fn known(name: &str) -> bool {
    matches!(name, "score" | "words" | "unset")
}

fn holds(text: &str) -> bool {
    let parsed = Condition::parse(text, &known).unwrap_or_else(|error| panic!("{text}: {error}"));
    parsed.holds(&Values { output: OUTPUT, input: INPUT, variable: &variable }, &mut Meter::new(usize::MAX)).unwrap()
}

#[test]
fn bare_texts_are_looked_for_whatever_their_case() {
    for text in ["approved", "APPROVED", "verdict: app", "\"approved\"", "'Approved'", "  approved  "] {
        assert!(holds(text), "{text}");
    }
    for text in ["rejected", "approved and done", "not (approved)", "don't", "approved = yes", "'a' or 'approved'"] {
        assert!(!holds(text), "{text}");
    }
    let read = |text: &str| read(text, &known).unwrap();
    assert_eq!(read("it's 'fine"), bare("it's 'fine"));
    assert_eq!(read("\"a == b\""), bare("a == b"), "quotes make anything bare");
    assert_eq!(read("uncontains and subequals"), bare("uncontains and subequals"));
}

#[test]
fn comparisons_of_texts_and_numbers() {
    for text in [
        "output contains 'APPROVED'",
        "output CONTAINS \"approved\"",
        "output == \"Verdict: Approved\"",
        "output equals 'Verdict: Approved'",
        "output != 'verdict: approved'",
        "input == 42.0",
        "input == '42'",
        "score == 7.5",
        "score > 7 and score < 8",
        "score >= 7.5 and score <= 7.5",
        "-1 < input",
        "output matches /Ver.*ed/",
        "output matches /^ verdict/i",
        "words contains \"it's \\\"done\\\"\"",
        "unset == ''",
        "not output > 3",
        "not (input > 100 or score > 100)",
        "input > 100 or score > 7 and not unset contains 'x'",
    ] {
        assert!(holds(text), "{text}");
    }
    for text in [
        "output > 3",
        "output < 3",
        "input > 42",
        "unset < 1",
        "output matches /approved/",
        "score == '7.5 'and output contains 'x'",
        "(input == 42 or score == 0) and unset == 'x'",
    ] {
        assert!(!holds(text), "{text}");
    }
}

#[test]
fn errors_say_where_and_what() {
    for (text, column, part) in [
        ("", 1, "empty"),
        ("   ", 1, "empty"),
        ("''", 1, "empty"),
        ("verdict == 'yes'", 1, "no earlier step sets the variable \"verdict\""),
        ("output == ", 10, "before the end"),
        ("output == yes", 11, "put strings in quotes"),
        ("== 3", 1, "expected output"),
        ("output contains 'a' 'b'", 21, "expected 'and'"),
        ("(output contains 'a'", 21, "expected ')'"),
        ("output contains 'a' and", 24, "before the end"),
        ("ü == 1", 1, "\"ü\""),
        ("'ü' == output and ö == 1", 19, "\"ö\""),
        ("output matches 'x'", 16, "such as /yes|no/"),
        ("output matches /x", 16, "missing closing"),
        ("output matches /(/", 16, "invalid regular expression: unclosed group"),
        ("output matches //", 16, "empty"),
        ("output matches /x/g", 19, "unknown flag"),
        ("output == 'x", 11, "missing closing"),
        ("output == 'x\\q'", 13, "unknown escape"),
        ("output == 5stars", 11, "not a number"),
        ("output = 5 or input == 1", 8, "use =="),
        ("output == 1 ; input", 13, "unexpected ';'"),
        ("output < < 1", 10, "expected output"),
        ("output and input == 1", 8, "expected contains"),
        ("not not == 1", 9, "expected output"),
    ] {
        let error = Condition::parse(text, &known).unwrap_err();
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
    let deep = format!("{}output == 1{}", "(".repeat(40), ")".repeat(40));
    assert!(Condition::parse(&deep, &known).unwrap_err().message.contains("32"));
}

#[test]
fn names_and_keywords() {
    for name in ["a", "_x", "research_1", "größe", "a-b.c"] {
        assert!(is_name(name), "{name}");
    }
    for name in ["", "1a", "-a", "a b", "a}", "\"a\""] {
        assert!(!is_name(name), "{name}");
    }
    assert!(is_keyword("Output") && is_keyword("and") && !is_keyword("android"));
}

#[test]
fn what_would_be_read_is_metered_before_it_is() {
    let (short, long) = ("a".repeat(1_000), "É".repeat(1_000));
    for (text, units) in [
        ("output contains 'x'", 1_000),
        ("input contains 'x'", 2_000 * 8),
        ("input contains output", 2_000 * 8 + 1_000),
        ("output == input", 3_000),
        ("output contains 'aaa' or input == '1'", 1_000),
        ("output contains 'x' or input == '1'", 1_000 + 2_001),
        ("output matches /xy?/", 1_000 * 3 * 8 + (4 + 5) * 1_000),
    ] {
        let condition = Condition::parse(text, &known).unwrap();
        let values = Values { output: &short, input: &long, variable: &|name| variable(name) };
        let mut meter = Meter::new(units);
        assert!(condition.holds(&values, &mut meter).is_ok(), "{text}");
        assert_eq!(meter.spent(), units, "{text}");
        let mut meter = Meter::new(units - 1);
        assert_eq!(condition.holds(&values, &mut meter), Err(Spent), "{text}");
        assert_eq!(meter.spent(), units - 1, "what is too much uses up the rest");
    }
}

#[test]
fn the_regular_expressions_of_a_condition_are_bounded_together() {
    let test = r"input matches /\w\w/";
    assert!(Condition::parse(test, &known).is_ok());
    let error = Condition::parse(&[test; 3].join(" or "), &known).unwrap_err();
    assert_eq!(error.column, 63);
    assert!(error.message.contains("too large"), "{error}");
}

fn operand() -> impl Strategy<Value = At<Term>> {
    let literal = |literal| Term::Literal(literal);
    prop_oneof![
        Just(dialect::field("output")),
        Just(dialect::field("input")),
        "[a-zü_][a-z0-9_.-]{0,6}"
            .prop_filter("no keyword", |name| !is_keyword(name))
            .prop_map(|name| dialect::field(&name)),
        any::<String>().prop_map(move |text| literal(Literal::Text(text))),
        (-1_000_000_i32..1_000_000, 0_i32..1_000)
            .prop_map(move |(a, b)| literal(Literal::Number(f64::from(a) + f64::from(b) / 1_000.0))),
    ]
    .prop_map(|term| At::new(0, term))
}

fn test() -> impl Strategy<Value = Expr> {
    let patterns = ["a/b", "^x$", "\\d+", "[/\"']", "yes|no", "\\\\/", " "];
    let found = (operand(), prop::sample::select(patterns.to_vec()), any::<bool>());
    let leaf = prop_oneof![
        6 => (operand(), prop::sample::select(Comparison::ALL.to_vec()), operand())
            .prop_map(|(left, comparison, right)| Expr::Compare(left, comparison, right)),
        1 => (operand(), operand()).prop_map(|(left, right)| Expr::Contains(left, right)),
        7 => found.prop_map(|(left, source, i)| Expr::Matches(left, compiled(source, i, 4_096).unwrap())),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::Or),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expr::And),
            inner.prop_map(|test| Expr::Not(Box::new(test))),
        ]
    })
}

/// A condition in one spelling; a bare text in quotes.
fn printed(expr: &Expr) -> String {
    match expr {
        Expr::Contains(At { column: 1, .. }, At { column: 1, node }) => node.to_string(),
        expr => expr.to_string(),
    }
}

/// A value as it is written, and what it is.
fn written() -> impl Strategy<Value = (String, String)> {
    let texts = ["42", "7.5", " 7.50 ", "Approved", "approved", "", "-3", "verdict"];
    prop_oneof![
        Just(("output".to_owned(), OUTPUT.to_owned())),
        Just(("Input".to_owned(), INPUT.to_owned())),
        Just(("score".to_owned(), " 7.50".to_owned())),
        Just(("unset".to_owned(), String::new())),
        prop::sample::select(texts.to_vec()).prop_map(|text| (format!("'{text}'"), text.to_owned())),
        (-9_i32..50).prop_map(|number| (number.to_string(), number.to_string())),
    ]
}

/// What a comparison of two texts must give, told without the code under test.
fn expected(left: &str, operator: &str, right: &str) -> bool {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let order = number(left).zip(number(right)).and_then(|(left, right)| left.partial_cmp(&right));
    let same = order.map_or(left.trim() == right.trim(), |order| order.is_eq());
    match operator {
        "contains" => {
            let (left, right) = (left.to_lowercase().into_bytes(), right.to_lowercase().into_bytes());
            right.is_empty() || left.windows(right.len()).any(|part| part == right)
        }
        "==" | "equals" => same,
        "!=" => !same,
        "<" => order.is_some_and(|order| order.is_lt()),
        "<=" => order.is_some_and(|order| order.is_le()),
        ">" => order.is_some_and(|order| order.is_gt()),
        _ => order.is_some_and(|order| order.is_ge()),
    }
}

/// A condition as it is written, and whether it must hold.
fn judged() -> impl Strategy<Value = (String, bool)> {
    let operators = ["contains", "==", "equals", "!=", "<", "<=", ">", ">="];
    let leaf = (written(), prop::sample::select(operators.to_vec()), written()).prop_map(|(left, operator, right)| {
        (format!("{} {operator}  {}", left.0, right.0), expected(&left.1, operator, &right.1))
    });
    leaf.prop_recursive(3, 16, 4, |inner| {
        // A row of `or` and `and` without parentheses: `and` binds closer. Each part stands in parentheses itself.
        let row = prop::collection::vec((inner, any::<bool>(), any::<bool>()), 1..5);
        row.prop_map(|parts| {
            let (mut text, mut groups) = (String::new(), vec![]);
            for (at, ((part, value), negated, joined_by_or)) in parts.into_iter().enumerate() {
                if at > 0 {
                    text.push_str(if joined_by_or { " OR " } else { " and " });
                }
                text.push_str(&if negated { format!("not ({part})") } else { format!("( {part})") });
                let value = value != negated;
                match groups.last_mut() {
                    Some(group) if !joined_by_or => *group = *group && value,
                    _ => groups.push(value),
                }
            }
            (text, groups.contains(&true))
        })
    })
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        if let Err(error) = Condition::parse(&text, &known) {
            prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1);
        }
    }

    #[test]
    fn no_row_of_words_makes_the_parser_panic(
        words in prop::collection::vec(
            prop::sample::select(vec!["output", "and", "or", "not", "(", ")", "==", "contains", "'x'", "\"", "/a/i", "/",
                "matches", "3", "-", "score", "\\", "<", "=", "!", " ", "é"]), 0..24),
        gap in prop::sample::select(vec!["", " "]),
    ) {
        let text = words.join(gap);
        match read(&text, &known) {
            Ok(parsed) => prop_assert_eq!(read(&printed(&parsed), &known).unwrap(), parsed),
            Err(error) => prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1),
        }
    }

    #[test]
    fn what_is_printed_reads_as_the_same(expr in test()) {
        let text = expr.to_string();
        let again = read(&text, &|_| true);
        prop_assert_eq!(again.as_ref(), Ok(&expr), "{}", text);
    }

    #[test]
    fn bare_texts_are_printed_and_read_as_the_same(text in "\\PC{1,40}") {
        let again = read(&printed(&bare(&text)), &|_| true);
        prop_assert_eq!(again, Ok(bare(&text)));
    }

    #[test]
    fn conditions_hold_as_the_model_says((text, expected) in judged()) {
        prop_assert_eq!(holds(&text), expected, "{}", text);
    }
}
