//! Arrays both ways: as clients send them, as they are stored, and what is refused.

use super::*;

#[test]
fn an_array_is_stored_as_json_and_sent_in_both_formats() {
    let stored = Value::from("[[1,null],[3,-4]]");
    assert_eq!(
        decode_text_form(&Type::INT4_ARRAY, "{{1,NULL},{3,-4}}").unwrap(),
        stored
    );
    assert_eq!(encode(&Type::INT4_ARRAY, 0, &stored).unwrap(), b"{{1,NULL},{3,-4}}");
    let bytes = encode(&Type::INT4_ARRAY, 1, &stored).unwrap();
    assert_eq!(bytes[..12], [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 23]);
    assert_eq!(decode_binary_form(&Type::INT4_ARRAY, &bytes).unwrap(), stored);
    assert_eq!(decode_text_form(&Type::TEXT_ARRAY, "{}").unwrap(), Value::from("[]"));
    assert_eq!(
        decode_text_form(&Type::NUMERIC_ARRAY, "{1.50,NaN}").unwrap(),
        Value::from("[\"1.50\",\"NaN\"]")
    );
}

#[test]
fn timestamps_in_arrays_are_written_in_the_zone() {
    let stored = Value::from("[\"2024-07-01 00:00:00\",\"infinity\",null]");
    let written = encode_in(&in_zone("Europe/Berlin"), &Type::TIMESTAMPTZ_ARRAY, 0, &stored).unwrap();
    assert_eq!(written, b"{\"2024-07-01 02:00:00+02\",infinity,NULL}");
}

#[test]
fn literals_of_the_catalog_are_sent() {
    assert_eq!(text_of(&Type::NAME_ARRAY, "{pg_catalog,public}"), "{pg_catalog,public}");
    assert_eq!(text_of(&Type::INT2_ARRAY, "[0:1]={1,2}"), "[0:1]={1,2}");
    let bytes = encode(&Type::INT2_ARRAY, 1, &Value::from("{1,2}")).unwrap();
    assert_eq!(
        <Vec<i16> as postgres_types::FromSql>::from_sql(&Type::INT2_ARRAY, &bytes).unwrap(),
        [1, 2]
    );
    assert_eq!(
        state(encode(&Type::INT2_ARRAY, 1, &Value::from("[0:1]={1,2}"))),
        "0A000"
    );
}

#[test]
fn an_element_that_looks_like_the_bounds_of_an_array_is_an_element() {
    for element in ["]={", "[0:1]={1,2}", "{", "]={\"", "\\]={"] {
        round_trip(&vec![Some(element.to_owned()), None], &Type::TEXT_ARRAY);
    }
}

#[test]
fn an_element_that_is_no_value_of_its_type_is_an_error() {
    for (kind, value, sqlstate) in [
        (Type::INT4_ARRAY, Value::from("[1,\"a\"]"), "22P02"),
        (Type::INT4_ARRAY, Value::from("[2147483648]"), "22003"),
        (Type::INT4_ARRAY, Value::from("[1,2"), "22P02"),
        (Type::INT4_ARRAY, Value::from("{1,2"), "22P02"),
        (Type::INT4_ARRAY, Value::from("1,2"), "22P02"),
        (Type::INT4_ARRAY, Value::from("[[1],[2,3]]"), "22P02"),
        (Type::INT4_ARRAY, Value::from(1), "22P02"),
        (Type::DATE_ARRAY, Value::from("[\"today\"]"), "22P02"),
        (Type::BOOL_ARRAY, Value::from("[2]"), "22P02"),
        (Type::BYTEA_ARRAY, Value::from("[\"a\"]"), "0A000"),
    ] {
        for format in [0, 1] {
            assert_eq!(state(encode(&kind, format, &value)), sqlstate, "{kind} {value:?}");
        }
    }
    let error = encode(&Type::DATE_ARRAY, 0, &Value::from("[\"today\"]")).unwrap_err();
    assert!(
        error.message.contains("declared type date: text \"today\""),
        "{}",
        error.message
    );
}

#[test]
fn binary_arrays_are_not_trusted() {
    let array = |kind: u32, dimensions: &[(i32, i32)], rest: &[u8]| {
        let mut bytes = (dimensions.len() as i32).to_be_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(kind.to_be_bytes());
        for (length, lower) in dimensions {
            bytes.extend(length.to_be_bytes());
            bytes.extend(lower.to_be_bytes());
        }
        bytes.extend(rest);
        bytes
    };
    let one = [0, 0, 0, 4, 0, 0, 0, 1];
    assert_eq!(
        decode_binary_form(&Type::INT4_ARRAY, &array(23, &[(1, 1)], &one)).unwrap(),
        Value::from("[1]")
    );
    for (bytes, sqlstate) in [
        (array(20, &[(1, 1)], &one), "42804"),
        (array(23, &[(1, 0)], &one), "0A000"),
        (array(23, &[(2, 1)], &one), "22P03"),
        (array(23, &[(1, 1)], &[0, 0, 0, 3, 0, 0, 1]), "22P03"),
        (array(23, &[(i32::MAX, 1), (i32::MAX, 1)], &one), "54000"),
        (array(23, &[(1, 1); 7], &one), "54000"),
        (array(23, &[(-1, 1)], &one), "54000"),
    ] {
        assert_eq!(
            state(decode_binary_form(&Type::INT4_ARRAY, &bytes)),
            sqlstate,
            "{bytes:?}"
        );
    }
    let error = decode_binary_form(&Type::INT4_ARRAY, &array(23, &[(1, 1)], &[0, 0, 0, 1, 9])).unwrap_err();
    assert!(
        error.message.contains("type integer: expected 4 bytes"),
        "{}",
        error.message
    );
}

proptest! {
    #[test]
    fn arrays_come_back(
        integers in prop::collection::vec(any::<Option<i64>>(), 0..8),
        texts in prop::collection::vec(any::<Option<String>>().prop_filter("no NUL", |text| !text.iter().any(|text| text.contains('\0'))), 0..8),
        floats in prop::collection::vec(any::<f64>().prop_filter("finite", |real| real.is_finite()), 0..8),
    ) {
        round_trip(&integers, &Type::INT8_ARRAY);
        round_trip(&texts, &Type::TEXT_ARRAY);
        round_trip(&texts, &Type::VARCHAR_ARRAY);
        round_trip(&floats, &Type::FLOAT8_ARRAY);
    }
}
