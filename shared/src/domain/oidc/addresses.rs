//! Which network addresses an issuer may have. A user chooses an issuer's host, so the server must not be led to
//! services that only it can reach.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of addresses, such as `10.1.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u32,
}

/// A text that is not a range of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a range of addresses: write one as 10.1.0.0/16, fd00::/8 or 127.0.0.1")]
pub struct InvalidNetwork(String);

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let invalid = || InvalidNetwork(text.chars().take(60).collect());
        let (base, bits) = match text.split_once('/') {
            Some((base, bits)) => (base, Some(bits)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| invalid())?;
        let bits_max = if base.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) if bits.bytes().all(|b| b.is_ascii_digit()) => bits.parse().map_err(|_| invalid())?,
            Some(_) => return Err(invalid()),
            None => bits_max,
        };
        if bits > bits_max { Err(invalid()) } else { Ok(Self { base, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let differs = |bits: u128, width: u32| self.bits > 0 && bits >> (width - self.bits) != 0;
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                !differs(u128::from(base.to_bits() ^ address.to_bits()), 32)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => !differs(base.to_bits() ^ address.to_bits(), 128),
            _ => false,
        }
    }
}

/// The addresses inside that the operator allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed(pub Vec<Network>);

impl Allowed {
    /// Parses ranges with commas between them.
    ///
    /// # Errors
    /// [`InvalidNetwork`] for the first that does not parse.
    pub fn parse(text: &str) -> Result<Self, InvalidNetwork> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a request may go to this address: it is public, or the operator allows it.
    pub fn allows(&self, address: IpAddr) -> bool {
        is_public(reached(address)) || self.names(address)
    }

    /// Whether the operator allows this address itself.
    pub fn names(&self, address: IpAddr) -> bool {
        let address = reached(address);
        self.0.iter().any(|network| network.contains(address))
    }
}

/// The address that packets for this one reach: an IPv4 address may be written as an IPv6 one, mapped (RFC 4291,
/// section 2.5.5.2) or for a translator (RFC 6052, `64:ff9b::/96`).
fn reached(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => address,
    }
}

/// The addresses that one client controls: with IPv6 the whole /64 network.
pub fn of_client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// Whether an address is one of the public Internet. Source: the registries of special-purpose addresses of IANA, for
/// IPv4 and IPv6, as of 2026-11.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [224..=255, ..]
            // The host's own services in Azure, at a public address.
            | [168, 63, 129, 16]
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Protocol assignments with Teredo, which contains an IPv4 address; documentation; 6to4, which contains one too.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] => false,
        [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast is all of `2000::/3`.
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(allowed: &str, address: &str) -> bool {
        Allowed::parse(allowed).unwrap().allows(address.parse().unwrap())
    }

    #[test]
    fn ipv6_addresses_of_clients_count_by_network() {
        let of_client = |address: &str| of_client(address.parse().unwrap()).to_string();
        assert_eq!(of_client("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of_client("::ffff:10.1.2.3"), "10.1.2.3");
    }

    #[test]
    fn addresses_inside_are_refused_in_every_form() {
        for inside in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff:123::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!allows("", inside), "{inside}");
        }
    }

    #[test]
    fn public_addresses_are_allowed() {
        for public in [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.169.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "2001:200::1",
            "64:ff9b::101:101",
            "::ffff:1.1.1.1",
        ] {
            assert!(allows("", public), "{public}");
        }
    }

    #[test]
    fn the_operator_allows_ranges() {
        assert!(allows("127.0.0.1", "127.0.0.1") && !allows("127.0.0.1", "127.0.0.2"));
        assert!(allows("127.0.0.1", "::ffff:127.0.0.1"), "it is the same address");
        assert!(allows(" 10.1.0.0/16 , fd00::/8", "10.1.255.1") && !allows("10.1.0.0/16", "10.2.0.1"));
        assert!(allows("10.1.0.0/16,fd00::/8", "fd12::1") && !allows("fd00::/8", "fe80::1"));
        assert!(allows("0.0.0.0/0", "169.254.169.254") && !allows("0.0.0.0/0", "::1"));
        assert!(allows("::/0", "::1"));
    }

    #[test]
    fn a_range_that_does_not_parse_is_refused() {
        for bad in
            ["a", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/-1", "::/129", "10/8", "localhost"]
        {
            assert!(Allowed::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Allowed::parse(" , ").unwrap(), Allowed::default());
        assert_eq!("10.0.0.0/8".parse::<Network>().unwrap().to_string(), "10.0.0.0/8");
    }
}
