"""psycopg 3 against the server whose URL is the first argument.

Promises: every check is made, in the order of CHECKS, whatever became of the one before; each that passes prints "ok NAME",
and if one failed so does the program. Does not know which server it talks to: all of it holds for PostgreSQL itself.
"""

import datetime
import decimal
import sys
import threading
import time
import traceback
import uuid

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.json import Json

URL = sys.argv[1]
FOR_EVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
COLUMNS = (
    "id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, price numeric, at timestamptz DEFAULT now(), "
    "ok boolean, data bytea, doc json, uid uuid, born date, ratio double precision, small bigint"
)


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")


def fails(state, work):
    """Does the work, which must fail with this SQLSTATE."""
    try:
        work()
    except psycopg.Error as error:
        equal(error.sqlstate, state, str(error))
        return error
    raise AssertionError(f"no error where {state} was expected")


def connect(**options):
    return psycopg.connect(URL, autocommit=True, **options)


def check_connect():
    with connect() as conn:
        for name, value in {
            "client_encoding": "UTF8",
            "server_encoding": "UTF8",
            "standard_conforming_strings": "on",
            "integer_datetimes": "on",
        }.items():
            equal(conn.info.parameter_status(name), value, name)
        assert conn.info.server_version >= 140000, conn.info.server_version
        equal(conn.execute("SELECT 1").fetchone(), (1,))
        equal(conn.execute("SELECT 1 AS a, 'b' AS b").fetchone(), (1, "b"))


def check_types():
    row = {
        "name": "naïve 🐘 'quoted' \\",
        "price": decimal.Decimal("123456.789012345"),
        "at": datetime.datetime(2024, 2, 29, 23, 59, 59, 123456, datetime.timezone.utc),
        "ok": True,
        "data": bytes(range(256)),
        "doc": {"a": [1, None, "é"]},
        "uid": uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "born": datetime.date(1970, 1, 1),
        "ratio": 0.1,
        "small": -7,
    }
    names = ", ".join(row)
    values = [Json(value) if name == "doc" else value for name, value in row.items()]
    with connect() as conn:
        conn.execute(f"CREATE TABLE kinds ({COLUMNS})")
        # "%s" lets psycopg choose, "%b" and "%t" ask for binary and text parameters.
        for number, (mark, binary) in enumerate([("%s", False), ("%b", True), ("%t", False), ("%t", True), ("%b", False)]):
            values[0] = f"{row['name']} {number}"
            marks = ", ".join([mark] * len(values))
            conn.execute(f"INSERT INTO kinds ({names}) VALUES ({marks})", values)
            select = f"SELECT {names} FROM kinds WHERE name = {mark}"
            found = conn.execute(select, [values[0]], binary=binary).fetchone()
            equal(found, (values[0], *list(row.values())[1:]), f"{mark}, binary={binary}")
        nulls = [None] * (len(row) - 1)
        conn.execute(f"INSERT INTO kinds ({names}) VALUES ({', '.join(['%s'] * len(row))})", ["nulls", *nulls])
        for binary in (False, True):
            found = conn.execute(f"SELECT {names} FROM kinds WHERE name = 'nulls'", binary=binary).fetchone()
            equal(found, ("nulls", *nulls), f"nulls, binary={binary}")
        found = conn.execute("SELECT %s::bigint, %s::text, %s::bool", [5, "five", False]).fetchone()
        equal(found, (5, "five", False), "casts")
        conn.execute("INSERT INTO kinds (name) VALUES ('defaults')")
        (at,) = conn.execute("SELECT at FROM kinds WHERE name = 'defaults'").fetchone()
        assert abs(at - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(minutes=1), at


def check_returning():
    with connect() as conn:
        conn.execute("CREATE TABLE given (id bigserial PRIMARY KEY, name text NOT NULL)")
        insert = "INSERT INTO given (name) VALUES (%s), (%s) RETURNING id, name"
        equal(conn.execute(insert, ["a", "b"]).fetchall(), [(1, "a"), (2, "b")])
        update = "UPDATE given SET name = name || '!' WHERE id = %s RETURNING name"
        equal(conn.execute(update, [2]).fetchall(), [("b!",)])
        equal(conn.execute("DELETE FROM given WHERE id = %s RETURNING *", [1]).fetchall(), [(1, "a")])


def check_counts():
    with connect() as conn:
        conn.execute("CREATE TABLE counted (id bigint PRIMARY KEY, even boolean)")
        insert = conn.execute("INSERT INTO counted VALUES (1, false), (2, true), (3, false)")
        equal((insert.rowcount, insert.statusmessage), (3, "INSERT 0 3"))
        update = conn.execute("UPDATE counted SET even = NOT even WHERE id > %s", [1])
        equal((update.rowcount, update.statusmessage), (2, "UPDATE 2"))
        equal(conn.execute("UPDATE counted SET even = true WHERE id = 99").rowcount, 0)
        equal(conn.execute("SELECT * FROM counted").statusmessage, "SELECT 3")
        delete = conn.execute("DELETE FROM counted")
        equal((delete.rowcount, delete.statusmessage), (3, "DELETE 3"))


def check_errors():
    with connect() as conn:
        conn.execute("CREATE TABLE parents (id bigint PRIMARY KEY)")
        conn.execute(
            "CREATE TABLE children (id bigint PRIMARY KEY, name text NOT NULL UNIQUE, "
            "parent bigint REFERENCES parents (id), age bigint CHECK (age >= 0))"
        )
        conn.execute("INSERT INTO children VALUES (1, 'one', NULL, 1)")
        insert = "INSERT INTO children VALUES (%s, %s, %s, %s)"
        error = fails("23505", lambda: conn.execute(insert, [2, "one", None, 1]))
        assert isinstance(error, psycopg.errors.UniqueViolation), error
        fails("23502", lambda: conn.execute(insert, [2, None, None, 1]))
        fails("23503", lambda: conn.execute(insert, [2, "two", 99, 1]))
        fails("23514", lambda: conn.execute(insert, [2, "two", None, -1]))
        fails("42P01", lambda: conn.execute("SELECT * FROM missing"))
        fails("42703", lambda: conn.execute("SELECT missing FROM children"))
        fails("42601", lambda: conn.execute("SELEC 1"))
        fails("22P02", lambda: conn.execute("SELECT %t::int", ["x"]))
        equal(conn.info.transaction_status, TransactionStatus.IDLE)
        equal(conn.execute("SELECT count(*) FROM children").fetchone(), (1,))


def check_transactions():
    with psycopg.connect(URL) as conn:  # not in autocommit: psycopg sends BEGIN itself
        conn.execute("CREATE TABLE ledger (id bigint PRIMARY KEY)")
        equal(conn.info.transaction_status, TransactionStatus.INTRANS)
        conn.commit()
        equal(conn.info.transaction_status, TransactionStatus.IDLE)

        conn.execute("INSERT INTO ledger VALUES (1)")
        with connect() as other:
            equal(other.execute("SELECT count(*) FROM ledger").fetchone(), (0,), "not committed yet")
        conn.rollback()
        equal(conn.execute("SELECT count(*) FROM ledger").fetchone(), (0,), "after rollback")

        conn.execute("INSERT INTO ledger VALUES (2)")
        with conn.transaction():  # a savepoint, released
            conn.execute("INSERT INTO ledger VALUES (3)")
        try:
            with conn.transaction():  # a savepoint, rolled back
                conn.execute("INSERT INTO ledger VALUES (4)")
                conn.execute("INSERT INTO ledger VALUES (2)")
        except psycopg.errors.UniqueViolation:
            pass
        equal(conn.info.transaction_status, TransactionStatus.INTRANS)
        conn.commit()
        equal(conn.execute("SELECT id FROM ledger ORDER BY id").fetchall(), [(2,), (3,)])

        fails("23505", lambda: conn.execute("INSERT INTO ledger VALUES (2)"))
        equal(conn.info.transaction_status, TransactionStatus.INERROR)
        fails("25P02", lambda: conn.execute("SELECT 1"))
        conn.rollback()
        equal(conn.info.transaction_status, TransactionStatus.IDLE)
        equal(conn.execute("SELECT 1").fetchone(), (1,))


def check_prepared():
    with connect(prepare_threshold=0) as conn:  # a named statement from the first run on
        conn.execute("CREATE TABLE prepared (id bigint PRIMARY KEY, name text)")
        for number in range(20):
            conn.execute("INSERT INTO prepared VALUES (%s, %s)", [number, f"name {number}"])
        for number in (3, 19, 3):
            found = conn.execute("SELECT name FROM prepared WHERE id = %s", [number]).fetchone()
            equal(found, (f"name {number}",))
        fails("23505", lambda: conn.execute("INSERT INTO prepared VALUES (%s, %s)", [3, "again"]))
        equal(conn.execute("SELECT name FROM prepared WHERE id = %s", [4]).fetchone(), ("name 4",))


def check_portions():
    with connect() as conn, conn.cursor() as cursor:
        conn.execute("CREATE TABLE portions (id bigint PRIMARY KEY)")
        cursor.executemany("INSERT INTO portions VALUES (%s)", [[number] for number in range(1000)])
        equal(cursor.rowcount, 1000)
        seen = [number for (number,) in cursor.stream("SELECT id FROM portions WHERE id >= %s ORDER BY id", [10])]
        equal(seen, list(range(10, 1000)))


def check_concurrency():
    with connect() as conn:
        conn.execute("CREATE TABLE crowd (id bigserial PRIMARY KEY, worker bigint NOT NULL, turn bigint NOT NULL)")

        failures = []

        def work(worker):
            try:
                with connect() as own:
                    for turn in range(25):
                        insert = "INSERT INTO crowd (worker, turn) VALUES (%s, %s) RETURNING worker, turn"
                        equal(own.execute(insert, [worker, turn]).fetchall(), [(worker, turn)])
            except BaseException as failure:  # told by the main thread
                failures.append(failure)

        workers = [threading.Thread(target=work, args=[worker]) for worker in range(20)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        equal(failures, [])
        equal(conn.execute("SELECT count(*), count(DISTINCT id) FROM crowd").fetchone(), (500, 500))
        by_worker = conn.execute("SELECT worker, count(*) FROM crowd GROUP BY worker ORDER BY worker").fetchall()
        equal(by_worker, [(worker, 25) for worker in range(20)])


def check_cancel():
    with connect() as conn:
        done = threading.Event()

        def cancel_until_done():
            # A cancel that comes before the statement does nothing, so it is sent until the statement has ended.
            while not done.wait(0.05):
                conn.cancel_safe(timeout=10)

        canceller = threading.Thread(target=cancel_until_done)
        canceller.start()
        begun = time.monotonic()
        try:
            fails("57014", lambda: conn.execute(FOR_EVER))
        finally:
            done.set()
            canceller.join()
        assert time.monotonic() - begun < 10, "the cancel took too long"
        equal(conn.execute("SELECT 1").fetchone(), (1,))


def check_pipeline():
    with connect() as conn:
        conn.execute("CREATE TABLE piped (id bigint PRIMARY KEY)")
        with conn.pipeline():
            cursors = [conn.execute("INSERT INTO piped VALUES (%s) RETURNING id", [number]) for number in range(50)]
            select = conn.execute("SELECT count(*) FROM piped")
        equal([cursor.fetchone() for cursor in cursors], [(number,) for number in range(50)])
        equal(select.fetchone(), (50,))

        with conn.pipeline() as pipeline:
            before = conn.execute("INSERT INTO piped VALUES (100)")
            pipeline.sync()
            conn.execute("INSERT INTO piped VALUES (1)")
            conn.execute("INSERT INTO piped VALUES (101)")
            fails("23505", pipeline.sync)
            after = conn.execute("INSERT INTO piped VALUES (102)")
            pipeline.sync()
        equal([before.rowcount, after.rowcount], [1, 1])
        found = conn.execute("SELECT id FROM piped WHERE id >= 100 ORDER BY id").fetchall()
        equal(found, [(100,), (102,)], "what came after the error, up to the sync, had no effect")
        equal(conn.info.transaction_status, TransactionStatus.IDLE)


CHECKS = [
    check_connect,
    check_types,
    check_returning,
    check_counts,
    check_errors,
    check_transactions,
    check_prepared,
    check_portions,
    check_concurrency,
    check_cancel,
    check_pipeline,
]

failed = []
for check in CHECKS:
    name = check.__name__.removeprefix("check_")
    try:
        check()
        print(f"ok {name}", flush=True)
    except Exception:
        print(f"--- FAILED {name}", flush=True)
        traceback.print_exc(file=sys.stdout)
        failed.append(name)
sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
