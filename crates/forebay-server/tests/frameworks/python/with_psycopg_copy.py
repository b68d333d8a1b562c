"""psycopg 3: COPY in and out, as text, CSV and binary, and what it does when it fails.

Does not know which server it talks to: all of it holds for PostgreSQL itself.
"""

import datetime
import decimal

import psycopg

from checking import URL, equal, fails, make

MOMENT = datetime.datetime(2024, 2, 29, 23, 59, 59, 123456, datetime.timezone.utc)
KINDS = ["int4", "text", "numeric", "bool", "date", "timestamptz", "bytea"]
ROWS = [
    (
        1,
        'tab\there, "quoted"\nnew line \\ back',
        decimal.Decimal("1.50"),
        True,
        datetime.date(2024, 2, 29),
        MOMENT,
        b"\0\xff",
    ),
    (2, "", decimal.Decimal("-0.01"), False, datetime.date(1999, 12, 31), MOMENT, b""),
    (3, None, None, None, None, None, None),
]
TABLE = "CREATE TABLE copied (id int PRIMARY KEY, name text, price numeric(10,2), ok boolean, day date, at timestamptz, data bytea)"


def connect():
    return psycopg.connect(URL, autocommit=True)


def rows(conn):
    return conn.execute("SELECT * FROM copied ORDER BY id").fetchall()


def check_text():
    with connect() as conn:
        conn.execute(TABLE)
        with conn.cursor() as cursor:
            with cursor.copy("COPY copied FROM STDIN") as copy:
                for row in ROWS:
                    copy.write_row(row)
            equal(cursor.rowcount, 3)
            equal(rows(conn), ROWS)
            with cursor.copy("COPY copied (id, name, ok) TO STDOUT") as copy:
                text = b"".join(copy).decode()
        equal(text, '1\ttab\\there, "quoted"\\nnew line \\\\ back\tt\n2\t\tf\n3\t\\N\t\\N\n')
        with conn.cursor().copy("COPY (SELECT * FROM copied ORDER BY id) TO STDOUT") as copy:
            copy.set_types(KINDS)
            equal(list(copy.rows()), ROWS)


def check_binary():
    with connect() as conn:
        conn.execute("TRUNCATE copied")
        with conn.cursor().copy("COPY copied FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(KINDS)
            for row in ROWS:
                copy.write_row(row)
        equal(rows(conn), ROWS)
        with conn.cursor().copy("COPY copied TO STDOUT (FORMAT BINARY)") as copy:
            copy.set_types(KINDS)
            equal(list(copy.rows()), ROWS)


def check_csv():
    with connect() as conn:
        conn.execute("DELETE FROM copied")
        with conn.cursor().copy(
            "COPY copied (id, name, price, day) FROM STDIN WITH (FORMAT csv, HEADER true, NULL 'none')"
        ) as copy:
            copy.write("id,name,price,day\n")
            copy.write('10,"a, ""b""\nc",2.5,2024-01-01\n11,none,none,none\n12,"none",7,\n'.replace(",\n", ",none\n"))
        found = conn.execute("SELECT id, name, price, day FROM copied ORDER BY id").fetchall()
        day = datetime.date(2024, 1, 1)
        equal(
            found,
            [
                (10, 'a, "b"\nc', decimal.Decimal("2.50"), day),
                (11, None, None, None),
                (12, "none", decimal.Decimal("7.00"), None),
            ],
        )
        with conn.cursor().copy("COPY copied (id, name, price) TO STDOUT WITH CSV HEADER") as copy:
            equal(b"".join(copy).decode(), 'id,name,price\n10,"a, ""b""\nc",2.50\n11,,\n12,none,7.00\n')


def check_many():
    with connect() as conn:
        conn.execute("DELETE FROM copied")
        with conn.cursor() as cursor:
            with cursor.copy("COPY copied (id, name) FROM STDIN") as copy:
                for number in range(20000):
                    copy.write_row((number, f"name {number}"))
            equal(cursor.rowcount, 20000)
        equal(
            conn.execute("SELECT count(*), max(name), sum(id) FROM copied").fetchone(), (20000, "name 9999", 199990000)
        )


def check_failures():
    with connect() as conn:
        conn.execute("DELETE FROM copied")

        def copying(statement, text):
            def work():
                with conn.cursor().copy(statement) as copy:
                    copy.write(text)

            return work

        fails(psycopg.errors.UniqueViolation, copying("COPY copied (id) FROM STDIN", "1\n2\n1\n"))
        fails(psycopg.errors.InvalidTextRepresentation, copying("COPY copied (id) FROM STDIN", "one\n"))
        fails(psycopg.errors.BadCopyFileFormat, copying("COPY copied (id, name) FROM STDIN", "1\n"))
        fails(psycopg.errors.UndefinedTable, copying("COPY missing FROM STDIN", ""))
        fails(psycopg.errors.UndefinedColumn, copying("COPY copied (missing) FROM STDIN", ""))

        def gives_up():
            with conn.cursor().copy("COPY copied (id) FROM STDIN") as copy:
                copy.write("1\n")
                raise ZeroDivisionError

        fails(ZeroDivisionError, gives_up)
        # What failed left nothing, and the connection goes on.
        equal(rows(conn), [])


make(check_text, check_binary, check_csv, check_many, check_failures)
