//! Which addresses belong to the public internet.
//!
//! Written from the special-purpose registries of IANA (RFC 6890 and its successors). Stricter than them in one way:
//! what only carries another address, or is no longer in use, is refused as a whole. The exception is the well-known
//! NAT64 prefix, behind which networks without IPv4 see all of it: there the carried address decides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not public, as first address, prefix length and name.
const V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "unspecified"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "carrier-grade NAT"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol assignment"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmark"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// The IPv6 block that global unicast addresses come from; nothing outside it is public.
const V6_GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The well-known NAT64 prefix: the last four bytes are the IPv4 address.
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// IPv6 blocks that are not public, within [`V6_GLOBAL`] or worth a name of their own.
const V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 128, "unspecified"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 1), 128, "loopback"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, "IPv4-mapped"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 0), 96, "IPv4-compatible"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "local NAT64"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "discard"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, "Teredo"),
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, "benchmark"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "protocol assignment"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "6to4"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "unique local"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

/// Why `address` is not public, in a word or two; `None` for a public one.
pub(crate) fn not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

/// True when the first `length` bits of `address` are those of `block`. Blocks of the other family never match.
pub(crate) fn within(address: IpAddr, block: IpAddr, length: u32) -> bool {
    match (address, block) {
        (IpAddr::V4(address), IpAddr::V4(block)) => within_v4(address, block, length),
        (IpAddr::V6(address), IpAddr::V6(block)) => within_v6(address, block, length),
        _ => false,
    }
}

fn v4(address: Ipv4Addr) -> Option<&'static str> {
    V4.iter().find(|(block, length, _)| within_v4(address, *block, *length)).map(|(_, _, name)| *name)
}

fn v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(carried) = address.to_ipv4_mapped() {
        return Some(v4(carried).unwrap_or("IPv4-mapped"));
    }
    if within_v6(address, NAT64.0, NAT64.1) {
        return v4(last_four(address));
    }
    if let Some((_, _, name)) = V6.iter().find(|(block, length, _)| within_v6(address, *block, *length)) {
        return Some(name);
    }
    if !within_v6(address, V6_GLOBAL.0, V6_GLOBAL.1) {
        return Some("reserved");
    }
    // ISATAP: an interface identifier that tunnels to the IPv4 address at its end, under any prefix.
    let segments = address.segments();
    if matches!(segments[4], 0 | 0x200) && segments[5] == 0x5efe {
        return Some("ISATAP");
    }
    None
}

fn last_four(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

fn within_v4(address: Ipv4Addr, block: Ipv4Addr, length: u32) -> bool {
    (address.to_bits() ^ block.to_bits()).leading_zeros() >= length.min(32)
}

fn within_v6(address: Ipv6Addr, block: Ipv6Addr, length: u32) -> bool {
    (address.to_bits() ^ block.to_bits()).leading_zeros() >= length.min(128)
}

#[cfg(test)]
mod tests {
    use super::{not_public, within};

    #[track_caller]
    fn classes(table: &[(&str, Option<&str>)]) {
        for (address, expected) in table {
            assert_eq!(not_public(address.parse().unwrap()), *expected, "{address}");
        }
    }

    #[test]
    fn every_class_of_ipv4_has_its_edges() {
        classes(&[
            ("0.0.0.0", Some("unspecified")),
            ("0.255.255.255", Some("unspecified")),
            ("1.0.0.0", None),
            ("9.255.255.255", None),
            ("10.0.0.0", Some("private")),
            ("10.255.255.255", Some("private")),
            ("11.0.0.0", None),
            ("100.63.255.255", None),
            ("100.64.0.0", Some("carrier-grade NAT")),
            ("100.127.255.255", Some("carrier-grade NAT")),
            ("100.128.0.0", None),
            ("126.255.255.255", None),
            ("127.0.0.1", Some("loopback")),
            ("127.255.255.254", Some("loopback")),
            ("128.0.0.0", None),
            ("169.253.255.255", None),
            ("169.254.169.254", Some("link-local")),
            ("169.255.0.0", None),
            ("172.15.255.255", None),
            ("172.16.0.0", Some("private")),
            ("172.31.255.255", Some("private")),
            ("172.32.0.0", None),
            ("192.0.0.170", Some("protocol assignment")),
            ("192.0.1.0", None),
            ("192.0.2.1", Some("documentation")),
            ("192.88.99.1", Some("6to4 relay")),
            ("192.167.255.255", None),
            ("192.168.1.1", Some("private")),
            ("192.169.0.0", None),
            ("198.17.255.255", None),
            ("198.18.0.0", Some("benchmark")),
            ("198.19.255.255", Some("benchmark")),
            ("198.20.0.0", None),
            ("198.51.100.7", Some("documentation")),
            ("203.0.113.7", Some("documentation")),
            ("223.255.255.255", None),
            ("224.0.0.1", Some("multicast")),
            ("239.255.255.255", Some("multicast")),
            ("240.0.0.0", Some("reserved")),
            ("255.255.255.255", Some("reserved")),
            ("8.8.8.8", None),
        ]);
    }

    #[test]
    fn every_class_of_ipv6_has_its_edges() {
        classes(&[
            ("::", Some("unspecified")),
            ("::1", Some("loopback")),
            ("::2", Some("IPv4-compatible")),
            ("::7f00:1", Some("IPv4-compatible")),
            ("::ffff:127.0.0.1", Some("loopback")),
            ("::ffff:8.8.8.8", Some("IPv4-mapped")),
            ("::ffff:0:127.0.0.1", Some("reserved")),
            ("64:ff9b::7f00:1", Some("loopback")),
            ("64:ff9b::a00:1", Some("private")),
            ("64:ff9b::a9fe:a9fe", Some("link-local")),
            ("64:ff9b::808:808", None),
            ("64:ff9b:1::808:808", Some("local NAT64")),
            ("64:ff9b:2::1", Some("reserved")),
            ("100::1", Some("discard")),
            ("1fff:ffff::1", Some("reserved")),
            ("2001::1", Some("Teredo")),
            ("2001:2::1", Some("benchmark")),
            ("2001:10::1", Some("protocol assignment")),
            ("2001:20::1", Some("protocol assignment")),
            ("2001:1ff:ffff::1", Some("protocol assignment")),
            ("2001:200::1", None),
            ("2001:db8::1", Some("documentation")),
            ("2001:db9::1", None),
            ("2002:7f00:1::1", Some("6to4")),
            ("2002:808:808::1", Some("6to4")),
            ("2606:4700::1111", None),
            ("2606:4700::5efe:7f00:1", Some("ISATAP")),
            ("2606:4700::200:5efe:a00:1", Some("ISATAP")),
            ("2a00:1450:4001::200e", None),
            ("3fff::1", Some("documentation")),
            ("3fff:1000::1", None),
            ("4000::1", Some("reserved")),
            ("5f00::1", Some("reserved")),
            ("fc00::1", Some("unique local")),
            ("fdff::1", Some("unique local")),
            ("fe80::1", Some("link-local")),
            ("febf::1", Some("link-local")),
            ("fec0::1", Some("site-local")),
            ("ff02::1", Some("multicast")),
        ]);
    }

    #[test]
    fn blocks_match_by_their_bits() {
        let within =
            |address: &str, block: &str, length| within(address.parse().unwrap(), block.parse().unwrap(), length);
        assert!(within("10.1.2.3", "10.1.2.3", 32) && !within("10.1.2.4", "10.1.2.3", 32));
        assert!(within("10.1.3.3", "10.1.2.0", 23) && !within("10.1.4.0", "10.1.2.0", 23));
        assert!(within("1.2.3.4", "9.9.9.9", 0) && within("fd00::1", "fd00::", 8) && !within("fe00::1", "fd00::", 8));
        assert!(!within("::ffff:10.1.2.3", "10.1.2.3", 0));
    }
}
