#[path = "../../../tests/it/postgres_server.rs"]
mod postgres_server;

use postgres_server::PostgresServer;

use super::*;
use crate::graph::suite::TESTS;

fn open(server: &PostgresServer, schema: &str) -> PostgresStore {
    PostgresStore::open(Address::read(&server.address(schema)).unwrap()).unwrap()
}

#[test]
fn the_store_does_what_every_store_has_to() {
    let server = PostgresServer::start(&[]);
    for (number, test) in TESTS.iter().enumerate() {
        test(&mut open(&server, &format!("test_{number}")));
    }
}
