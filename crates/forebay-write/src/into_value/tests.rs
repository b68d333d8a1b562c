//! What a newcomer gives, and what becomes of it.

#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "it is references that are given"
)]

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{IntoParameters, ReadError};

fn given(value: impl IntoParameters) -> Vec<Value> {
    value.into_parameters().values().to_vec()
}

#[test]
fn one_parameter_needs_no_tuple() {
    let text = String::from("Ada");
    let ada = || vec![Value::Text("Ada".to_owned())];
    assert_eq!(given("Ada"), ada());
    assert_eq!(given(&text), ada());
    assert_eq!(given(&&text), ada());
    assert_eq!(given(Arc::<str>::from("Ada")), ada());
    assert_eq!(given(Box::<str>::from("Ada")), ada());
    assert_eq!(given(Rc::<str>::from("Ada")), ada());
    assert_eq!(given(Cow::Borrowed("Ada")), ada());
    assert_eq!(given(Some("Ada")), ada());
    assert_eq!(given(text), ada());
    assert_eq!(given('A'), [Value::Text("A".to_owned())]);
    assert_eq!(given(5), [Value::Integer(5)]);
    assert_eq!(given(5_usize), [Value::Integer(5)]);
    assert_eq!(given(None::<i64>), [Value::Null]);
    assert_eq!(given(2.5), [Value::Real(2.5)]);
    assert_eq!(given(()), []);
    assert_eq!(given((5,)), [Value::Integer(5)]);
    assert_eq!(given(&(1, "x").into_parameters()), given((1, "x")));
}

#[test]
fn bytes_are_one_value_and_other_arrays_one_each() {
    let blob = || vec![Value::Blob(vec![1, 2])];
    assert_eq!(given([1_u8, 2]), blob());
    assert_eq!(given(&[1_u8, 2]), blob());
    assert_eq!(given(&[1_u8, 2][..]), blob());
    assert_eq!(given(vec![1_u8, 2]), blob());
    assert_eq!(given(Arc::<[u8]>::from([1, 2])), blob());
    let both = || vec![Value::Integer(1), Value::Integer(2)];
    assert_eq!(given([1, 2]), both());
    assert_eq!(given(&[1, 2]), both());
    assert_eq!(given(vec![Value::Integer(1), Value::Integer(2)]), both());
    assert_eq!(given(vec![1, 2]), [Value::Array(both())]);
    assert_eq!(given(&[1, 2][..]), [Value::Array(both())]);
    assert_eq!(given(([1, 2],)), [Value::Array(both())]);
    assert_eq!(given(vec![[1_u8, 2]]), [Value::Array(blob())]);
}

/// Takes the value as what it was made of.
fn again<T: Clone + IntoValue + TryFrom<Value, Error = ReadError>>(value: &T) -> Result<T, String> {
    T::try_from(value.into_value()).map_err(|error| error.to_string())
}

proptest! {
    #[test]
    fn what_was_given_is_taken_again(
        unsigned: u64, size: usize, integer: i64, small: i8, wide: f64, narrow: f32, text: String, character: char,
        bytes: Vec<u8>, id: [u8; 16], maybe: Option<u64>, seconds in -62_135_596_800_i64..253_402_300_799, nanoseconds in 0_u32..1_000_000_000,
    ) {
        prop_assert_eq!(again(&unsigned), Ok(unsigned));
        prop_assert_eq!(again(&size), Ok(size));
        prop_assert_eq!(again(&integer), Ok(integer));
        prop_assert_eq!(again(&small), Ok(small));
        prop_assert_eq!(again(&wide), Ok(wide));
        prop_assert_eq!(again(&narrow), Ok(narrow));
        prop_assert_eq!(again(&text), Ok(text));
        prop_assert_eq!(again(&character), Ok(character));
        prop_assert_eq!(again(&bytes), Ok(bytes));
        prop_assert_eq!(again(&id), Ok(id));
        prop_assert_eq!(again(&maybe), Ok(maybe));
        let moment = crate::moment::from_1970(seconds, nanoseconds).unwrap();
        prop_assert_eq!(again(&moment), Ok(moment));
        let text = Value::Text(crate::moment::Utc::of(moment).to_string());
        prop_assert_eq!(SystemTime::try_from(text), Ok(moment));
    }

    /// An integer is that integer, or an error; never another one.
    #[test]
    fn an_integer_is_never_another_one(unsigned: u64, integer: i64) {
        prop_assert_eq!(i64::try_from(Value::from(unsigned)).ok(), i64::try_from(unsigned).ok());
        prop_assert_eq!(u64::try_from(Value::from(integer)).ok(), u64::try_from(integer).ok());
        prop_assert_eq!(u8::try_from(Value::from(integer)).ok(), u8::try_from(integer).ok());
        if let Ok(real) = f64::try_from(Value::from(integer)) {
            prop_assert_eq!(real as i128, i128::from(integer));
        }
    }
}

#[test]
fn what_does_not_fit_is_an_error_that_says_what_is_there() {
    let error = |error: ReadError| error.to_string();
    for (said, expected) in [
        (
            i64::try_from(Value::from("5")).map_err(error),
            "an integer of this size is asked for, and there is text",
        ),
        (
            i64::try_from(Value::from(u64::MAX)).map_err(error),
            "the integer 18446744073709551615",
        ),
        (i64::try_from(Value::Null).map_err(error), "NULL: ask for an Option"),
        (
            bool::try_from(Value::from(2)).map(i64::from).map_err(error),
            "0 or 1 is asked for",
        ),
        (
            f32::try_from(Value::from(0.1)).map(|_| 0).map_err(error),
            "the real number 0.1",
        ),
        (
            char::try_from(Value::from("no")).map(|_| 0).map_err(error),
            "text of one character",
        ),
        (
            <[u8; 2]>::try_from(Value::from(vec![1_u8])).map(|_| 0).map_err(error),
            "a blob of 2 bytes is asked for, and there is a blob of 1 bytes",
        ),
        (
            SystemTime::try_from(Value::from("now")).map(|_| 0).map_err(error),
            "a moment is asked for",
        ),
    ] {
        let said = said.unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_moment_below_the_epoch_is_itself() {
    let moment = SystemTime::UNIX_EPOCH - Duration::from_nanos(1);
    assert_eq!(again(&moment), Ok(moment));
}
