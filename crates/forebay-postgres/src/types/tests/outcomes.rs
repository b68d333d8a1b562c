//! What is said before encoding is what encoding does.

use bytes::BytesMut;
use postgres_types::{Format, IsNull};
use proptest::prelude::*;

use super::{super::element::Element, *};
use forebay_write::StatementErrorKind;

const TYPES: [Type; 40] = [
    Type::BOOL,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::OID,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::NUMERIC,
    Type::TEXT,
    Type::VARCHAR,
    Type::BPCHAR,
    Type::NAME,
    Type::UNKNOWN,
    Type::CHAR,
    Type::JSON,
    Type::JSONB,
    Type::BYTEA,
    Type::UUID,
    Type::DATE,
    Type::TIME,
    Type::TIMETZ,
    Type::TIMESTAMP,
    Type::TIMESTAMPTZ,
    Type::INTERVAL,
    Type::INET,
    Type::POINT,
    Type::INT4_RANGE,
    Type::MONEY,
    Type::REGCLASS,
    Type::INT2_VECTOR,
    Type::BOOL_ARRAY,
    Type::INT4_ARRAY,
    Type::NUMERIC_ARRAY,
    Type::TEXT_ARRAY,
    Type::NAME_ARRAY,
    Type::BYTEA_ARRAY,
    Type::UUID_ARRAY,
    Type::TIMESTAMPTZ_ARRAY,
    Type::BOX_ARRAY,
    Type::JSONB_ARRAY,
];

fn values() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("2024-02-29"),
        Just("12:34:56"),
        Just("2024-02-29 12:34:56Z"),
        Just("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        Just("t"),
        Just("1e400"),
        Just("0.0"),
        Just("NUL\0"),
        Just("12"),
        Just("1.5e-3"),
        Just(""),
        Just("{1,2}"),
    ];
    let scalar = prop_oneof![
        1 => Just(Value::Null),
        3 => any::<i64>().prop_map(Value::from),
        3 => (-3_i64..3).prop_map(Value::from),
        2 => any::<f64>().prop_map(Value::from),
        2 => (-9_i32..9).prop_map(|whole| Value::Real(f64::from(whole))),
        2 => any::<String>().prop_map(Value::from),
        4 => words.prop_map(Value::from),
        1 => prop::collection::vec(any::<u8>(), 0..4).prop_map(Value::Blob),
        1 => prop::collection::vec(any::<u8>(), 16).prop_map(Value::Blob),
    ];
    scalar.prop_recursive(3, 12, 3, |inner| {
        prop::collection::vec(inner, 0..3).prop_map(Value::Array)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_taken_is_encoded_and_what_is_not_is_not(value in values()) {
        for wanted in &TYPES {
            let mut out = BytesMut::new();
            let encoded = Parameter(&value).to_sql_checked(wanted, &mut out);
            match (takes(wanted, &value), encoded) {
                (Ok(()), Ok(IsNull::Yes)) => prop_assert!(value == Value::Null && out.is_empty()),
                (Ok(()), Ok(IsNull::No)) => {
                    // Numbers, bytes and lists of them leave the server nothing to read.
                    let text = matches!(Parameter(&value).encode_format(wanted), Format::Text);
                    prop_assert!(text || !matches!(value, Value::Text(_)));
                }
                (Err(reason), Err(error)) => {
                    prop_assert_eq!(&reason, &error.to_string());
                    let told = check(&[wanted.clone(), wanted.clone()], &[Value::Null, value.clone()]).unwrap_err();
                    prop_assert_eq!(told.kind, StatementErrorKind::Type);
                    prop_assert_eq!(told.message, format!("parameter $2: {reason}"));
                }
                (said, done) => prop_assert!(false, "{wanted}: {said:?}, {:?}", done.map(|_| out)),
            }
            if let Some(element) = Element::of(wanted) {
                let mut out = BytesMut::new();
                let fits = element.fits(&value);
                prop_assert_eq!(fits, element.field(&value, &mut out).is_some(), "{}", wanted);
                prop_assert_eq!(fits, fits_column(wanted, &value));
                // What travels in a column can be sent alone.
                prop_assert!(!fits || takes(wanted, &value).is_ok());
                let column = Column::new([&value].into_iter());
                let encoded = column.to_sql_checked(&array_of(wanted).unwrap(), &mut BytesMut::new());
                prop_assert_eq!(fits, encoded.is_ok());
            } else {
                prop_assert!(array_of(wanted).is_none() && !fits_column(wanted, &value));
            }
        }
    }
}

#[test]
fn a_misfit_says_what_would_fit() {
    let told = |wanted: &Type, value: Value| takes(wanted, &value).unwrap_err();
    assert_eq!(
        told(&Type::BOOL, Value::from(7)),
        "the integer 7 cannot be of type bool: 0, 1 or text is wanted"
    );
    assert_eq!(
        told(&Type::INT2, Value::from(70_000)),
        "the integer 70000 cannot be of type int2"
    );
    assert_eq!(
        told(&Type::INT4, Value::from(1.5)),
        "the real number 1.5 cannot be of type int4"
    );
    assert_eq!(
        told(&Type::INT4, Value::from(f64::NAN)),
        "the real number NaN cannot be of type int4"
    );
    assert_eq!(
        told(&Type::FLOAT4, Value::from(1e300)),
        "the real number 1e300 cannot be of type float4"
    );
    assert_eq!(
        told(&Type::FLOAT4, Value::from(1e-300)),
        "the real number 1e-300 cannot be of type float4"
    );
    assert_eq!(
        told(&Type::FLOAT8, Value::from(i64::MAX)),
        "the integer 9223372036854775807 cannot be of type float8"
    );
    assert_eq!(
        told(&Type::TEXT, text("a\0")),
        "text with a NUL character cannot be of type text"
    );
    assert_eq!(
        told(&Type::TEXT, Value::from(vec![1_u8])),
        "a blob of 1 bytes cannot be of type text"
    );
    assert_eq!(
        told(&Type::UUID, Value::from(vec![1_u8])),
        "a blob of 1 bytes cannot be of type uuid: text or 16 bytes are wanted"
    );
    assert_eq!(
        told(&Type::TIMESTAMPTZ, Value::from(5)),
        "the integer 5 cannot be of type timestamptz: text is wanted"
    );
    assert_eq!(
        told(&Type::INT4, Value::from(vec![1])),
        "an array cannot be of type int4"
    );
    assert_eq!(
        told(&Type::INT2_ARRAY, Value::from(vec![1, 70_000])),
        "in the array, the integer 70000 cannot be of type int2"
    );
    for uneven in [
        vec![Value::from(vec![1]), Value::from(vec![1, 2])],
        vec![Value::from(1), Value::from(vec![1])],
        vec![Value::from(vec![1]), Value::Null],
        vec![Value::Array(vec![]), Value::from(vec![1])],
    ] {
        let told = told(&Type::INT4_ARRAY, Value::Array(uneven));
        assert!(told.contains("differ in length or depth"), "{told}");
    }
    let deep = |depth| (0..depth).fold(Value::from(1), |inner, _| Value::Array(vec![inner]));
    assert_eq!(takes(&Type::INT4_ARRAY, &deep(6)), Ok(()));
    assert!(takes(&Type::INT4_ARRAY, &deep(7)).is_err());
}

#[test]
fn as_many_values_as_parameters_are_wanted() {
    let told = check(&[Type::INT4], &[]).unwrap_err();
    assert_eq!(told.kind, StatementErrorKind::ParameterCount);
    assert_eq!(told.message, "the statement has 1 parameters, and 0 were given");
    assert_eq!(check(&[], &[]), Ok(()));
}

#[test]
fn more_than_a_message_may_weigh_is_refused() {
    // Zeroed pages that are never written: no memory is taken.
    let half = Value::Blob(vec![0; PARAMETERS_BYTES_MAX / 2]);
    let types = [Type::BYTEA, Type::BYTEA];
    assert_eq!(check(&types[..1], std::slice::from_ref(&half)), Ok(()));
    let told = check(&types, &[half.clone(), half]).unwrap_err();
    assert_eq!(told.kind, StatementErrorKind::TooLarge);
}

#[test]
fn what_the_server_sends_is_not_believed_blindly() {
    use super::read::{Unreadable, decode};
    // Two billion elements, and no bytes for them.
    let mut array = Vec::new();
    for word in [1, 0, 23, i32::MAX, 1] {
        array.extend(word.to_be_bytes());
    }
    assert_eq!(
        decode(&Type::INT4_ARRAY, &array),
        Err(Unreadable::Malformed("int4".to_owned()))
    );
    let mut empty_lists = Vec::new();
    for word in [2, 0, 23, i32::MAX, 1, 0, 1] {
        empty_lists.extend(word.to_be_bytes());
    }
    assert_eq!(
        decode(&Type::INT4_ARRAY, &empty_lists),
        Err(Unreadable::Malformed("int4[]".to_owned()))
    );
    assert_eq!(decode(&Type::TEXT, &[0xff]), Err(Unreadable::NotUtf8));
    assert_eq!(decode(&Type::INT4, &[1]), Err(Unreadable::Malformed("int4".to_owned())));
    assert_eq!(
        decode(&Type::NUMERIC, &[0, 9, 0, 0, 0, 0, 0, 0]),
        Err(Unreadable::Malformed("numeric".to_owned()))
    );
    assert_eq!(decode(&Type::CHAR, &[0xff]), Ok(text("\\377")));
    // As PostgreSQL 17 has it; the server of these tests may be older.
    let infinite = [
        i64::MAX.to_be_bytes().as_slice(),
        &i32::MAX.to_be_bytes(),
        &i32::MAX.to_be_bytes(),
    ]
    .concat();
    assert_eq!(decode(&Type::INTERVAL, &infinite), Ok(text("infinity")));
}

proptest! {
    #[test]
    fn no_bytes_make_reading_panic(raw in prop::collection::vec(any::<u8>(), 0..64)) {
        for read in &TYPES {
            let _ = read::decode(read, &raw);
        }
    }
}
