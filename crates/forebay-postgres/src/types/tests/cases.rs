//! What goes in, what the server then has, and what comes out.

use forebay_write::Value;

use super::text;

/// A value of a type.
pub(super) struct Case {
    pub(super) sent: Value,
    /// The server's own text of it, in UTC and its default settings.
    pub(super) stored: &'static str,
    pub(super) returned: Value,
}

/// The value comes back as it went.
fn same(sent: impl Into<Value>, stored: &'static str) -> Case {
    let sent = sent.into();
    Case {
        returned: sent.clone(),
        sent,
        stored,
    }
}

/// It comes back as the server's text of it.
fn as_stored(sent: impl Into<Value>, stored: &'static str) -> Case {
    other(sent, stored, stored)
}

fn other(sent: impl Into<Value>, stored: &'static str, returned: impl Into<Value>) -> Case {
    Case {
        sent: sent.into(),
        stored,
        returned: returned.into(),
    }
}

/// A text that comes back as itself.
fn itself(word: &'static str) -> Case {
    same(word, word)
}

const HUNDRED_DIGITS: &str =
    "-12345678901234567890123456789012345678901234567890.12345678901234567890123456789012345678901234567890";

/// Cases of every type that is read and written.
pub(super) fn all() -> Vec<(&'static str, Vec<Case>)> {
    let mut all = numbers();
    all.extend(words());
    all.extend(moments());
    all.extend(others());
    all
}

fn numbers() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        (
            "bool",
            vec![
                same(0, "false"),
                same(true, "true"),
                other("t", "true", 1),
                other("false", "false", 0),
                other("off", "false", 0),
            ],
        ),
        (
            "int2",
            vec![
                same(i16::MIN, "-32768"),
                same(i16::MAX, "32767"),
                other(-7.0, "-7", -7),
                other(" 12 ", "12", 12),
                other("+12", "12", 12),
            ],
        ),
        (
            "int4",
            vec![
                same(i32::MIN, "-2147483648"),
                same(i32::MAX, "2147483647"),
                other("007", "7", 7),
            ],
        ),
        (
            "int8",
            vec![
                same(i64::MIN, "-9223372036854775808"),
                same(i64::MAX, "9223372036854775807"),
                other(-9_223_372_036_854_775_808.0, "-9223372036854775808", i64::MIN),
                other(-0.0, "0", 0),
                other("-9223372036854775808", "-9223372036854775808", i64::MIN),
            ],
        ),
        (
            "oid",
            vec![same(0, "0"), same(u32::MAX, "4294967295"), other("12", "12", 12)],
        ),
        (
            "float4",
            vec![
                same(0.5, "0.5"),
                same(-0.0, "-0"),
                other(0.1, "0.1", 0.1_f32),
                same(f64::INFINITY, "Infinity"),
                other("-inf", "-Infinity", f64::NEG_INFINITY),
                other("3.4028235e38", "3.4028235e+38", f32::MAX),
                other(16_777_216, "1.6777216e+07", 16_777_216.0),
            ],
        ),
        (
            "float8",
            vec![
                same(0.1, "0.1"),
                same(-0.0, "-0"),
                same(5e-324, "5e-324"),
                same(f64::MAX, "1.7976931348623157e+308"),
                same(f64::NEG_INFINITY, "-Infinity"),
                other(1_i64 << 53, "9.007199254740992e+15", 9_007_199_254_740_992.0),
                other("1e22", "1e+22", 1e22),
                other("-0", "-0", -0.0),
            ],
        ),
        (
            "numeric",
            vec![
                itself(HUNDRED_DIGITS),
                itself("0"),
                itself("0.00"),
                itself("0.0001"),
                itself("10000.00001"),
                itself("NaN"),
                itself("Infinity"),
                itself("-Infinity"),
                other("-0.0", "0.0", "0.0"),
                other("1.50e3", "1500", "1500"),
                other("-1.5E-7", "-0.00000015", "-0.00000015"),
                other(".5", "0.5", "0.5"),
                other("5.", "5", "5"),
                other(" +05.10 ", "5.10", "5.10"),
                other(i64::MIN, "-9223372036854775808", "-9223372036854775808"),
                other(0, "0", "0"),
                other(10_000, "10000", "10000"),
                other(0.1, "0.1", "0.1"),
                other(-1e20, "-100000000000000000000", "-100000000000000000000"),
                other(f64::NAN, "NaN", "NaN"),
                other(f64::NEG_INFINITY, "-Infinity", "-Infinity"),
            ],
        ),
    ]
}

fn words() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        (
            "text",
            vec![
                itself(""),
                itself("ä€😀"),
                itself("a\"b\\c,{d} NULL\n'"),
                as_stored(i64::MIN, "-9223372036854775808"),
                as_stored(0.1, "0.1"),
                as_stored(1e15, "1e+15"),
                as_stored(123_456_789_012_345.0, "123456789012345"),
                as_stored(-1.5e-5, "-1.5e-05"),
                as_stored(0.00012, "0.00012"),
                as_stored(f64::NAN, "NaN"),
            ],
        ),
        ("varchar", vec![itself("ä€😀"), itself(""), as_stored(5, "5")]),
        // The server's own cast of it to text drops the blanks.
        (
            "bpchar",
            vec![itself("ab"), other("ab ", "ab", "ab "), as_stored(5, "5")],
        ),
        ("name", vec![itself("ä€😀"), as_stored(5, "5")]),
        ("\"char\"", vec![itself("a"), itself(""), as_stored(5, "5")]),
        (
            "json",
            vec![
                itself("{\"a\" : [1, null]}"),
                itself("null"),
                as_stored(-5, "-5"),
                as_stored(1e20, "1e+20"),
            ],
        ),
        (
            "jsonb",
            vec![
                itself("{\"a\": [1, null]}"),
                other(
                    "{\"b\":1,\"a\":\"\\u20ac\"}",
                    "{\"a\": \"€\", \"b\": 1}",
                    "{\"a\": \"€\", \"b\": 1}",
                ),
                as_stored(-5, "-5"),
                as_stored(0.1, "0.1"),
            ],
        ),
        (
            "bytea",
            vec![
                same(vec![0_u8, 1, 255], "\\x0001ff"),
                same(Vec::<u8>::new(), "\\x"),
                other("\\xDEAD", "\\xdead", vec![0xde_u8, 0xad]),
                other("a\\000", "\\x6100", vec![b'a', 0]),
            ],
        ),
        (
            "uuid",
            vec![
                itself("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
                as_stored(
                    "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
                    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                ),
                as_stored(
                    "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
                    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                ),
                as_stored(vec![0_u8; 16], "00000000-0000-0000-0000-000000000000"),
            ],
        ),
    ]
}

fn moments() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        (
            "date",
            vec![
                itself("2024-02-29"),
                itself("0001-01-01"),
                itself("9999-12-31"),
                itself("5874897-12-31"),
                itself("4713-01-01 BC"),
                itself("0001-12-31 BC"),
                itself("infinity"),
                itself("-infinity"),
                as_stored("29 February 2024", "2024-02-29"),
            ],
        ),
        (
            "time",
            vec![
                itself("00:00:00"),
                itself("12:34:56.000001"),
                itself("23:59:59.9"),
                itself("24:00:00"),
                as_stored("12:34", "12:34:00"),
                as_stored("12:34:56.1234567", "12:34:56.123457"),
            ],
        ),
        (
            "timetz",
            vec![
                itself("12:34:56.789+02"),
                itself("12:34:56-03:30"),
                itself("00:00:00+00"),
                itself("01:02:03+15:59:59"),
            ],
        ),
        (
            "timestamp",
            vec![
                itself("2024-02-29 12:34:56.789"),
                itself("2024-02-29 00:00:00"),
                itself("1969-12-31 23:59:59.999999"),
                itself("294276-12-31 23:59:59.999999"),
                itself("4713-01-01 00:00:00 BC"),
                itself("0044-03-15 12:00:00 BC"),
                itself("infinity"),
                itself("-infinity"),
                as_stored("2024-02-29", "2024-02-29 00:00:00"),
                as_stored("2024-02-29T12:34:56Z", "2024-02-29 12:34:56"),
                as_stored("2024-02-29T23:34:56.5+05:30", "2024-02-29 23:34:56.5"),
                as_stored("2024-12-31 23:59:60", "2025-01-01 00:00:00"),
            ],
        ),
        (
            "timestamptz",
            vec![
                same("2024-02-29T12:34:56.789Z", "2024-02-29 12:34:56.789+00"),
                same("1969-12-31T23:59:59.999999Z", "1969-12-31 23:59:59.999999+00"),
                same("294276-12-31T23:59:59.999999Z", "294276-12-31 23:59:59.999999+00"),
                same("4713-01-01T00:00:00Z BC", "4713-01-01 00:00:00+00 BC"),
                itself("infinity"),
                itself("-infinity"),
                other(
                    "2024-02-29 12:34:56+02",
                    "2024-02-29 10:34:56+00",
                    "2024-02-29T10:34:56Z",
                ),
                other(
                    "2024-02-29T23:34:56-0130",
                    "2024-03-01 01:04:56+00",
                    "2024-03-01T01:04:56Z",
                ),
                // The session's zone counts.
                other("2024-02-29 12:34:56", "2024-02-29 12:34:56+00", "2024-02-29T12:34:56Z"),
                other(
                    "0001-01-01T00:00:00+01:00",
                    "0001-12-31 23:00:00+00 BC",
                    "0001-12-31T23:00:00Z BC",
                ),
            ],
        ),
        (
            "interval",
            vec![
                itself("00:00:00"),
                itself("1 year 2 mons 3 days 04:05:06.7"),
                itself("-1 years -2 mons +3 days -04:05:06.07"),
                itself("-1 days +00:00:01"),
                itself("-00:00:00.000001"),
                itself("2 mons"),
                itself("1 day"),
                itself("-178000000 years"),
                as_stored("90 minutes", "01:30:00"),
                itself("9999999:00:00"),
            ],
        ),
    ]
}

fn others() -> Vec<(&'static str, Vec<Case>)> {
    let numbers = || Value::from(vec![Some(1), None, Some(3)]);
    let words = || Value::from(vec!["", "a,b", "q\"\\", "NULL", "{x}", " ä "]);
    let nested = || {
        [Value::from(vec![1, 2]), Value::from(vec![3, 4])]
            .into_iter()
            .collect::<Value>()
    };
    let none = || Value::Array(Vec::new());
    vec![
        (
            "inet",
            vec![
                itself("10.1.2.3"),
                itself("10.1.2.3/8"),
                itself("::1"),
                itself("::"),
                itself("2001:db8::1"),
                itself("2001:db8:0:1::/64"),
                itself("1:0:0:2::3"),
                itself("1:0:2:3:4:5:6:7"),
                itself("::ffff:1.2.3.4"),
                itself("::1.2.3.4"),
                as_stored("::2", "::2"),
                as_stored("::1:0", "::0.1.0.0"),
                as_stored("::ffff:0:0", "::ffff:0.0.0.0"),
                itself("1::"),
                itself("0:1::2"),
                itself("::2:0:0:1"),
            ],
        ),
        (
            "cidr",
            vec![itself("10.0.0.0/8"), itself("10.1.2.3/32"), itself("2001:db8::/32")],
        ),
        ("macaddr", vec![itself("08:00:2b:01:02:ff")]),
        ("macaddr8", vec![itself("08:00:2b:01:02:03:04:ff")]),
        (
            "varbit",
            vec![itself(""), itself("1"), itself("101100111"), itself("00000000")],
        ),
        ("pg_lsn", vec![itself("16/B374D848"), itself("0/0")]),
        ("xid", vec![same(7, "7"), other("7", "7", 7)]),
        (
            "int4[]",
            vec![
                same(numbers(), "{1,NULL,3}"),
                same(nested(), "{{1,2},{3,4}}"),
                same(none(), "{}"),
                other(Value::Array(vec![none(), none()]), "{}", none()),
                other("{1,NULL,3}", "{1,NULL,3}", numbers()),
                other(Value::from(vec!["1", " 2"]), "{1,2}", Value::from(vec![1, 2])),
                other(
                    [Value::from(7.0), text(" 8"), Value::Null]
                        .into_iter()
                        .collect::<Value>(),
                    "{7,8,NULL}",
                    Value::from(vec![Some(7), Some(8), None]),
                ),
            ],
        ),
        (
            "text[]",
            vec![
                same(words(), "{\"\",\"a,b\",\"q\\\"\\\\\",\"NULL\",\"{x}\",\" ä \"}"),
                other(Value::from(vec![1, 2]), "{1,2}", Value::from(vec!["1", "2"])),
            ],
        ),
        (
            "name[]",
            vec![same(words(), "{\"\",\"a,b\",\"q\\\"\\\\\",\"NULL\",\"{x}\",\" ä \"}")],
        ),
        (
            "bytea[]",
            vec![
                same(Value::from(vec![vec![0_u8, 255]]), "{\"\\\\x00ff\"}"),
                other(
                    [Value::from(vec![1_u8]), text("\\x02")].into_iter().collect::<Value>(),
                    "{\"\\\\x01\",\"\\\\x02\"}",
                    Value::from(vec![vec![1_u8], vec![2]]),
                ),
            ],
        ),
        (
            "timestamptz[]",
            vec![
                same(
                    Value::from(vec!["2024-02-29T12:34:56Z"]),
                    "{\"2024-02-29 12:34:56+00\"}",
                ),
                other(
                    Value::from(vec!["2024-02-29T12:34:56Z", "epoch"]),
                    "{\"2024-02-29 12:34:56+00\",\"1970-01-01 00:00:00+00\"}",
                    Value::from(vec!["2024-02-29T12:34:56Z", "1970-01-01T00:00:00Z"]),
                ),
            ],
        ),
        (
            "float4[]",
            vec![other(
                [Value::from(0.1), text("inf")].into_iter().collect::<Value>(),
                "{0.1,Infinity}",
                Value::from(vec![0.1_f32, f32::INFINITY]),
            )],
        ),
        (
            "int8[]",
            vec![other(
                [Value::from(1e15), text(" 2")].into_iter().collect::<Value>(),
                "{1000000000000000,2}",
                Value::from(vec![1_000_000_000_000_000_i64, 2]),
            )],
        ),
        (
            "uuid[]",
            vec![other(
                [Value::from(vec![0_u8; 16]), text("{a0eebc999c0b4ef8bb6d6bb9bd380a11}")]
                    .into_iter()
                    .collect::<Value>(),
                "{00000000-0000-0000-0000-000000000000,a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
                Value::from(vec![
                    "00000000-0000-0000-0000-000000000000",
                    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
                ]),
            )],
        ),
        (
            "interval[]",
            vec![same(Value::from(vec!["1 day", "-00:00:01"]), "{\"1 day\",-00:00:01}")],
        ),
        ("inet[]", vec![same(Value::from(vec!["10.0.0.1"]), "{10.0.0.1}")]),
        (
            "numeric[]",
            vec![other(Value::from(vec![1, 2]), "{1,2}", Value::from(vec!["1", "2"]))],
        ),
        (
            "jsonb[]",
            vec![same(Value::from(vec!["{\"a\": 1}"]), "{\"{\\\"a\\\": 1}\"}")],
        ),
    ]
}
