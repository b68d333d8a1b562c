//! A number as C's `%g` writes it, which is what some of PostgreSQL's messages hold.

/// Six significant digits, an exponent where it is needed, no zeros at the end.
pub(super) fn general_format(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 && value.is_sign_negative() {
            "-0".to_owned()
        } else {
            format!("{value}")
        };
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("an exponent is written");
    let exponent: i32 = exponent.parse().expect("an exponent is whole");
    let shorter = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).expect("at most nine");
        shorter(&format!("{value:.places$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", shorter(mantissa), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::general_format;

    #[test]
    fn writes_as_c_does() {
        for (value, text) in [
            (0.0, "0"),
            (61.0, "61"),
            (60.5, "60.5"),
            (1e15, "1e+15"),
            (-1.234_567_8e30, "-1.23457e+30"),
            (1.5e-7, "1.5e-07"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
        ] {
            assert_eq!(general_format(value), text);
        }
    }
}
