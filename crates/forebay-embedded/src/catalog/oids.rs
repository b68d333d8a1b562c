//! OIDs: those that PostgreSQL fixes, and those of objects that clients have made.
//!
//! Promises: no two objects have the same OID. It is derived from a hash of the object's kind and name, so that a client that looks a table
//! up by name and then asks by OID finds it again after a rebuild.

use std::collections::HashSet;

/// OIDs that PostgreSQL fixes, and the one role there is.
pub(super) const OWNER: u32 = 10;

pub(super) const PG_CATALOG: u32 = 11;

pub(super) const PUBLIC: u32 = 2200;

pub(super) const INFORMATION_SCHEMA: u32 = 13_207;

pub(super) const DATABASE: u32 = 16_383;

pub(super) const NAMESPACES: [(u32, &str); 4] = [
    (99, "pg_toast"),
    (PG_CATALOG, "pg_catalog"),
    (PUBLIC, "public"),
    (INFORMATION_SCHEMA, "information_schema"),
];

/// Gives each object its OID and its name, no two the same.
pub(super) struct Names {
    oids: HashSet<u32>,
    relations: HashSet<String>,
}

impl Names {
    /// The smallest OID PostgreSQL gives to user objects; and a limit that keeps OIDs positive for clients that read them signed.
    const FIRST: u32 = 16_384;
    const LAST: u32 = 0x7fff_0000;

    /// New names are none of these.
    pub(super) fn beside(relations: impl Iterator<Item = String>) -> Self {
        Self {
            oids: HashSet::new(),
            relations: relations.collect(),
        }
    }

    pub(super) fn oid(&mut self, kind: &str, owner: &str, name: &str) -> u32 {
        let mut oid = wished_oid(kind, owner, name);
        while !self.oids.insert(oid) {
            oid = if oid >= Self::LAST { Self::FIRST } else { oid + 1 };
        }
        oid
    }

    /// PostgreSQL's way to a free name: the wish, then with 1, 2, 3…
    pub(super) fn relation(&mut self, wish: &str) -> String {
        let mut name = wish.to_owned();
        let mut count = 0;
        while !self.relations.insert(name.clone()) {
            count += 1;
            name = format!("{wish}{count}");
        }
        name
    }
}

/// The OID of a table or view, unless another object took its number first: among a thousand objects in one database of some thousands.
pub(crate) fn relation_oid(name: &str) -> u32 {
    wished_oid("relation", "", name)
}

/// The OID that an object has unless it is another one's.
fn wished_oid(kind: &str, owner: &str, name: &str) -> u32 {
    // FNV-1a. The hash must never change between versions that serve the same clients, so it is not the standard library's.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in [kind.as_bytes(), &[0], owner.as_bytes(), &[0], name.as_bytes()].concat() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let span = u64::from(Names::LAST - Names::FIRST);
    Names::FIRST + u32::try_from(hash % span).expect("the remainder is below a 32-bit span")
}
