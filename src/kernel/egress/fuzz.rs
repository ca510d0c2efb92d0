//! Generated URLs and addresses against the checker. `AGENTSVC_FUZZ_CASES` sets how many cases each property gets.
//!
//! What must hold is said twice, so that the checker is not its own witness: by the classes of the standard library,
//! and by a reader of IPv4 spellings written after `inet_aton`, as resolvers read what they take for an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::allow::AllowedHosts;
use super::policy::Policy;
use super::target::Target;

fn config() -> Config {
    let cases = std::env::var("AGENTSVC_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok());
    Config { cases: cases.unwrap_or(20_000), failure_persistence: None, ..Config::default() }
}

/// A checker that grants every host and opens none.
fn check<T>(with: impl FnOnce(&Policy<'_>) -> T) -> T {
    let (allowed, network) = (AllowedHosts::default(), [Box::from("*")]);
    with(&Policy { allowed: &allowed, network: &network, trusted: None })
}

/// Is the address public, as the standard library and the oldest of the rules see it?
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, ..] = v4.octets();
    !(v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || v4.is_broadcast()
        || v4.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 198 && (b == 18 || b == 19)))
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    let s = v6.segments();
    let carried = |high: u16, low: u16| is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    let own = !(v6.is_loopback()
        || v6.is_unspecified()
        || v6.is_multicast()
        || v6.is_unique_local()
        || v6.is_unicast_link_local());
    own && match s {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => carried(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => carried(high, low),
        [0x2002, high, low, ..] => carried(high, low),
        [0x2001, 0, .., high, low] => carried(!high, !low),
        [.., 0 | 0x200, 0x5efe, high, low] => carried(high, low),
        _ => true,
    }
}

/// How a resolver reads a name that it takes for an IPv4 address: one to four parts, decimal, octal or hexadecimal,
/// the last of which fills what is left.
fn inet_aton(name: &str) -> Option<Ipv4Addr> {
    let part = |text: &str| {
        let lower = text.to_ascii_lowercase();
        match lower.strip_prefix("0x") {
            Some("") => Some(0),
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None if lower.len() > 1 && lower.starts_with('0') => u64::from_str_radix(&lower, 8).ok(),
            None => lower.parse().ok(),
        }
    };
    let parts: Vec<u64> = name.trim_end_matches('.').split('.').map(part).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    if first.len() > 3 || first.iter().any(|part| *part > 255) || *last >= 1 << (8 * (4 - first.len())) {
        return None;
    }
    let head = first.iter().enumerate().map(|(at, part)| part << (8 * (3 - at))).sum::<u64>();
    Some(Ipv4Addr::from(u32::try_from(head | last).ok()?))
}

/// What the checker lets pass must be public, whoever reads it.
fn assert_harmless(url: &str) -> Result<(), TestCaseError> {
    let Ok(target) = Target::parse(url) else { return Ok(()) };
    if check(|policy| policy.permit(&target)).is_err() {
        return Ok(());
    }
    match target.address {
        Some(address) => prop_assert!(is_public(address), "{url} passes as {address}"),
        None => {
            let read = inet_aton(&target.host);
            prop_assert!(read.is_none_or(is_public_v4), "{url} passes as the name {}", target.host);
            prop_assert!(target.host.parse::<IpAddr>().is_err(), "{url} passes as a name");
        }
    }
    prop_assert!(matches!(target.url.scheme(), "http" | "https"), "{url}");
    // What the client connects with, read again, is still the same place.
    let again = Target::parse(target.url.as_str()).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!((again.host, again.port, again.address), (target.host, target.port, target.address));
    Ok(())
}

/// One part of an IPv4 address in one of the ways to write a number.
fn number(value: u64, style: u8) -> String {
    match style % 6 {
        0 => value.to_string(),
        1 => format!("0x{value:x}"),
        2 => format!("0X{value:X}"),
        3 => format!("0{value:o}"),
        4 => format!("000000{value:o}"),
        _ => format!("0x0000{value:x}"),
    }
}

/// An IPv4 address with the last parts joined, each part in a style of its own.
fn spell_v4(address: Ipv4Addr, parts: usize, styles: [u8; 4]) -> String {
    let bits = u64::from(address.to_bits());
    let mut spelled = Vec::new();
    for (at, style) in styles.iter().enumerate().take(parts - 1) {
        spelled.push(number((bits >> (8 * (3 - at))) & 255, *style));
    }
    let left = 8 * (4 - (parts - 1));
    spelled.push(number(bits & ((1_u64 << left) - 1), styles[3]));
    spelled.join(".")
}

/// An address within brackets, in one of the ways that carry IPv4 or plainly.
fn spell_v6(address: Ipv4Addr, style: u8) -> String {
    let [a, b, c, d] = address.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    match style % 8 {
        0 => format!("[::ffff:{address}]"),
        1 => format!("[::ffff:{high:x}:{low:x}]"),
        2 => format!("[0:0:0:0:0:FFFF:{high:X}:{low:X}]"),
        3 => format!("[::{high:x}:{low:x}]"),
        4 => format!("[64:ff9b::{high:x}:{low:x}]"),
        5 => format!("[2002:{high:x}:{low:x}::1]"),
        6 => format!("[2001:0:4136:e378:8000:63bf:{:x}:{:x}]", !high, !low),
        _ => format!("[2606:4700::5efe:{high:x}:{low:x}]"),
    }
}

/// Rewrites some characters of a host in ways that a parser may undo.
fn disguise(host: &str, mask: u64) -> String {
    let disguised = host.chars().enumerate().map(|(at, c)| {
        let wide = |from: char| char::from_u32(0xff10 + u32::from(c) - u32::from(from)).unwrap_or(c);
        match (mask >> ((at * 2) % 64)) & 3 {
            1 if c.is_ascii_digit() => wide('0').to_string(),
            1 if c == '.' => "。".to_owned(),
            2 => format!("%{:02X}", u32::from(c) & 255),
            3 if c.is_ascii_alphabetic() => c.to_ascii_uppercase().to_string(),
            3 => format!("{c}\u{ad}"),
            _ => c.to_string(),
        }
    });
    disguised.collect()
}

fn address_v4() -> impl Strategy<Value = Ipv4Addr> {
    let notable = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.0.1", "172.16.5.4", "100.64.0.1", "0.0.0.0"];
    let notable = notable.map(|text| text.parse().expect("an address"));
    prop_oneof![3 => proptest::sample::select(notable.to_vec()), 1 => any::<u32>().prop_map(Ipv4Addr::from)]
}

fn spelled_url() -> impl Strategy<Value = (Ipv4Addr, String)> {
    let host = (address_v4(), 1_usize..=4, any::<[u8; 4]>(), any::<Option<u8>>());
    let around = (
        "(http|https|HTTP|hTTps)",
        "(://|:|:/|:///|:\\\\\\\\)",
        "(|user@|user:pw@|public\\.example@|%00@)",
        "(|\\.|\\.\\.)",
        "(|:80|:443|:8080|:0|:00080|:22|:)",
        "(|/|/path|\\?q|#f|/@public\\.example|\\\\@public\\.example)",
        prop_oneof![2 => Just(0), 1 => any::<u64>()],
    );
    (host, around).prop_map(|((address, parts, styles, v6), (scheme, slashes, user, dot, port, rest, mask))| {
        let host = match v6 {
            Some(style) => spell_v6(address, style),
            None => disguise(&spell_v4(address, parts, styles), mask) + &dot,
        };
        (address, format!("{scheme}{slashes}{user}{host}{port}{rest}"))
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_spelling_of_a_private_address_passes((address, url) in spelled_url()) {
        assert_harmless(&url)?;
        if let Ok(target) = Target::parse(&url)
            && !is_public_v4(address)
        {
            prop_assert!(check(|policy| policy.permit(&target)).is_err(), "{url} passes");
        }
    }

    #[test]
    fn nothing_made_of_url_parts_passes_as_private(
        url in "(https?:/{0,3})?([0-9a-fA-FxX.]{0,12}|localhost|\\[[0-9a-f:.%]{0,20}\\]|[%@:/\\\\?#.\u{ff10}-\u{ff19}\u{3002}]{0,6}){0,5}"
    ) {
        assert_harmless(&url)?;
    }

    #[test]
    fn arbitrary_text_never_panics_nor_passes_as_private(url in "(https?://)?\\PC{0,40}") {
        assert_harmless(&url)?;
    }

    #[test]
    fn one_private_address_refuses_all(
        public in proptest::collection::vec(any::<u32>(), 0..6),
        other in any::<[u16; 8]>(),
        carried in (address_v4(), any::<u8>()),
        at in any::<prop::sample::Index>(),
    ) {
        let target = Target::parse("https://name.example/").expect("a URL");
        let public = public.into_iter().map(|bits| IpAddr::from(Ipv4Addr::from(bits)));
        let mut addresses: Vec<IpAddr> = public.filter(|address| is_public(*address)).collect();
        let spelled = spell_v6(carried.0, carried.1);
        let carrying: IpAddr = spelled.trim_matches(['[', ']']).parse().expect("an address");
        for bad in [carrying, IpAddr::from(carried.0), IpAddr::from(Ipv6Addr::from(other))] {
            if !is_public(bad) {
                let place = at.index(addresses.len() + 1);
                addresses.insert(place, bad);
                prop_assert!(check(|policy| policy.pin(&target, &addresses)).is_err(), "{addresses:?} pass");
                addresses.remove(place);
            }
        }
        if let Ok(pinned) = check(|policy| policy.pin(&target, &addresses)) {
            prop_assert!(pinned.iter().all(|address| is_public(address.ip()) && address.port() == 443));
        }
    }
}
