//! The proof by frameworks: each makes its tables, changes them, writes and reads by its own means, through the program `forebay`,
//! and finds what PostgreSQL would give it. Tools for people ask what they ask when they connect and open a table.
//!
//! A framework's program stands in the folder of its language, prints `ok NAME` after each check, and knows nothing of Forebay:
//! `FOREBAY_CLIENTS_AGAINST=postgres cargo test --test frameworks` runs all of them against a real PostgreSQL, which shows that it is
//! PostgreSQL's behaviour that they ask for, and `FOREBAY_CLIENTS_AGAINST=proxy` through the proxy in front of one. What each covers stands in `docs/frameworks.md`.
//!
//! `corpus/` keeps the statements that each sends, as text, with what PostgreSQL told of them; `corpus/record.py` writes it. A test
//! of its own, which needs no framework, replays it.
//!
//! What is known not to work today stands in `refused/`; the tests see to it that exactly that fails, and that the guide says so.
//!
//! What is not installed is a failure that says how to install it: `cargo xtask setup`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corpus;
mod guide;
#[path = "../clients/installed.rs"]
mod installed;
mod program;
mod refused;
#[path = "../clients/server.rs"]
mod server;
mod tool;

/// One module a language; `cargo xtask test` runs each as a step of its own.
mod real_framework {
    mod python {
        use crate::program::check_python;

        const SQLALCHEMY: &[&str] = &[
            "connect",
            "create_all",
            "types",
            "core_bulk_insert",
            "upsert",
            "orm",
            "errors",
            "transactions",
            "inspect",
            "reflect",
            "views_and_drop",
        ];

        #[test]
        fn sqlalchemy_psycopg() {
            check_python("with_sqlalchemy.py", &["psycopg"], SQLALCHEMY);
        }

        #[test]
        fn sqlalchemy_asyncpg() {
            check_python("with_sqlalchemy.py", &["asyncpg"], SQLALCHEMY);
        }

        #[test]
        fn alembic() {
            let checks = [
                "first_revision",
                "second_revision",
                "third_revision",
                "nothing_left",
                "constraints_hold",
                "downgrade",
            ];
            check_python("with_alembic.py", &[], &checks);
        }

        const DJANGO: &[&str] = &[
            "migrate_own_applications",
            "first_migration",
            "second_migration",
            "nothing_left",
            "introspection",
            "types",
            "bulk",
            "queries",
            "errors",
            "transactions",
            "select_for_update",
            "contributed_applications",
            "back_and_away",
        ];

        #[test]
        fn django() {
            check_python("with_django.py", &[], DJANGO);
        }

        /// The same without the one column whose type is `inet`.
        #[test]
        fn django_without_addresses() {
            check_python("with_django.py", &["without-addresses"], DJANGO);
        }

        #[test]
        fn asyncpg() {
            let checks = ["pool", "types", "arrays", "many", "copy", "transactions", "errors"];
            check_python("with_asyncpg.py", &[], &checks);
        }

        #[test]
        fn psycopg_copy() {
            let checks = ["text", "binary", "csv", "many", "failures"];
            check_python("with_psycopg_copy.py", &[], &checks);
        }
    }

    mod node {
        use crate::program::check_node;

        #[test]
        fn typeorm() {
            let checks = [
                "synchronize",
                "synchronize_again",
                "types",
                "repository",
                "query_builder",
                "errors",
                "transactions",
                "synchronize_after_a_change",
                "migrations",
                "drop",
            ];
            check_node("node", "with_typeorm.js", &checks);
        }

        #[test]
        fn sequelize() {
            let checks = [
                "sync",
                "types",
                "crud",
                "errors",
                "transactions",
                "sync_with_alter",
                "query_interface",
                "drop",
            ];
            check_node("node", "with_sequelize.js", &checks);
        }

        #[test]
        fn knex() {
            let checks = [
                "first_migration",
                "second_migration",
                "types",
                "crud",
                "errors",
                "transactions",
                "rollback",
                "schema_builder",
            ];
            check_node("node", "with_knex.js", &checks);
        }

        #[test]
        fn drizzle() {
            let checks = ["migrate", "types", "crud", "relations", "errors", "transactions"];
            check_node("node", "with_drizzle.js", &checks);
        }
    }

    mod prisma {
        use crate::program::check_node;

        #[test]
        fn prisma() {
            let checks = ["migration", "types", "crud", "errors", "transactions"];
            check_node("prisma", "with_prisma.js", &checks);
        }
    }

    mod go {
        use crate::program::check_go;

        #[test]
        fn lib_pq() {
            let checks = [
                "connect",
                "types",
                "counts",
                "prepared",
                "errors",
                "transactions",
                "copy",
            ];
            check_go("lib_pq", &checks);
        }

        #[test]
        fn pgx() {
            let checks = [
                "connect",
                "types",
                "collect_rows",
                "copy",
                "batch",
                "errors",
                "transactions",
            ];
            check_go("pgx", &checks);
        }

        #[test]
        fn gorm() {
            let checks = [
                "auto_migrate",
                "auto_migrate_again",
                "types",
                "crud",
                "errors",
                "transactions",
                "auto_migrate_a_change",
                "migrator",
            ];
            check_go("gorm", &checks);
        }
    }

    mod java {
        use crate::program::check_java;

        #[test]
        fn pgjdbc() {
            let checks = [
                "pool",
                "types",
                "many_times",
                "batches",
                "generated_keys",
                "cursor",
                "errors",
                "transactions",
                "metadata",
                "copy",
                "simple_protocol",
            ];
            check_java("WithPgjdbc", &checks);
        }

        #[test]
        fn hibernate() {
            let checks = [
                "update",
                "update_again",
                "validate",
                "types",
                "sequences",
                "entities",
                "queries",
                "errors",
                "transactions",
                "update_after_a_change",
                "create_drop",
            ];
            check_java("WithHibernate", &checks);
        }
    }

    mod php {
        use crate::program::check_php;

        #[test]
        fn pdo() {
            let checks = ["connect", "types", "crud", "errors", "transactions", "copy"];
            check_php("with_pdo.php", &checks);
        }
    }

    mod tools {
        use crate::tool::check;

        #[test]
        fn psql() {
            check("psql");
        }

        #[test]
        fn dbeaver() {
            check("dbeaver");
        }

        #[test]
        fn pgadmin() {
            check("pgadmin");
        }

        #[test]
        fn metabase() {
            check("metabase");
        }

        #[test]
        fn grafana() {
            check("grafana");
        }
    }
}
