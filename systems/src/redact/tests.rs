//! A table of what is taken out and what stays, and properties over any text.

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::redact;

#[track_caller]
fn becomes(text: &str, expected: &str) {
    assert_eq!(redact(text), expected, "of {text:?}");
    assert_eq!(redact(expected), expected, "redacted twice");
}

#[track_caller]
fn stays(text: &str) {
    becomes(text, text);
}

#[test]
fn keys_by_their_form() {
    for (text, expected) in [
        ("use sk-abcdefghijklmnopqrstuvwxyz123456 now", "use [redacted:api_key] now"),
        ("sk-proj-AbC_123-xyz456789", "[redacted:api_key]"),
        ("(sk-ant-api03-Zz9_-Zz9_-Zz9)", "([redacted:api_key])"),
        ("key=AIzaSyA1234567890abcdefghijklmnopqrstuv", "key=[redacted:api_key]"),
        ("AKIAIOSFODNN7EXAMPLE.", "[redacted:aws_key]."),
        ("ASIAIOSFODNN7EXAMPLE", "[redacted:aws_key]"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[redacted:github_token]"),
        ("gho_16C7e42F292c6912E7710c838347Ae178B4a", "[redacted:github_token]"),
        ("github_pat_11ABCDE_abcdefghijklmnop", "[redacted:github_token]"),
        ("xoxb-123456789012-abcdef", "[redacted:slack_token]"),
        ("xoxp-1234-5678-90ab", "[redacted:slack_token]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "[redacted:jwt]"),
        ("Bearer abcdef123456", "Bearer [redacted:bearer]"),
        ("bearer  a.b.c~d", "bearer  [redacted:bearer]"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: [redacted:authorization]"),
        ("curl -H 'Authorization: Bearer abc' x", "curl -H 'Authorization: [redacted:authorization]' x"),
        ("authorization=abcdef", "authorization=[redacted:authorization]"),
    ] {
        becomes(text, expected);
    }
}

#[test]
fn private_keys() {
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+/=\nabc\n-----END RSA PRIVATE KEY-----";
    becomes(&format!("a {pem} b"), "a [redacted:private_key] b");
    becomes("-----BEGIN PRIVATE KEY-----\nMIIE\n", "[redacted:private_key]\n");
    let openssh = "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3Bl\\n-----END OPENSSH PRIVATE KEY-----";
    becomes(&format!("\"{openssh}\""), "\"[redacted:private_key]\"");
    stays("-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----");
}

#[test]
fn assignments() {
    for (text, expected) in [
        ("password=hunter2", "password=[redacted:secret]"),
        ("PASSWORD: hunter2, user: bob", "PASSWORD: [redacted:secret], user: bob"),
        ("export OPENAI_API_KEY=\"abc def\"", "export OPENAI_API_KEY=\"[redacted:secret]\""),
        ("api-key: 'abcd'", "api-key: '[redacted:secret]'"),
        ("?access_token=abcd&x=1", "?access_token=[redacted:secret]&x=1"),
        ("x-api-key := abcd", "x-api-key := [redacted:secret]"),
        ("mysql --password hunter2 -h x", "mysql --password [redacted:secret] -h x"),
        ("the password is hunter2.", "the password is [redacted:secret]"),
        ("postgres://bob:pa55@db/x", "postgres://bob:[redacted:secret]@db/x"),
        ("say \\\"password\\\": \\\"hunter2\\\"", "say \\\"password\\\": \\\"[redacted:secret]\\\""),
    ] {
        becomes(text, expected);
    }
    for text in [
        "the password is required",
        "max_tokens: 4096, token: 17",
        "\"input_tokens\": 1234567",
        "password=",
        "token: null",
        "secret: {",
        "a secret garden",
        "tokens=abcdef",
        "http://host:8080/path@x",
    ] {
        stays(text);
    }
}

#[test]
fn addresses() {
    becomes("Mail john.doe+x@example.co.uk, please.", "Mail [redacted:email], please.");
    becomes("<jürgen@exämple.de>", "<[redacted:email]>");
    becomes("a@b.com and c@d.org", "[redacted:email] and [redacted:email]");
    becomes("a@b.com联系", "[redacted:email]联系");
    for text in ["@mention", "a@b", "user@host:22", "x @ y.com", "npm i a@1.2.3", "decorator @app.route"] {
        stays(text);
    }
}

#[test]
fn phones() {
    for phone in [
        "+49 170 1234567",
        "+14155552671",
        "+1 (415) 555-2671",
        "+44 (0)20 7946 0958",
        "0049 170 1234567",
        "(415) 555-2671",
        "415-555-2671",
        "415.555.2671",
        "1-800-555-0199",
        "0170 1234567",
        "0171/1234567",
        "030 123456 78",
        "020 7946 0958",
        "06 12 34 56 78",
        "(030) 12345678",
    ] {
        becomes(&format!("call {phone}, now"), "call [redacted:phone], now");
        becomes(phone, "[redacted:phone]");
    }
    becomes("phone: 5551234567", "phone: [redacted:phone]");
    becomes("Tel. 555-1234", "Tel. [redacted:phone]");
    becomes("415-555-2671 415-555-2672", "[redacted:phone] [redacted:phone]");
}

#[test]
fn ids_dates_and_figures_stay() {
    for text in [
        "2026-11-21",
        "2026-11-21T10:55:00.000Z",
        "21.11.2026 10:55",
        "01.02.2024 12:30",
        "1700000000000",
        "12345678901234567890",
        "550e8400-e29b-41d4-a716-446655440000",
        "018f0000-0000-7000-8000-000000000001",
        "192.168.100.200",
        "3.14159265358979",
        "v1.22.333",
        "1,234,567.89",
        "100 200 3000 40000",
        "order 1234567890",
        "commit 4d967d7c0e1",
        "isbn 978-3-16-148410-0",
        "4111 1111 1111 1112",
        "1234567812345670",
        "range 10-20, 30-40",
        "x = 5551234567",
    ] {
        stays(text);
    }
}

#[test]
fn cards() {
    for card in [
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "4111111111111111",
        "5500 0000 0000 0004",
        "3782 822463 10005",
        "378282246310005",
        "6011 1111 1111 1117",
        "30569309025904",
        "3530111333300000",
    ] {
        becomes(&format!("card {card}."), "card [redacted:card].");
    }
    becomes("4111 1111 1111 1111 123", "[redacted:card] 123");
}

#[test]
fn json_stays_json_and_as_it_was() {
    for (text, expected) in [
        (r#"{"password":"hunter2","n":1.50}"#, r#"{"password":"[redacted:secret]","n":1.50}"#),
        (r#"{"password": 123456}"#, r#"{"password": "[redacted:secret]"}"#),
        (r#"{"b":[4111111111111111, 5],"a":"x"}"#, r#"{"b":["[redacted:card]", 5],"a":"x"}"#),
        (r#"{"mail":"line\nfoo@bar.com\u0021"}"#, r#"{"mail":"line\n[redacted:email]!"}"#),
        (r#"{"phone":5551234567}"#, r#"{"phone":"[redacted:phone]"}"#),
        (r#"{"text":"{\"token\":\"abcdef\"}"}"#, r#"{"text":"{\"token\":\"[redacted:secret]\"}"}"#),
        (r#"{"Authorization":"Basic abcd"}"#, r#"{"Authorization":"[redacted:authorization]"}"#),
        (r#"{"a@b.com":1}"#, r#"{"[redacted:email]":1}"#),
        (r#"["+49 170 1234567"]"#, r#"["[redacted:phone]"]"#),
    ] {
        becomes(text, expected);
    }
    stays(r#"{"input_tokens": 123456, "id": "550e8400-e29b-41d4-a716-446655440000"}"#);
}

/// Texts that look like what is looked for.
fn likely() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("sk-"),
        Just("AKIA"),
        Just("eyJ"),
        Just("ghp_"),
        Just("xoxb-"),
        Just("Bearer "),
        Just("authorization: "),
        Just("password"),
        Just("token"),
        Just("="),
        Just(": "),
        Just("\""),
        Just("\\\""),
        Just("\\\\\\\""),
        Just("\\n"),
        Just("'"),
        Just("@"),
        Just("."),
        Just("a.b"),
        Just("x.com"),
        Just("-----BEGIN "),
        Just("PRIVATE KEY-----"),
        Just("-----END "),
        Just("4111 1111 1111 1111"),
        Just("4111"),
        Just("1111"),
        Just("+49"),
        Just("0170"),
        Just("555"),
        Just("-"),
        Just(" "),
        Just("("),
        Just(")"),
        Just("/"),
        Just("://"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just("\n"),
        Just("ü"),
        Just("联"),
        Just("abcdefgh12345678"),
        Just("phone"),
        Just("12"),
        Just("[redacted:"),
        Just("[redacted:email]"),
        Just("true"),
        Just("is "),
        Just("--"),
        Just("_"),
        Just("1"),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let once = redact(text).into_owned();
    prop_assert_eq!(&*redact(&once), &once, "twice");
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        prop_assert!(serde_json::from_str::<IgnoredAny>(&once).is_ok(), "no JSON any more: {}", once);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn twice_is_once_for_likely_texts(text in likely()) {
        check(&text)?;
    }

    #[test]
    fn twice_is_once_for_any_text(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn json_of_any_strings_stays_json(key in likely(), value in likely(), more in likely()) {
        let inner = serde_json::json!({ key.clone(): value.clone(), "n": [1, more.clone()] }).to_string();
        check(&inner)?;
        check(&serde_json::json!([inner, { more: inner.clone() }]).to_string())?;
    }
}

#[test]
fn long_texts_take_linear_time() {
    // Each would take minutes if a byte were looked at once for every byte before it.
    for piece in [
        "a",
        "1 ",
        "1-",
        "a@",
        "@",
        "sk-",
        "eyJ",
        "eyJaaaaaaaa.",
        "password=\"",
        "password='",
        "token is ",
        "\\",
        "\\\"",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "-",
        "+1",
        "(",
        "://",
        "a:",
        "[redacted:",
        "Bearer ",
        "{\"a\":",
        "[",
        "ü",
        "a.",
        "555-",
        "authorization: digest ",
        "x_",
        "--password ",
    ] {
        let text = piece.repeat(200_000 / piece.len());
        assert!(redact(&text).len() <= text.len() * 16);
    }
}
