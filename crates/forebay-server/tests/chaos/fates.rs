//! What has become of the rows that one client has written.

use std::collections::BTreeMap;

use crate::client::Client;

/// What is known of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Present,
    Absent,
    /// The connection was lost before it was said.
    Unknown,
}

/// The rows of one client, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    known: BTreeMap<u64, Fate>,
}

impl Fates {
    /// A row that was never tried; nothing is known of it yet.
    pub(crate) fn begin(&mut self) -> u64 {
        let number = self.known.len() as u64;
        self.known.insert(number, Fate::Unknown);
        number
    }

    pub(crate) fn set(&mut self, numbers: impl IntoIterator<Item = u64>, fate: Fate) {
        for number in numbers {
            self.known.insert(number, fate);
        }
    }

    /// Least and most of the rows that may be seen.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        let count = |fate| self.known.values().filter(|known| **known == fate).count() as u64;
        (count(Fate::Present), count(Fate::Present) + count(Fate::Unknown))
    }

    /// Compares all with what is in the table.
    pub(crate) fn check(&self, straight: &mut Client, client: u64) {
        let rows = straight.run(&format!("SELECT number, text FROM chaos WHERE client = {client}"));
        let mut seen = BTreeMap::new();
        for row in rows.rows() {
            let number: u64 = row[0].as_ref().unwrap().parse().unwrap();
            assert_eq!(
                row[1],
                Some(text(client, number)),
                "the text of row {number} of client {client}"
            );
            *seen.entry(number).or_insert(0) += 1;
        }
        for (number, fate) in &self.known {
            let times = seen.remove(number).unwrap_or(0);
            let is_right = match fate {
                Fate::Present => times == 1,
                Fate::Absent => times == 0,
                Fate::Unknown => times <= 1,
            };
            assert!(
                is_right,
                "row {number} of client {client} is {fate:?} and there {times} times"
            );
        }
        assert!(seen.is_empty(), "nobody has written {seen:?} of client {client}");
    }
}

/// What a row says.
pub(crate) fn text(client: u64, number: u64) -> String {
    format!("row {number} of {client}")
}
