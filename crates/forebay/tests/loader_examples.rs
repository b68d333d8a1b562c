//! The examples of the Loader, run to their end: each asserts what it prints.
//!
//! One file a program, each with a `main` of its own.

#[path = "../examples/loader_axum.rs"]
mod loader_axum;
#[path = "../examples/loader_graphql.rs"]
mod loader_graphql;
#[path = "../examples/loader_http_api.rs"]
mod loader_http_api;

type Ended = Result<(), Box<dyn std::error::Error>>;

#[test]
fn axum_handlers_share_trips_to_the_database() -> Ended {
    loader_axum::main()
}

#[test]
fn graphql_resolvers_share_trips_to_the_database() -> Ended {
    loader_graphql::main()
}

#[test]
fn tasks_share_requests_of_an_http_api() -> Ended {
    loader_http_api::main()
}
