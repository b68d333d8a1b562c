//! How a figure is written for people: in the table, in the report, and where a goal is judged.

/// Three digits that matter, thousands apart.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 {
        return grouped(value);
    }
    let decimals = match size {
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", &*digits), |rest| ("-", rest));
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_show_three_digits_and_group_thousands() {
        for (value, text) in [
            (1_234_567.4, "1,234,567"),
            (999.6, "1,000"),
            (123.4, "123"),
            (12.34, "12.3"),
            (1.234, "1.23"),
            (0.6123, "0.612"),
            (0.00345, "0.0034"),
            (-1234.0, "-1,234"),
            (0.0, "0.0000"),
        ] {
            assert_eq!(figure(value), text);
        }
    }
}
