//! The hot path: columns of whole batches.

use std::time::Instant;

use bytes::BytesMut;

use super::*;

/// Far more than it takes, also where nothing is optimized: what fails this allocates, or is quadratic.
const NANOSECONDS_MAX: u128 = 2_000;

#[test]
fn a_column_costs_next_to_nothing_a_value() {
    const ROWS: usize = 4_096;
    const TURNS: usize = 20;
    let integers: Vec<Value> = (0..ROWS).map(integer).collect();
    let words: Vec<Value> = (0..ROWS).map(|row| Value::Text(format!("user number {row}"))).collect();
    let mut out = BytesMut::with_capacity(1 << 20);
    for (array, values) in [
        (Type::INT4_ARRAY, &integers),
        (Type::INT8_ARRAY, &integers),
        (Type::TEXT_ARRAY, &words),
    ] {
        // The best of them: in the others somebody else may have had the processor.
        let turns = (0..TURNS).map(|_| {
            let begun = Instant::now();
            out.clear();
            Column::new(values.iter()).to_sql_checked(&array, &mut out).unwrap();
            begun.elapsed().as_nanos()
        });
        let each = turns.min().unwrap() / u128::try_from(ROWS).unwrap();
        println!("{array}: {each} ns a value");
        assert!(each < NANOSECONDS_MAX, "{array}: {each} ns a value");
    }
}

fn integer(row: usize) -> Value {
    Value::Integer(i64::try_from(row).unwrap())
}
