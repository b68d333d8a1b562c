//! Starts and stops real servers for tests and the lab.
