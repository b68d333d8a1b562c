//! Quantities as people write them: `250ms`, `5min`, `64MiB`, `localhost:6432`.
//!
//! Promises: a quantity without a unit that needs one is an error that says which units there are. Knows no option's name.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// A length of time: a whole number with `ms`, `s`, `min` or `h`; `0` alone is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text);
        let number: u64 = number
            .parse()
            .map_err(|_| format!("{text:?} is no length of time: write 250ms, 10s, 5min or 1h"))?;
        let millis = match unit {
            "" if number == 0 => 0,
            "ms" => 1,
            "s" => 1_000,
            "min" => 60_000,
            "h" => 3_600_000,
            _ => return Err(format!("{text:?} has no known unit: write ms, s, min or h")),
        };
        // A year is for ever here, and far from overflowing a clock.
        let total = number
            .checked_mul(millis)
            .filter(|total| *total <= 366 * 24 * 3_600_000);
        Ok(Self(Duration::from_millis(
            total.ok_or_else(|| format!("{text:?} is longer than a year"))?,
        )))
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// An amount of memory: a whole number of bytes, or with `KiB`, `MiB` or `GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub usize);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text);
        let number: usize = number
            .parse()
            .map_err(|_| format!("{text:?} is no size: write 65536, 64KiB, 64MiB or 1GiB"))?;
        let shift = match unit {
            "" | "B" => 0,
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            _ => return Err(format!("{text:?} has no known unit: write KiB, MiB or GiB")),
        };
        number
            .checked_mul(1 << shift)
            .map(Self)
            .ok_or_else(|| format!("{text:?} is larger than any memory"))
    }
}

/// A file may give bytes as a number.
impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Size;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a size such as \"64MiB\" or a number of bytes")
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
                usize::try_from(bytes)
                    .map(Size)
                    .map_err(|_| E::custom("a size is not negative"))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// A share of a whole, in millionths: a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Share(pub u32);

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(share: f64) -> Result<Self, String> {
        match (0.0..=1.0).contains(&share) {
            true => Ok(Self((share * 1e6).round() as u32)),
            false => Err(format!("{share} is no share: write a number from 0 to 1, as 0.1")),
        }
    }
}

/// An address with its port; `localhost` is 127.0.0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Address(pub SocketAddr);

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address: write 127.0.0.1:6432, [::1]:6432 or localhost:6432");
        match text.strip_prefix("localhost:") {
            Some(port) => Ok(Self(SocketAddr::from((
                Ipv4Addr::LOCALHOST,
                port.parse().map_err(|_| wrong())?,
            )))),
            None => text.parse().map(Self).map_err(|_| wrong()),
        }
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// An address, or `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AddressOrOff(pub Option<SocketAddr>);

impl FromStr for AddressOrOff {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            Ok(Self(None))
        } else {
            text.parse().map(|Address(address)| Self(Some(address)))
        }
    }
}

impl TryFrom<String> for AddressOrOff {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_need_a_unit() {
        for (text, millis) in [
            ("0", 0),
            ("250ms", 250),
            ("10s", 10_000),
            ("5 min", 300_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(text.parse::<Span>().unwrap().0, Duration::from_millis(millis));
        }
        for text in [
            "",
            "10",
            "s",
            "-1s",
            "1.5s",
            "1 fortnight",
            "9999999h",
            "99999999999999999999ms",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_bytes_unless_they_say() {
        for (text, bytes) in [
            ("0", 0),
            ("10", 10),
            ("1KiB", 1024),
            ("64 MiB", 64 << 20),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(text.parse::<Size>().unwrap().0, bytes);
        }
        for text in ["", "MiB", "1MB", "-1", "1.5MiB", "99999999999999GiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_parts_of_a_whole() {
        for (number, millionths) in [(0.0, 0), (0.1, 100_000), (1.0, 1_000_000), (-0.0, 0)] {
            assert_eq!(Share::try_from(number), Ok(Share(millionths)));
        }
        for number in [-0.1, 1.1, 10.0, f64::NAN, f64::INFINITY] {
            assert!(Share::try_from(number).is_err(), "{number}");
        }
    }

    #[test]
    fn addresses_have_a_port() {
        assert_eq!("localhost:1".parse::<Address>().unwrap().0.to_string(), "127.0.0.1:1");
        assert_eq!(
            "[::1]:1".parse::<AddressOrOff>().unwrap().0.unwrap().to_string(),
            "[::1]:1"
        );
        assert_eq!("off".parse::<AddressOrOff>().unwrap().0, None);
        for text in ["", "127.0.0.1", ":80", "localhost:", "example.org:1", "localhost:99999"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
