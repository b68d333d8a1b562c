//! Rows and errors as servers send them, without a link before them.

#![no_main]

use forebay_mysql_link::{BinaryRow, Column, ColumnType, TextRow};
use forebay_pg_link::Row;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(row) = Row::read(bytes) {
        let values = row.len();
        assert_eq!(row.count(), values);
    }
    let _ = forebay_mysql_link::ServerError::read(bytes);
    // How many columns there are, and of which types, is said first.
    let Some((&count, rest)) = bytes.split_first() else {
        return;
    };
    let count = usize::from(count % 40);
    assert!(TextRow::new(rest, count).count() <= count);
    let Some((kinds, row)) = rest.split_at_checked(count) else {
        return;
    };
    let kinds = kinds
        .iter()
        .map(|&kind| ColumnType::try_from(kind).unwrap_or(ColumnType::MYSQL_TYPE_BLOB));
    let columns: Vec<Column> = kinds.map(Column::new).collect();
    if let Ok(row) = BinaryRow::new(row, &columns) {
        assert!(row.count() <= count);
    }
});
