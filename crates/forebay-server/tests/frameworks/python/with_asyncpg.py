"""asyncpg alone: its pool, which runs a reset query whenever a connection comes back; types, cursors, COPY.

Does not know which server it talks to: all of it holds for PostgreSQL itself.
"""

import asyncio
import datetime
import decimal
import io
import json
import uuid

import asyncpg

from checking import URL, equal, fails_later, make

COLUMNS = (
    "id serial PRIMARY KEY, small smallint, big bigint, price numeric(12,4), ratio double precision, part real, ok boolean, "
    "name varchar(40) UNIQUE, note text, data bytea, day date, clock time, local timestamp, at timestamptz, span interval, "
    "doc jsonb, uid uuid"
)
ROW = {
    "small": -7,
    "big": 2**62,
    "price": decimal.Decimal("12345.6700"),
    "ratio": 0.1,
    "part": 0.5,
    "ok": False,
    "name": "naïve 🐘",
    "note": "",
    "data": bytes(range(256)),
    "day": datetime.date(2024, 2, 29),
    "clock": datetime.time(23, 59, 59, 250000),
    "local": datetime.datetime(2024, 2, 29, 12, 0, 0, 1),
    "at": datetime.datetime(2024, 2, 29, 23, 59, 59, 123456, datetime.timezone.utc),
    "span": datetime.timedelta(days=1, hours=2, seconds=3.5),
    "doc": json.dumps({"a": [1, None, "é"]}, ensure_ascii=False),
    "uid": uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
}


async def check_pool():
    async with asyncpg.create_pool(URL, min_size=1, max_size=2) as pool:
        for number in range(3):
            async with pool.acquire() as conn:
                equal(await conn.fetchval("SELECT $1::int + 1", number), number + 1)
                await conn.execute("SET application_name = 'changed'")
        async with pool.acquire() as conn:
            # The reset query took it back.
            equal(await conn.fetchval("SHOW application_name"), "")
        equal(
            await asyncio.gather(*[pool.fetchval("SELECT $1::text", str(n)) for n in range(20)]),
            [str(n) for n in range(20)],
        )


async def check_types():
    conn = await asyncpg.connect(URL)
    await conn.execute(f"CREATE TABLE kinds ({COLUMNS})")
    marks = ", ".join(f"${number + 1}" for number in range(len(ROW)))
    insert = f"INSERT INTO kinds ({', '.join(ROW)}) VALUES ({marks}) RETURNING *"
    given = dict(await conn.fetchrow(insert, *ROW.values()))
    equal(given.pop("id"), 1)
    equal(given, ROW)
    empty = dict(await conn.fetchrow(insert, *[None] * len(ROW)))
    equal({name: empty[name] for name in ROW}, dict.fromkeys(ROW))
    for name, value in ROW.items():
        equal(await conn.fetchval(f"SELECT count(*) FROM kinds WHERE {name} = $1", value), 1, name)
    statement = await conn.prepare("SELECT id, name FROM kinds WHERE id = $1 AND name LIKE $2")
    equal([kind.name for kind in statement.get_parameters()], ["int4", "text"])
    equal(
        [(column.name, column.type.name) for column in statement.get_attributes()],
        [("id", "int4"), ("name", "varchar")],
    )
    await conn.close()


async def check_arrays():
    conn = await asyncpg.connect(URL)
    # How asyncpg's users say IN: the array is one parameter.
    equal(
        [
            row["id"]
            for row in await conn.fetch("SELECT id FROM kinds WHERE id = ANY($1::int[]) ORDER BY id", [1, 2, 99])
        ],
        [1, 2],
    )
    equal(await conn.fetchval("SELECT $1::text[]", ["a", None, 'c, "d"']), ["a", None, 'c, "d"'])
    await conn.close()


async def check_many():
    conn = await asyncpg.connect(URL)
    await conn.execute("CREATE TABLE many (id bigint PRIMARY KEY, name text)")
    await conn.executemany("INSERT INTO many VALUES ($1, $2)", [(number, f"name {number}") for number in range(500)])
    equal(await conn.execute("UPDATE many SET name = name || '!' WHERE id < 10"), "UPDATE 10")
    await fails_later(
        asyncpg.UniqueViolationError, conn.executemany("INSERT INTO many VALUES ($1, $2)", [(1000, ""), (1, "")])
    )
    equal(await conn.fetchval("SELECT count(*) FROM many"), 500)
    await conn.close()


async def check_copy():
    conn = await asyncpg.connect(URL)
    await conn.execute("CREATE TABLE copied (id bigint PRIMARY KEY, name text, ok boolean, at timestamptz)")
    moment = datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.timezone.utc)
    # asyncpg copies records in PostgreSQL's binary format.
    records = [(number, f"tab\t{number}\n\\", number % 2 == 0, moment) for number in range(1000)] + [
        (1000, None, None, None)
    ]
    equal(await conn.copy_records_to_table("copied", records=records), "COPY 1001")
    equal([tuple(row) for row in await conn.fetch("SELECT * FROM copied ORDER BY id")], records)
    out = io.BytesIO()
    equal(
        await conn.copy_from_query("SELECT id, name FROM copied WHERE id < $1", 2, output=out, format="csv"), "COPY 2"
    )
    equal(out.getvalue().decode(), '0,"tab\t0\n\\"\n1,"tab\t1\n\\"\n')
    equal(await conn.copy_to_table("copied", source=io.BytesIO(b"2000\ttext\tt\t\\N\n")), "COPY 1")
    equal(tuple(await conn.fetchrow("SELECT * FROM copied WHERE id = 2000")), (2000, "text", True, None))
    await conn.close()


async def check_transactions():
    conn = await asyncpg.connect(URL)
    await conn.execute("CREATE TABLE ledger (id int PRIMARY KEY)")
    async with conn.transaction():
        await conn.execute("INSERT INTO ledger VALUES (1)")

        async def clash():
            async with conn.transaction():
                await conn.execute("INSERT INTO ledger VALUES (2)")
                await conn.execute("INSERT INTO ledger VALUES (1)")

        await fails_later(asyncpg.UniqueViolationError, clash())
        await conn.execute("INSERT INTO ledger VALUES (3)")
        equal([row[0] async for row in conn.cursor("SELECT id FROM ledger ORDER BY id", prefetch=1)], [1, 3])
    async with conn.transaction(isolation="serializable", readonly=True):
        await fails_later(asyncpg.ReadOnlySQLTransactionError, refused_in_savepoint(conn))
    equal([row["id"] for row in await conn.fetch("SELECT id FROM ledger ORDER BY id")], [1, 3])
    await conn.close()


async def refused_in_savepoint(conn):
    async with conn.transaction():
        await conn.execute("INSERT INTO ledger VALUES (4)")


async def check_errors():
    conn = await asyncpg.connect(URL)
    await conn.execute(
        "CREATE TABLE strict (id int PRIMARY KEY, parent int REFERENCES strict, name varchar(5) NOT NULL, age int CONSTRAINT grown CHECK (age > 0))"
    )
    insert = "INSERT INTO strict VALUES ($1, $2, $3, $4)"
    await conn.execute(insert, 1, None, "a", 1)
    error = await fails_later(asyncpg.UniqueViolationError, conn.execute(insert, 1, None, "a", 1))
    equal((error.constraint_name, error.table_name, error.schema_name), ("strict_pkey", "strict", "public"))
    equal(error.detail, "Key (id)=(1) already exists.")
    await fails_later(asyncpg.ForeignKeyViolationError, conn.execute(insert, 2, 99, "a", 1))
    error = await fails_later(asyncpg.NotNullViolationError, conn.execute(insert, 2, None, None, 1))
    equal(error.column_name, "name")
    error = await fails_later(asyncpg.CheckViolationError, conn.execute(insert, 2, None, "a", 0))
    equal(error.constraint_name, "grown")
    await fails_later(asyncpg.StringDataRightTruncationError, conn.execute(insert, 2, None, "abcdef", 1))
    await fails_later(asyncpg.UndefinedTableError, conn.execute("SELECT * FROM missing"))
    await fails_later(asyncpg.UndefinedColumnError, conn.execute("SELECT missing FROM strict"))
    await fails_later(asyncpg.DivisionByZeroError, conn.execute("SELECT 1 / 0"))
    await conn.close()


make(
    check_pool,
    check_types,
    check_arrays,
    check_many,
    check_copy,
    check_transactions,
    check_errors,
)
