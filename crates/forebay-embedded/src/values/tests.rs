//! Values both ways: what PostgreSQL makes of them, exact bytes for each type, against the client library's own encoding as an oracle,
//! and round trips.

mod arrays;
mod recorded;

use forebay_pg_values::temporal::parse_zone;
use proptest::prelude::*;

use super::*;

fn utc() -> Environment {
    in_zone("UTC")
}

fn in_zone(zone: &str) -> Environment {
    Environment::new(parse_zone(zone).unwrap(), 1_700_000_000_000_000)
}

fn decode_text_form(kind: &Type, text: &str) -> Result<Value, WireError> {
    decode_parameter(kind, 0, Some(text.as_bytes()), &utc())
}

fn decode_binary_form(kind: &Type, bytes: &[u8]) -> Result<Value, WireError> {
    decode_parameter(kind, 1, Some(bytes), &utc())
}

fn stored(value: &Value) -> ValueRef<'_> {
    match value {
        Value::Null => ValueRef::Null,
        Value::Integer(integer) => ValueRef::Integer(*integer),
        Value::Real(real) => ValueRef::Real(*real),
        Value::Text(text) => ValueRef::Text(text.as_bytes()),
        Value::Blob(bytes) => ValueRef::Blob(bytes),
        Value::Array(_) | Value::Unsigned(_) | Value::Timestamp(_) => unreachable!("SQLite stores no such value"),
    }
}

fn encode(kind: &Type, format: i16, value: &Value) -> Result<Vec<u8>, WireError> {
    encode_in(&utc(), kind, format, value)
}

fn encode_in(environment: &Environment, kind: &Type, format: i16, value: &Value) -> Result<Vec<u8>, WireError> {
    let mut out = BytesMut::from(&b"before"[..]);
    let result = encode_column(kind, format, stored(value), environment, &mut out);
    assert_eq!(&out[..6], b"before");
    match result {
        Ok(()) => {
            let length = i32::from_be_bytes(out[6..10].try_into().unwrap());
            assert_eq!(length as usize, out.len() - 10);
            Ok(out[10..].to_vec())
        }
        Err(error) => {
            assert_eq!(out.len(), 6, "an error leaves the buffer as it was");
            Err(error)
        }
    }
}

fn text_of(kind: &Type, value: impl Into<Value>) -> String {
    String::from_utf8(encode(kind, 0, &value.into()).unwrap()).unwrap()
}

fn state<T: std::fmt::Debug>(result: Result<T, WireError>) -> &'static str {
    result.expect_err("an error").sqlstate
}

/// A text parameter, what is stored, its text output and its binary form; both inputs give the stored value.
fn check(kind: &Type, input: &str, value: impl Into<Value>, output: &str, binary: &[u8]) {
    let value = value.into();
    assert_eq!(
        decode_text_form(kind, input).unwrap(),
        value,
        "{kind} {input} from text"
    );
    assert_eq!(
        decode_binary_form(kind, binary).unwrap(),
        value,
        "{kind} {input} from binary"
    );
    assert_eq!(
        encode(kind, 0, &value).unwrap(),
        output.as_bytes(),
        "{kind} {input} to text"
    );
    assert_eq!(encode(kind, 1, &value).unwrap(), binary, "{kind} {input} to binary");
}

#[test]
fn each_type_has_its_exact_bytes() {
    check(&Type::BOOL, "yes", 1, "t", &[1]);
    check(&Type::BOOL, " OFF ", 0, "f", &[0]);
    check(&Type::INT2, "-2", -2, "-2", &[0xff, 0xfe]);
    check(&Type::INT4, " 70000", 70000, "70000", &[0, 1, 0x11, 0x70]);
    check(
        &Type::INT8,
        "-9223372036854775808",
        i64::MIN,
        "-9223372036854775808",
        &[0x80, 0, 0, 0, 0, 0, 0, 0],
    );
    check(&Type::OID, "4294967295", u32::MAX, "4294967295", &[255; 4]);
    check(&Type::FLOAT4, "1.5", 1.5, "1.5", &1.5_f32.to_be_bytes());
    check(&Type::FLOAT4, "0.1", 0.1_f32, "0.1", &0.1_f32.to_be_bytes());
    check(&Type::FLOAT8, "0.1", 0.1, "0.1", &0.1_f64.to_be_bytes());
    check(
        &Type::FLOAT8,
        "-inf",
        f64::NEG_INFINITY,
        "-Infinity",
        &f64::NEG_INFINITY.to_be_bytes(),
    );
    check(&Type::TEXT, " ü ", " ü ", " ü ", " ü ".as_bytes());
    check(&Type::VARCHAR, "", "", "", b"");
    check(&Type::BPCHAR, "a  ", "a  ", "a  ", b"a  ");
    check(&Type::NAME, "n", "n", "n", b"n");
    check(&Type::UNKNOWN, "1", "1", "1", b"1");
    check(&Type::CHAR, "r", "r", "r", b"r");
    check(&Type::CHAR, "", "", "", &[0]);
    check(
        &Type::BYTEA,
        "\\x00fF 10",
        vec![0u8, 255, 16],
        "\\x00ff10",
        &[0, 255, 16],
    );
    check(&Type::BYTEA, "a\\\\\\001", b"a\\\x01".to_vec(), "\\x615c01", b"a\\\x01");
    check(
        &Type::NUMERIC,
        "12345.5",
        "12345.5",
        "12345.5",
        &[0, 3, 0, 1, 0, 0, 0, 1, 0, 1, 0x09, 0x29, 0x13, 0x88],
    );
    check(
        &Type::NUMERIC,
        "-100",
        "-100",
        "-100",
        &[0, 1, 0, 0, 0x40, 0, 0, 0, 0, 100],
    );
    check(&Type::NUMERIC, "0", "0", "0", &[0, 0, 0, 0, 0, 0, 0, 0]);
    check(
        &Type::NUMERIC,
        "1e-3",
        "0.001",
        "0.001",
        &[0, 1, 0xff, 0xff, 0, 0, 0, 3, 0, 10],
    );
    check(
        &Type::DATE,
        "2024-02-29",
        "2024-02-29",
        "2024-02-29",
        &8825_i32.to_be_bytes(),
    );
    check(
        &Type::DATE,
        "0001-01-01",
        "0001-01-01",
        "0001-01-01",
        &(-730_119_i32).to_be_bytes(),
    );
    check(
        &Type::DATE,
        "9999-12-31",
        "9999-12-31",
        "9999-12-31",
        &2_921_939_i32.to_be_bytes(),
    );
    check(
        &Type::TIME,
        "10:01",
        "10:01:00",
        "10:01:00",
        &36_060_000_000_i64.to_be_bytes(),
    );
    check(
        &Type::TIME,
        "23:59:59.999990",
        "23:59:59.99999",
        "23:59:59.99999",
        &86_399_999_990_i64.to_be_bytes(),
    );
    let half_past = "1999-12-31 23:59:59.5";
    check(
        &Type::TIMESTAMP,
        "1999-12-31T23:59:59.500",
        half_past,
        half_past,
        &(-500_000_i64).to_be_bytes(),
    );
    check(
        &Type::TIMESTAMPTZ,
        "2000-01-01 01:59:59.5+02:00",
        half_past,
        &format!("{half_past}+00"),
        &(-500_000_i64).to_be_bytes(),
    );
    check(&Type::JSON, "{\"a\": 1}", "{\"a\": 1}", "{\"a\": 1}", b"{\"a\": 1}");
    check(&Type::JSONB, "[1]", "[1]", "[1]", b"\x01[1]");
    let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
    let bytes: [u8; 16] = *Uuid::parse_str(uuid).unwrap().as_bytes();
    check(
        &Type::UUID,
        "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}",
        uuid,
        uuid,
        &bytes,
    );
}

#[test]
fn null_is_null_of_every_type() {
    for kind in [Type::INT4, Type::TEXT, Type::TEXT_ARRAY, Type::INTERVAL] {
        for format in [0, 1] {
            assert_eq!(decode_parameter(&kind, format, None, &utc()).unwrap(), Value::Null);
            let mut out = BytesMut::new();
            encode_column(&kind, format, ValueRef::Null, &utc(), &mut out).unwrap();
            assert_eq!(&out[..], [255; 4]);
        }
    }
}

#[test]
fn text_that_is_no_value_is_refused_with_its_sqlstate() {
    let cases = [
        (Type::INT4, "", "22P02"),
        (Type::INT4, "1.0", "22P02"),
        (Type::INT4, "0x10", "22P02"),
        (Type::INT4, "2147483648", "22003"),
        (Type::INT2, "-32769", "22003"),
        (Type::INT8, "9223372036854775808", "22003"),
        (Type::OID, "4294967296", "22003"),
        (Type::BOOL, "o", "22P02"),
        (Type::BOOL, "", "22P02"),
        (Type::FLOAT8, "1e400", "22003"),
        (Type::FLOAT8, "1e-400", "22003"),
        (Type::FLOAT8, "NaN", "0A000"),
        (Type::FLOAT8, "one", "22P02"),
        (Type::FLOAT4, "1e39", "22003"),
        (Type::NUMERIC, "1.2.3", "22P02"),
        (Type::NUMERIC, "1e", "22P02"),
        (Type::NUMERIC, ".", "22P02"),
        (Type::NUMERIC, "1e200000", "22003"),
        (Type::NUMERIC, "1e99999999999999999999", "22003"),
        (Type::NUMERIC, "1e-16384", "22003"),
        (Type::BYTEA, "\\x0", "22023"),
        (Type::BYTEA, "\\x0g", "22023"),
        (Type::BYTEA, "\\400", "22P02"),
        (Type::DATE, "2024-02-30", "22008"),
        (Type::DATE, "0044-03-15 BC", "0A000"),
        (Type::DATE, "10000-01-01", "0A000"),
        (Type::DATE, "31.1.2024", "22008"),
        (Type::DATE, "soon", "22007"),
        (Type::TIME, "24:00:01", "22008"),
        (Type::TIME, "10", "22007"),
        (Type::TIMESTAMP, "2024-02-30", "22008"),
        (Type::TIMESTAMPTZ, "0001-01-01 00:00:00+01", "0A000"),
        (Type::TIMESTAMPTZ, "9999-12-31 23:59:59.9999999", "0A000"),
        (Type::INTERVAL, "soon", "22007"),
        (Type::JSON, "{a:1}", "22P02"),
        (Type::JSONB, "", "22P02"),
        (Type::UUID, "a0eebc99", "22P02"),
        (Type::CHAR, "é", "0A000"),
        (Type::INT4_ARRAY, "{1", "22P02"),
    ];
    for (kind, text, sqlstate) in cases {
        assert_eq!(state(decode_text_form(&kind, text)), sqlstate, "{kind} {text}");
    }
}

#[test]
fn binary_of_the_wrong_shape_is_refused() {
    for kind in [
        Type::BOOL,
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::OID,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::DATE,
        Type::TIME,
    ] {
        for length in [0, 3, 9, 17] {
            assert_eq!(
                state(decode_binary_form(&kind, &vec![0; length])),
                "22P03",
                "{kind} {length}"
            );
        }
    }
    for (kind, bytes, sqlstate) in [
        (Type::TIMESTAMP, &[0; 7][..], "22P03"),
        (Type::UUID, &[0; 15], "22P03"),
        (Type::JSONB, b"\x02{}", "XX000"),
        (Type::JSONB, b"", "22P03"),
        (Type::JSONB, b"\x01{", "22P02"),
        (Type::CHAR, b"\xff", "0A000"),
        (Type::NUMERIC, &[0, 1, 0, 0, 0, 0, 0, 0], "22P03"),
        (Type::NUMERIC, &[0, 0, 0, 0, 0x12, 0, 0, 0], "22P03"),
        (Type::NUMERIC, &[0, 1, 0, 0, 0, 0, 0, 0, 0x27, 0x10], "22P03"),
        (Type::NUMERIC, &[0, 0, 0, 0, 0, 0, 0x40, 0], "22P03"),
        (Type::FLOAT8, &f64::NAN.to_be_bytes(), "0A000"),
        (Type::DATE, &2_921_940_i32.to_be_bytes(), "0A000"),
        (Type::DATE, &(-730_120_i32).to_be_bytes(), "0A000"),
        (Type::DATE, &(i32::MAX - 1).to_be_bytes(), "22008"),
        (Type::TIMESTAMPTZ, &(-63_082_281_600_000_001_i64).to_be_bytes(), "0A000"),
        (Type::TIMESTAMP, &(i64::MAX - 1).to_be_bytes(), "22008"),
        (Type::TIMESTAMP, &(i64::MIN + 1).to_be_bytes(), "22008"),
        (Type::TIME, &86_400_000_001_i64.to_be_bytes(), "22008"),
        (Type::TIMETZ, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xe1, 0], "22009"),
        (Type::TIME, &(-1_i64).to_be_bytes(), "22008"),
        (Type::TEXT, b"a\0b", "22021"),
        (Type::TEXT, b"\xff", "22021"),
        (Type::INTERVAL, &[0; 15], "22P03"),
        (Type::INT4_ARRAY, &[0; 12], "42804"),
        (Type::POINT, &[0; 16], "0A000"),
        (Type::NAME, &[b'x'; 64], "42622"),
    ] {
        assert_eq!(state(decode_binary_form(&kind, bytes)), sqlstate, "{kind} {bytes:?}");
    }
    let error = decode_binary_form(&Type::POINT, &[0; 16]).unwrap_err();
    assert!(error.message.contains("600"), "the OID is named: {}", error.message);
}

#[test]
fn text_parameters_must_be_utf8_without_nul_and_formats_known() {
    assert_eq!(state(decode_parameter(&Type::TEXT, 0, Some(b"a\0b"), &utc())), "22021");
    assert_eq!(state(decode_parameter(&Type::INT4, 0, Some(b"\xff"), &utc())), "22021");
    assert_eq!(state(decode_parameter(&Type::INT4, 2, Some(b"1"), &utc())), "22023");
    assert_eq!(state(encode(&Type::INT4, 2, &Value::Integer(1))), "22023");
}

#[test]
fn types_not_known_pass_as_text() {
    assert_eq!(decode_text_form(&Type::POINT, "(1,2)").unwrap(), Value::from("(1,2)"));
    assert_eq!(text_of(&Type::POINT, "(1,2)"), "(1,2)");
    assert_eq!(text_of(&Type::INT2_VECTOR, "1 2"), "1 2");
    assert_eq!(state(encode(&Type::POINT, 1, &Value::from("(1,2)"))), "0A000");
    assert_eq!(text_of(&Type::REGPROC, "boolin"), "boolin");
    assert_eq!(encode(&Type::REGPROC, 1, &Value::from(7)).unwrap(), [0, 0, 0, 7]);
    assert_eq!(encode(&Type::VOID, 1, &Value::from("")).unwrap(), b"");
}

/// Bytes as PostgreSQL's int2vectorsend and oidvectorsend give them.
#[test]
fn vectors_are_arrays_whose_first_subscript_is_zero() {
    let binary = |kind: &Type, text: &str| encode(kind, 1, &Value::from(text)).unwrap();
    let two = [
        0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 2, 0, 2,
    ];
    assert_eq!(binary(&Type::INT2_VECTOR, "1 2"), two);
    assert_eq!(
        binary(&Type::INT2_VECTOR, ""),
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    let one = [
        0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 26, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 23,
    ];
    assert_eq!(binary(&Type::OID_VECTOR, "23"), one);
}

#[test]
fn a_numeric_is_stored_exactly() {
    let stored = |text| decode_text_form(&Type::NUMERIC, text).unwrap();
    for (text, written) in [
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775808.000", "-9223372036854775808.000"),
        ("1e18", "1000000000000000000"),
        ("-0.0", "0.0"),
        ("0.12345678901234567890", "0.12345678901234567890"),
        ("000.500", "0.500"),
        ("nan", "NaN"),
        ("-inf", "-Infinity"),
    ] {
        assert_eq!(stored(text), Value::from(written));
    }
}

/// What PostgreSQL's `numeric_recv` makes of bytes that no PostgreSQL sends.
#[test]
fn unusual_binary_numerics_are_read_as_postgresql_reads_them() {
    for (bytes, text) in [
        // Digits behind the scale are cut off.
        (&[0, 2, 0, 0, 0, 0, 0, 1, 0, 1, 0x27, 0x0f][..], "1.9"),
        (&[0, 1, 0xff, 0xff, 0x40, 0, 0, 0, 0x13, 0x88], "0"),
        // Groups of zeros at both ends.
        (&[0, 3, 0, 1, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0], "7.00"),
        // Groups that are left out.
        (&[0, 1, 0, 2, 0, 0, 0, 0, 0, 5], "500000000"),
        (&[0, 0, 0, 0, 0x40, 0, 0, 3], "0.000"),
        (&[0, 0, 0, 0, 0xf0, 0, 0, 0], "-Infinity"),
    ] {
        assert_eq!(
            decode_binary_form(&Type::NUMERIC, bytes).unwrap(),
            Value::from(text),
            "{bytes:?}"
        );
    }
}

#[test]
fn a_stored_value_that_does_not_fit_is_an_error_never_a_wrong_value() {
    let blob = Value::Blob(vec![0xff]);
    for (kind, value) in [
        (Type::INT8, Value::from("abc")),
        (Type::INT8, Value::from("1.5")),
        (Type::INT8, Value::from(1.5)),
        (Type::INT8, Value::from(9_223_372_036_854_775_808.0)),
        (Type::INT8, Value::from(f64::INFINITY)),
        (Type::INT8, blob.clone()),
        (Type::BOOL, Value::from(2)),
        (Type::BOOL, Value::from("yes")),
        (Type::FLOAT8, Value::from(9_007_199_254_740_993_i64)),
        (Type::FLOAT8, Value::from("1,5")),
        (Type::FLOAT8, blob.clone()),
        (Type::NUMERIC, Value::from("abc")),
        (Type::NUMERIC, blob.clone()),
        (Type::TEXT, blob.clone()),
        (Type::BYTEA, Value::from(1)),
        (Type::DATE, Value::from(1_700_000_000)),
        (Type::DATE, Value::from("2024-01-31 10:00:00")),
        (Type::TIME, Value::from("10:00+02")),
        (Type::TIME, Value::from("99:00:00")),
        (Type::TIMETZ, Value::from("10:00")),
        (Type::TIMETZ, Value::from("99:00:00+00")),
        (Type::TIMESTAMP, Value::from("2024-01-31 24:61:00")),
        (Type::TIMESTAMP, Value::from("0000-01-31 10:00:00")),
        (Type::DATE, Value::from("0000-01-31")),
        (Type::DATE, Value::from("today")),
        (Type::INTERVAL, Value::from("soon")),
        (Type::INTERVAL, Value::from(1)),
        (Type::TIMESTAMP, Value::from(2_460_000.5)),
        (Type::TIMESTAMPTZ, Value::from("yesterday")),
        (Type::JSON, Value::from("{")),
        (Type::JSON, Value::from(f64::INFINITY)),
        (Type::JSONB, blob.clone()),
        (Type::UUID, Value::from("abc")),
        (Type::UUID, blob.clone()),
    ] {
        for format in [0, 1] {
            let error = encode(&kind, format, &value).expect_err("a misfit");
            assert_eq!(error.sqlstate, "22P02", "{kind} {value:?}");
            assert!(
                error.message.contains("does not fit its declared type"),
                "{}",
                error.message
            );
            assert!(error.hint.is_some());
        }
    }
    assert_eq!(state(encode(&Type::INT4, 1, &Value::from(2_147_483_648_i64))), "22003");
    assert_eq!(state(encode(&Type::INT2, 0, &Value::from("32768"))), "22003");
    assert_eq!(state(encode(&Type::FLOAT4, 0, &Value::from(1e300))), "22003");
    assert_eq!(state(encode(&Type::FLOAT4, 0, &Value::from(1e-300))), "22003");
    assert_eq!(state(encode(&Type::CHAR, 1, &Value::from("ab"))), "22P02");
    assert_eq!(state(encode(&Type::TEXT, 0, &Value::from("a\0b"))), "22021");
    let mut out = BytesMut::new();
    assert_eq!(
        state(encode_column(&Type::TEXT, 0, ValueRef::Text(b"\xff"), &utc(), &mut out)),
        "22021"
    );
}

#[test]
fn a_stored_value_of_another_class_is_sent_when_it_is_exact() {
    assert_eq!(text_of(&Type::INT8, " 42 "), "42");
    assert_eq!(text_of(&Type::INT4, 42.0), "42");
    assert_eq!(
        text_of(&Type::INT8, -9_223_372_036_854_775_808.0),
        "-9223372036854775808"
    );
    assert_eq!(text_of(&Type::FLOAT8, 3), "3");
    assert_eq!(text_of(&Type::FLOAT8, "2.5"), "2.5");
    assert_eq!(text_of(&Type::BOOL, "False"), "f");
    assert_eq!(text_of(&Type::NUMERIC, "1.50"), "1.50");
    assert_eq!(text_of(&Type::NUMERIC, "1.5e3"), "1500");
    assert_eq!(text_of(&Type::NUMERIC, 1e30), "1000000000000000000000000000000");
    assert_eq!(text_of(&Type::NUMERIC, 1e-7), "0.0000001");
    assert_eq!(text_of(&Type::NUMERIC, 12), "12");
    assert_eq!(text_of(&Type::NUMERIC, 0.1), "0.1");
    assert_eq!(text_of(&Type::NUMERIC, "007.10"), "7.10");
    assert_eq!(text_of(&Type::JSONB, "{\"a\":1}"), "{\"a\": 1}");
    assert_eq!(text_of(&Type::JSONB, 1e20), "100000000000000000000");
    assert_eq!(text_of(&Type::INTERVAL, "90 minutes"), "01:30:00");
    assert_eq!(text_of(&Type::TIME, "10:00"), "10:00:00");
    assert_eq!(text_of(&Type::TIME, "10:00:00.500"), "10:00:00.5");
    assert_eq!(text_of(&Type::TEXT, 42), "42");
    assert_eq!(text_of(&Type::TEXT, b"blob".to_vec()), "blob");
    assert_eq!(text_of(&Type::BYTEA, "text"), "\\x74657874");
    assert_eq!(text_of(&Type::JSON, 1), "1");
    assert_eq!(
        text_of(&Type::UUID, vec![0u8; 16]),
        "00000000-0000-0000-0000-000000000000"
    );
    assert_eq!(text_of(&Type::DATE, "2024-01-31 00:00:00"), "2024-01-31");
    assert_eq!(text_of(&Type::TIMESTAMP, "2024-01-31"), "2024-01-31 00:00:00");
    assert_eq!(text_of(&Type::TIMESTAMP, "2024-01-31 10:00"), "2024-01-31 10:00:00");
    assert_eq!(
        text_of(&Type::TIMESTAMP, "2024-01-31T10:00:00.120Z"),
        "2024-01-31 10:00:00.12"
    );
    assert_eq!(
        text_of(&Type::TIMESTAMP, "2024-01-31 10:00:00+02:00"),
        "2024-01-31 08:00:00"
    );
    assert_eq!(
        text_of(&Type::TIMESTAMPTZ, "2024-01-31 10:00:00-0230"),
        "2024-01-31 12:30:00+00"
    );
    assert_eq!(
        text_of(&Type::TIMESTAMPTZ, "2024-01-31 10:00:00 UTC"),
        "2024-01-31 10:00:00+00"
    );
}

#[test]
fn a_timestamp_parameter_drops_an_offset_and_a_timestamptz_heeds_it() {
    let text = "2024-01-31 10:00:00+02";
    assert_eq!(
        decode_text_form(&Type::TIMESTAMP, text).unwrap(),
        Value::from("2024-01-31 10:00:00")
    );
    assert_eq!(
        decode_text_form(&Type::TIMESTAMPTZ, text).unwrap(),
        Value::from("2024-01-31 08:00:00")
    );
    assert_eq!(
        decode_text_form(&Type::TIME, "10:00:00+02").unwrap(),
        Value::from("10:00:00")
    );
}

#[test]
fn floats_look_as_postgresql_prints_them() {
    for (number, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (100.0, "100"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (123_456_789.0, "123456789"),
        (1e14, "100000000000000"),
        (1e15, "1e+15"),
        (1.234_567_890_123_456_8e17, "1.2345678901234568e+17"),
        (1e20, "1e+20"),
        (1e100, "1e+100"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (5e-324, "5e-324"),
        (0.1 + 0.2, "0.30000000000000004"),
    ] {
        assert_eq!(text_of(&Type::FLOAT8, number), text);
    }
    for (number, text) in [
        (100_000.0_f32, "100000"),
        (1e6, "1e+06"),
        (1_234_567.0, "1.234567e+06"),
        (0.3, "0.3"),
    ] {
        assert_eq!(text_of(&Type::FLOAT4, number), text);
    }
}

#[test]
fn reals_in_a_text_column_look_as_sqlite_prints_them() {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    for number in [
        0.0,
        1.0,
        -1.5,
        0.1,
        1e14,
        1e15,
        1e16,
        1e17,
        1e20,
        1e-4,
        1e-5,
        123.456,
        1e100,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        let printed: String = database
            .query_row("SELECT CAST(?1 AS TEXT)", [number], |row| row.get(0))
            .unwrap();
        assert_eq!(text_of(&Type::TEXT, number), printed);
    }
}

#[test]
fn error_messages_quote_only_the_start_of_a_huge_value() {
    let error = decode_text_form(&Type::INT4, &"é".repeat(1 << 20)).unwrap_err();
    assert!(error.message.len() < 500);
    let error = encode(&Type::INT4, 0, &Value::from("é".repeat(1 << 20))).unwrap_err();
    assert!(error.message.len() < 1000);
}

/// What the client library sends for `value`.
fn client_bytes<T: postgres_types::ToSql>(value: &T, kind: &Type) -> Vec<u8> {
    let mut out = BytesMut::new();
    value.to_sql(kind, &mut out).unwrap();
    out.to_vec()
}

/// Sent by the client library, stored, sent back and read by the client library: the same value; and the text format agrees.
fn round_trip<T: postgres_types::ToSql + postgres_types::FromSqlOwned + PartialEq + std::fmt::Debug>(
    value: &T,
    kind: &Type,
) {
    let sent = client_bytes(value, kind);
    let stored_value = decode_binary_form(kind, &sent).unwrap();
    let back = encode(kind, 1, &stored_value).unwrap();
    assert_eq!(&T::from_sql(kind, &back).unwrap(), value, "{kind}");
    let text = encode(kind, 0, &stored_value).unwrap();
    assert_eq!(
        decode_parameter(kind, 0, Some(&text), &utc()).unwrap(),
        stored_value,
        "{kind} through text"
    );
}

proptest! {
    #[test]
    fn what_a_client_sends_it_gets_back(
        integer in any::<i64>(), real in any::<f64>().prop_filter("NaN is refused", |real| !real.is_nan()),
        text in "[^\0]{0,40}", bytes in prop::collection::vec(any::<u8>(), 0..40), flag in any::<bool>(),
    ) {
        round_trip(&flag, &Type::BOOL);
        round_trip(&(integer as i16), &Type::INT2);
        round_trip(&(integer as i32), &Type::INT4);
        round_trip(&integer, &Type::INT8);
        round_trip(&(integer as u32), &Type::OID);
        round_trip(&real, &Type::FLOAT8);
        round_trip(&(real as f32), &Type::FLOAT4);
        round_trip(&text, &Type::TEXT);
        round_trip(&text, &Type::VARCHAR);
        round_trip(&bytes, &Type::BYTEA);
    }

    #[test]
    fn dates_and_times_come_back(micros in -730_119 * 86_400_000_000_i64..2_921_940 * 86_400_000_000_i64) {
        for kind in [Type::TIMESTAMP, Type::TIMESTAMPTZ] {
            let value = decode_binary_form(&kind, &micros.to_be_bytes()).unwrap();
            prop_assert_eq!(encode(&kind, 1, &value).unwrap(), micros.to_be_bytes());
            let text = encode(&kind, 0, &value).unwrap();
            prop_assert_eq!(decode_parameter(&kind, 0, Some(&text), &utc()).unwrap(), value.clone());
            // An independent reader of the same text.
            let Value::Text(text) = &value else { panic!("{value:?}") };
            let civil: jiff::civil::DateTime = text.parse().unwrap();
            let since = civil.duration_since(jiff::civil::date(2000, 1, 1).at(0, 0, 0, 0));
            prop_assert_eq!(since.as_micros(), i128::from(micros));
        }
        let days = micros.div_euclid(86_400_000_000) as i32;
        let value = decode_binary_form(&Type::DATE, &days.to_be_bytes()).unwrap();
        prop_assert_eq!(encode(&Type::DATE, 1, &value).unwrap(), days.to_be_bytes());
        let time = micros.rem_euclid(86_400_000_000);
        let value = decode_binary_form(&Type::TIME, &time.to_be_bytes()).unwrap();
        prop_assert_eq!(encode(&Type::TIME, 1, &value).unwrap(), time.to_be_bytes());
    }

    /// numeric's binary format against an independent decimal implementation.
    #[test]
    fn numerics_agree_with_the_decimal_library(mantissa in any::<i64>(), scale in 0_u32..28) {
        let decimal = rust_decimal::Decimal::new(mantissa, scale);
        let from_text = decode_text_form(&Type::NUMERIC, &decimal.to_string()).unwrap();
        prop_assert_eq!(&from_text, &Value::from(decimal.to_string()));
        let from_binary = decode_binary_form(&Type::NUMERIC, &client_bytes(&decimal, &Type::NUMERIC)).unwrap();
        prop_assert_eq!(&from_binary, &from_text);
        let back = encode(&Type::NUMERIC, 1, &from_text).unwrap();
        let read: rust_decimal::Decimal = postgres_types::FromSql::from_sql(&Type::NUMERIC, &back).unwrap();
        prop_assert_eq!(read, decimal);
        prop_assert_eq!(decode_binary_form(&Type::NUMERIC, &back).unwrap(), from_text);
    }

    #[test]
    fn every_interval_comes_back(micros in any::<i64>(), days in any::<i32>(), months in any::<i32>()) {
        let mut bytes = micros.to_be_bytes().to_vec();
        bytes.extend(days.to_be_bytes());
        bytes.extend(months.to_be_bytes());
        let value = decode_binary_form(&Type::INTERVAL, &bytes).unwrap();
        prop_assert_eq!(encode(&Type::INTERVAL, 1, &value).unwrap(), bytes);
    }

    /// Any text and any bytes, for any type and in either format: a value or an error.
    #[test]
    fn garbage_is_harmless(bytes in prop::collection::vec(any::<u8>(), 0..40), text in "[-+0-9eE.:TZ infaBC]{0,24}", number in any::<i64>(), real in any::<f64>()) {
        for kind in ALL {
            for format in [0, 1] {
                let _ = decode_parameter(&kind, format, Some(&bytes), &utc());
                let _ = decode_parameter(&kind, format, Some(text.as_bytes()), &utc());
                for value in [Value::Integer(number), Value::Real(real), Value::Text(text.clone()), Value::Blob(bytes.clone())] {
                    let _ = encode(&kind, format, &value);
                }
            }
        }
    }
}

const ALL: [Type; 30] = [
    Type::BOOL,
    Type::BYTEA,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::OID,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::TEXT,
    Type::VARCHAR,
    Type::BPCHAR,
    Type::NAME,
    Type::UNKNOWN,
    Type::CHAR,
    Type::NUMERIC,
    Type::DATE,
    Type::TIME,
    Type::TIMESTAMP,
    Type::TIMESTAMPTZ,
    Type::JSON,
    Type::JSONB,
    Type::UUID,
    Type::REGCLASS,
    Type::TEXT_ARRAY,
    Type::INTERVAL,
    Type::TIMETZ,
    Type::INT4_ARRAY,
    Type::FLOAT8_ARRAY,
    Type::JSONB_ARRAY,
    Type::POINT,
];
