//! Parameters that no database takes: too many, too large, of the wrong type. They fail alone and keep the connection; and one
//! statement that ends its connection does not take its neighbours with it.

use std::time::Duration;

use forebay::write::{StatementErrorKind as Kind, Value, Write, WriteError, Writer};

use crate::{Ledger, Maria, Pg, Place, Settings, Site, batch, kind, within};

on_both!(
    as_many_parameters_as_there_can_be_are_written_and_one_more_fails_alone,
    what_is_too_large_to_be_sent_fails_alone,
    what_is_no_number_or_no_text_fails_alone,
    too_few_and_too_many_for_the_statement_fail_alone,
);

const SCHEMA: &str = "CREATE TABLE t (n BIGINT, words TEXT)";
/// Each protocol counts parameters in two bytes.
const PARAMETERS_MAX: usize = 65_535;

/// Executes these amid good neighbours, and alone; returns what they were told, which must be the same.
async fn amid_neighbours<S: Site>(place: &Place<S>, handle: &S::Handle, bad: &[Write]) -> Vec<WriteError> {
    let mut writes = Vec::new();
    for n in 0..12 {
        writes.push(Write::new(S::INSERT, [n]));
        if n >= 2
            && let Some(bad) = bad.get(usize::try_from(n).unwrap() - 2)
        {
            writes.push(bad.clone());
        }
    }
    let is_bad = |place: usize| (3..3 + 2 * bad.len()).contains(&place) && place % 2 == 1;
    let limit = Settings::default().retry_for;
    let answers = within(limit, batch::<S>(handle, writes)).await;
    let mut told = Vec::new();
    let mut all = Ledger::default();
    for (place, answer) in answers.into_iter().enumerate() {
        match answer {
            answer if is_bad(place) => told.push(answer.unwrap_err()),
            answer => all.note(all.acknowledged.len() as i64, answer),
        }
    }
    assert!(all.is_all_acknowledged());
    all.holds(place).await;
    for (bad, told) in bad.iter().zip(&told) {
        let alone = within(limit, batch::<S>(handle, vec![bad.clone()])).await.remove(0);
        assert_eq!(alone.unwrap_err(), *told);
    }
    all.holds(place).await;
    place.say("DELETE FROM t").await;
    told
}

/// A statement with so many parameters that are not NULL.
fn with_parameters<S: Site>(count: usize) -> Write {
    let is_numbered = S::INSERT.contains('$');
    let places: Vec<String> = (1..=count)
        .map(|number| {
            if is_numbered {
                format!("(${number})")
            } else {
                "(?)".to_owned()
            }
        })
        .collect();
    let numbers: Vec<Value> = (0..count as i64).map(Value::Integer).collect();
    Write::new(format!("INSERT INTO t (n) VALUES {}", places.join(",")), numbers)
}

async fn as_many_parameters_as_there_can_be_are_written_and_one_more_fails_alone<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let handle = place.open(&Settings::default()).await;
    let most = batch::<S>(&handle, vec![with_parameters::<S>(PARAMETERS_MAX)])
        .await
        .remove(0);
    assert_eq!(most.unwrap().rows_affected, PARAMETERS_MAX as u64);
    place.say("DELETE FROM t").await;
    for told in amid_neighbours(&place, &handle, &[with_parameters::<S>(PARAMETERS_MAX + 1)]).await {
        assert!(matches!(told, WriteError::Statement(_)), "{told}");
    }
}

async fn what_is_too_large_to_be_sent_fails_alone<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let handle = place.open(&Settings::default()).await;
    // Larger than a message or packet may be, whatever the server is set to.
    let large = Write::new(S::INSERT_WORDS, (Value::Integer(1000), "x".repeat(1 << 30)));
    let told = within(Duration::from_secs(60), amid_neighbours(&place, &handle, &[large])).await;
    let kinds = told.into_iter().map(|told| kind(&Err(told)));
    assert!(kinds.eq([Kind::TooLarge]));
    // It was found before it was sent: the connection is the same.
    assert_eq!(place.proxy.accepted(), 1);
}

async fn what_is_no_number_or_no_text_fails_alone<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let handle = place.open(&Settings::default()).await;
    let bad = [
        Write::new(S::INSERT, ["seven"]),
        Write::new(S::INSERT, [f64::NAN]),
        Write::new(S::INSERT, [f64::INFINITY]),
        Write::new(S::INSERT, [vec![0xFF_u8, 0xFE]]),
        Write::new(S::INSERT_WORDS, (Value::Integer(1000), vec![0xFF_u8, 0xFE])),
        Write::new(S::INSERT, [Value::Array(vec![Value::Integer(1)])]),
        Write::new("INSERT INTO t (n) \0 VALUES (1000)", ()),
    ];
    let told = amid_neighbours(&place, &handle, &bad).await;
    for (told, bad) in told.iter().zip(&bad) {
        let kind = kind(&Err(told.clone()));
        assert!(matches!(kind, Kind::Type | Kind::Text), "{bad:?}: {told:?}");
    }
    // A zero byte is text like any other to MariaDB, and none at all to PostgreSQL.
    let zero = Write::new(S::INSERT_WORDS, (Value::Integer(1000), "a\0b"));
    let writes = vec![Write::new(S::INSERT, [1]), zero, Write::new(S::INSERT, [2])];
    let answers = batch::<S>(&handle, writes).await;
    assert!(answers[0].is_ok() && answers[2].is_ok());
    let length = place.read("SELECT OCTET_LENGTH(words) FROM t WHERE n = 1000").await;
    if answers[1].is_ok() {
        assert_eq!(length, ["3"]);
    } else {
        assert_eq!((kind(&answers[1]), length), (Kind::Type, vec![]));
    }
}

async fn too_few_and_too_many_for_the_statement_fail_alone<S: Site>() {
    let place = Place::<S>::new(SCHEMA).await;
    let handle = place.open(&Settings::default()).await;
    let bad = [
        Write::new(S::INSERT, ()),
        Write::new(S::INSERT, [1000, 1001]),
        Write::new("INSERT INTO t (n) VALUES (1000)", [1]),
    ];
    for told in amid_neighbours(&place, &handle, &bad).await {
        assert_eq!(kind(&Err(told)), Kind::ParameterCount);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_statement_that_ends_its_connection_hurts_no_neighbour() {
    let place = Place::<Pg>::new(SCHEMA).await;
    let settings = Settings {
        retry_for: Duration::from_secs(3),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    // As a statement would that the server's process crashes on, or whose memory the system takes away.
    let poison = Write::new(
        "INSERT INTO t (n) SELECT 1000 WHERE pg_terminate_backend(pg_backend_pid())",
        (),
    );
    ends_its_connection(&place, &handle, poison).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb_a_statement_that_ends_its_connection_hurts_no_neighbour() {
    // Of its own, without tables in which nothing can be undone: those make the outcome unknown.
    let place = Place::<Maria>::own(&[], SCHEMA).await;
    let settings = Settings {
        retry_for: Duration::from_secs(3),
        ..Settings::default()
    };
    let handle = place.open(&settings).await;
    place
        .say("CREATE FUNCTION ends() RETURNS INT BEGIN KILL CONNECTION_ID(); RETURN 1000; END")
        .await;
    let poison = Write::new("INSERT INTO t (n) SELECT ends()", ());
    ends_its_connection(&place, &handle, poison).await;
}

async fn ends_its_connection<S: Site>(place: &Place<S>, handle: &S::Handle, poison: Write) {
    let mut writes: Vec<Write> = (0..64).map(|n| Write::new(S::INSERT, [n])).collect();
    writes.insert(20, poison);
    let mut answers = within(Duration::from_secs(3), batch::<S>(handle, writes)).await;
    let told = answers.remove(20);
    assert!(
        matches!(
            told,
            Err(WriteError::Unavailable { .. } | WriteError::OutcomeUnknown { .. })
        ),
        "{told:?}"
    );
    let all: Ledger = (0..).zip(answers).collect();
    assert!(all.is_all_acknowledged());
    all.holds(place).await;
}

/// What commits in its own midst is not done again, whatever ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_procedure_that_has_committed_is_not_run_again() {
    let place = Place::<Pg>::new(SCHEMA).await;
    place
        .say(
            "CREATE PROCEDURE ends() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t (n) VALUES (1); COMMIT; \
             PERFORM pg_terminate_backend(pg_backend_pid()); END $$; \
             CREATE PROCEDURE conflicts() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t (n) VALUES (2); COMMIT; \
             RAISE EXCEPTION 'as if' USING ERRCODE = '40001'; END $$; \
             CREATE PROCEDURE waits() LANGUAGE plpgsql AS $$ BEGIN INSERT INTO t (n) VALUES (3); COMMIT; \
             RAISE EXCEPTION 'as if' USING ERRCODE = '55P03'; END $$",
        )
        .await;
    let settings = Settings {
        retry_for: Duration::from_secs(2),
        ..Settings::default()
    };
    let writer = Writer::new(place.open(&settings).await);
    let ended = within(settings.retry_for, writer.execute("CALL ends()", ())).await;
    assert!(matches!(ended, Err(WriteError::OutcomeUnknown { .. })), "{ended:?}");
    let conflict = within(settings.retry_for, writer.execute("CALL conflicts()", ())).await;
    assert!(
        matches!(
            conflict,
            Err(WriteError::OutcomeUnknown { .. } | WriteError::Statement(_))
        ),
        "{conflict:?}"
    );
    let lock = within(settings.retry_for, writer.execute("CALL waits()", ())).await;
    assert!(
        matches!(lock, Err(WriteError::OutcomeUnknown { .. } | WriteError::Statement(_))),
        "{lock:?}"
    );
    assert_eq!(
        place.read("SELECT n, COUNT(*) FROM t GROUP BY n ORDER BY n").await,
        ["1|1", "2|1", "3|1"]
    );
}
