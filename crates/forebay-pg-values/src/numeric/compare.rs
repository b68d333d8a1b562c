//! The order of stored numerics, taken from their text alone: no number is built.

use std::cmp::Ordering;

/// What sorts first to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    NegativeInfinity,
    Finite,
    Infinity,
    Nan,
    /// No numeric at all: after all others, in the order of bytes.
    Foreign,
}

struct Parts<'a> {
    negative: bool,
    /// Without zeros in front.
    whole: &'a [u8],
    /// Without zeros behind.
    fraction: &'a [u8],
}

/// PostgreSQL's order of numerics: infinities at the ends, NaN above them and equal to itself; 1.0 equals 1.00. A total order of all
/// texts: what is no numeric comes last.
pub fn compare(left: &str, right: &str) -> Ordering {
    let (left_class, left_parts) = classify(left);
    let (right_class, right_parts) = classify(right);
    match (left_class.cmp(&right_class), left_class) {
        (Ordering::Equal, Class::Finite) => compare_parts(&left_parts, &right_parts),
        (Ordering::Equal, Class::Foreign) => left.as_bytes().cmp(right.as_bytes()),
        (order, _) => order,
    }
}

fn classify(text: &str) -> (Class, Parts<'_>) {
    let none = Parts {
        negative: false,
        whole: &[],
        fraction: &[],
    };
    match text {
        "NaN" => return (Class::Nan, none),
        "Infinity" => return (Class::Infinity, none),
        "-Infinity" => return (Class::NegativeInfinity, none),
        _ => {}
    }
    let bytes = text.as_bytes();
    let (negative, digits) = match bytes.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, bytes),
    };
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = point.map_or((digits, &[][..]), |at| (&digits[..at], &digits[at + 1..]));
    let all_digits = whole.iter().chain(fraction).all(u8::is_ascii_digit);
    if !all_digits || whole.len() + fraction.len() == 0 {
        return (Class::Foreign, none);
    }
    let zeros = whole.iter().take_while(|byte| **byte == b'0').count();
    let kept = fraction.iter().rposition(|byte| *byte != b'0').map_or(0, |at| at + 1);
    let (whole, fraction) = (&whole[zeros..], &fraction[..kept]);
    let parts = Parts {
        // There is no minus zero.
        negative: negative && whole.len() + fraction.len() > 0,
        whole,
        fraction,
    };
    (Class::Finite, parts)
}

fn compare_parts(left: &Parts<'_>, right: &Parts<'_>) -> Ordering {
    let magnitudes = || {
        (left.whole.len().cmp(&right.whole.len()))
            .then_with(|| left.whole.cmp(right.whole))
            .then_with(|| left.fraction.cmp(right.fraction))
    };
    match (left.negative, right.negative) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => magnitudes(),
        (true, true) => magnitudes().reverse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_all_kinds() {
        let rising = [
            "-Infinity",
            "-100",
            "-99.5",
            "-1.01",
            "-1",
            "-0.2",
            "-0.19",
            "0",
            "0.0001",
            "0.19",
            "0.2",
            "1",
            "1.01",
            "9",
            "10",
            "99.99",
            "100",
            "Infinity",
            "NaN",
            "",
            "-",
            "1e5",
            "abc",
        ];
        for (at, left) in rising.iter().enumerate() {
            for (other, right) in rising.iter().enumerate() {
                assert_eq!(compare(left, right), at.cmp(&other), "{left} {right}");
            }
        }
    }

    #[test]
    fn scale_does_not_count() {
        for (left, right) in [
            ("1.0", "1.00"),
            ("0", "-0"),
            ("0.00", "0"),
            ("-0.50", "-.5"),
            ("007", "7."),
            ("NaN", "NaN"),
        ] {
            assert_eq!(compare(left, right), Ordering::Equal, "{left} {right}");
        }
    }
}
