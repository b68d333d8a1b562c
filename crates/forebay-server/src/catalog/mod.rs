//! Catalog.
