"""SQLAlchemy 2 with psycopg 3 or asyncpg, the driver named by the second argument: core, ORM and reflection.

Does not know which server it talks to: all of it holds for PostgreSQL itself.
"""

import datetime
import decimal
import enum
import sys
import uuid

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import create_async_engine

from checking import equal, fails, make, url_for

DRIVER = sys.argv[2]
URL = url_for(f"postgresql+{DRIVER}")


class Colour(enum.Enum):
    red = "red"
    green = "green"


class Base(orm.DeclarativeBase):
    pass


tags = sa.Table(
    "book_tags",
    Base.metadata,
    sa.Column("book_id", sa.ForeignKey("books.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag_id", sa.ForeignKey("tags.id"), primary_key=True),
)


class Author(Base):
    __tablename__ = "authors"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(50), unique=True)
    born: orm.Mapped[datetime.date | None]
    books: orm.Mapped[list["Book"]] = orm.relationship(
        back_populates="author", cascade="all, delete-orphan", order_by="Book.title"
    )


class Book(Base):
    __tablename__ = "books"
    __table_args__ = (
        sa.CheckConstraint("price >= 0", name="price_not_negative"),
        sa.UniqueConstraint("author_id", "title", name="one_title_an_author"),
        sa.Index("books_published", "published", "title"),
    )
    id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, primary_key=True)
    author_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("authors.id", name="books_author"))
    title: orm.Mapped[str] = orm.mapped_column(sa.Text)
    price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(10, 2), server_default="0")
    published: orm.Mapped[datetime.datetime | None] = orm.mapped_column(sa.DateTime(timezone=True))
    version: orm.Mapped[int] = orm.mapped_column(default=1)
    author: orm.Mapped[Author] = orm.relationship(back_populates="books")
    tags: orm.Mapped[list["Tag"]] = orm.relationship(secondary=tags)
    __mapper_args__ = {"version_id_col": version}


class Tag(Base):
    __tablename__ = "tags"
    id: orm.Mapped[uuid.UUID] = orm.mapped_column(primary_key=True, default=uuid.uuid4)
    word: orm.Mapped[str] = orm.mapped_column(sa.String(20), unique=True)


kinds = sa.Table(
    "kinds",
    Base.metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("small", sa.SmallInteger),
    sa.Column("big", sa.BigInteger),
    sa.Column("price", sa.Numeric(12, 4)),
    sa.Column("ratio", sa.Double),
    sa.Column("ok", sa.Boolean, server_default=sa.true()),
    sa.Column("name", sa.String(20)),
    sa.Column("note", sa.Text),
    sa.Column("data", sa.LargeBinary),
    sa.Column("day", sa.Date),
    sa.Column("clock", sa.Time),
    sa.Column("local", sa.DateTime),
    sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now()),
    sa.Column("span", sa.Interval),
    sa.Column("doc", sa.JSON),
    sa.Column("docb", postgresql.JSONB),
    sa.Column("uid", sa.Uuid),
    sa.Column("colour", sa.Enum(Colour, native_enum=False, create_constraint=True)),
)
ROW = {
    "small": -7,
    "big": 2**62,
    "price": decimal.Decimal("12345.6700"),
    "ratio": 0.1,
    "ok": False,
    "name": "naïve 🐘 'q' \\ % :x",
    "note": "",
    "data": bytes(range(256)),
    "day": datetime.date(2024, 2, 29),
    "clock": datetime.time(23, 59, 59, 250000),
    "local": datetime.datetime(2024, 2, 29, 12, 0, 0, 1),
    "at": datetime.datetime(2024, 2, 29, 23, 59, 59, 123456, datetime.timezone.utc),
    "span": datetime.timedelta(days=1, hours=2, seconds=3.5),
    "doc": {"a": [1, None, "é"]},
    "docb": {"b": [True, 1.5]},
    "uid": uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "colour": Colour.green,
}


class Engine:
    """An engine used the same way whether the driver blocks or not."""

    def __init__(self):
        if DRIVER == "asyncpg":
            self.engine = create_async_engine(URL)
        else:
            self.engine = sa.create_engine(URL)

    async def run(self, work):
        """Does the work in a transaction on a connection."""
        if DRIVER == "asyncpg":
            async with self.engine.begin() as conn:
                return await conn.run_sync(work)
        with self.engine.begin() as conn:
            return work(conn)


engine = Engine()


def in_session(work):
    """The work on a connection, given a session on it instead."""

    def with_session(conn):
        with orm.Session(conn, join_transaction_mode="create_savepoint") as session:
            outcome = work(session)
            session.commit()
            return outcome

    return with_session


async def check_connect():
    equal(await engine.run(lambda conn: conn.scalar(sa.select(1))), 1)
    equal(await engine.run(lambda conn: conn.dialect.default_schema_name), "public")
    equal(await engine.run(lambda conn: conn.get_isolation_level()), "READ COMMITTED")


async def check_create_all():
    await engine.run(Base.metadata.create_all)
    # The second time finds everything there.
    await engine.run(Base.metadata.create_all)


async def check_types():
    def work(conn):
        given = conn.execute(sa.insert(kinds).values(ROW).returning(kinds)).one()._asdict()
        equal({name: given[name] for name in ROW}, ROW)
        conn.execute(sa.insert(kinds).values(name="nulls"))
        empty = conn.execute(sa.select(kinds).where(kinds.c.name == "nulls")).one()._asdict()
        equal(empty["ok"], True)
        assert abs(datetime.datetime.now(datetime.timezone.utc) - empty["at"]) < datetime.timedelta(minutes=1)
        equal({name for name in ROW if empty[name] is None}, set(ROW) - {"ok", "at", "name"})
        for name, value in ROW.items():
            if name != "doc":
                count = sa.select(sa.func.count()).select_from(kinds).where(kinds.c[name] == value)
                equal(conn.scalar(count), 1, name)

    await engine.run(work)


async def check_core_bulk_insert():
    def work(conn):
        rows = [{"name": f"row {number}", "small": number} for number in range(1200)]
        conn.execute(sa.insert(kinds), rows)
        # In pages, in the order of the parameters, as SQLAlchemy promises with this option.
        returning = sa.insert(kinds).returning(kinds.c.id, kinds.c.name, sort_by_parameter_order=True)
        given = conn.execute(returning, [{"name": f"back {number}"} for number in range(1200)]).all()
        equal([name for _, name in given], [f"back {number}" for number in range(1200)])
        equal(len({id for id, _ in given}), 1200)
        updated = conn.execute(
            sa.update(kinds).where(kinds.c.small.between(10, 19)).values(small=kinds.c.small + 10000)
        )
        equal(updated.rowcount, 10)
        equal(conn.execute(sa.delete(kinds).where(kinds.c.name.like("back %"))).rowcount, 1200)

    await engine.run(work)


async def check_upsert():
    def work(conn):
        insert = postgresql.insert(Author.__table__)
        conn.execute(insert.values(name="Ann"))
        upsert = insert.on_conflict_do_update(index_elements=["name"], set_={"born": insert.excluded.born})
        day = datetime.date(1950, 1, 2)
        equal(conn.execute(upsert.returning(Author.born), {"name": "Ann", "born": day}).scalar_one(), day)
        ignored = insert.on_conflict_do_nothing().returning(Author.id)
        equal(conn.execute(ignored, {"name": "Ann"}).all(), [])
        conn.execute(sa.delete(Author))

    await engine.run(work)


async def check_orm():
    def write(session):
        poetry, prose = Tag(word="poetry"), Tag(word="prose")
        for number in range(3):
            author = Author(name=f"author {number}", born=datetime.date(1900 + number, 1, 1))
            author.books = [
                Book(
                    title=f"title {at}",
                    price=decimal.Decimal(at) + decimal.Decimal("0.50"),
                    tags=[poetry, prose][: at + 1],
                )
                for at in range(3)
            ]
            session.add(author)
        session.flush()
        equal(len({author.id for author in session.scalars(sa.select(Author))}), 3)

    def read(session):
        loaded = session.scalars(
            sa.select(Author).options(orm.selectinload(Author.books).joinedload(Book.tags)).order_by(Author.name)
        ).all()
        equal([(author.name, len(author.books)) for author in loaded], [(f"author {n}", 3) for n in range(3)])
        equal(sorted(tag.word for tag in loaded[0].books[1].tags), ["poetry", "prose"])
        total = sa.func.sum(Book.price).label("total")
        grouped = (
            sa.select(Author.name, total, sa.func.count()).join(Author.books).group_by(Author.name).having(total > 4)
        )
        equal(
            session.execute(grouped.order_by(sa.desc(total), Author.name).limit(2).offset(1)).all()[0],
            ("author 1", decimal.Decimal("4.50"), 3),
        )
        ranked = sa.select(
            Book.title, sa.func.row_number().over(partition_by=Book.author_id, order_by=Book.price.desc())
        )
        equal(session.execute(ranked.order_by(Book.id)).first(), ("title 0", 3))
        with_poetry = sa.select(sa.func.count()).select_from(Book).where(Book.tags.any(Tag.word == "prose"))
        equal(session.scalar(with_poetry), 6)
        latest = (
            sa.select(Book.author_id, sa.func.max(Book.price).label("price")).group_by(Book.author_id).cte("latest")
        )
        dearest = sa.select(Book.title).join(
            latest, (latest.c.author_id == Book.author_id) & (latest.c.price == Book.price)
        )
        equal(session.scalars(dearest).all(), ["title 2"] * 3)
        matching = sa.select(Author.name).where(Author.name.ilike("AUTHOR %"), Author.id.in_(sa.select(Book.author_id)))
        equal(len(session.scalars(matching).all()), 3)

    def change(session):
        author = session.scalars(sa.select(Author).where(Author.name == "author 0")).one()
        author.born = None
        author.books[0].title = "another title"
        del author.books[2]
        session.flush()
        equal([book.version for book in author.books], [2, 1])
        session.delete(session.scalars(sa.select(Author).where(Author.name == "author 2")).one())
        session.flush()
        equal(session.scalar(sa.select(sa.func.count()).select_from(Book)), 5)
        locked = session.scalars(sa.select(Author).where(Author.name == "author 0").with_for_update()).one()
        equal(locked.born, None)

    for work in (write, read, change):
        await engine.run(in_session(work))


async def check_errors():
    async def refused(kind, state, statement, **values):
        try:
            await engine.run(lambda conn: conn.execute(statement, values))
        except kind as error:
            found = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
            equal(found, state)
            return
        raise AssertionError(f"no {kind.__name__} where one was expected")

    wrong, integrity = sa.exc.ProgrammingError, sa.exc.IntegrityError
    await refused(integrity, "23505", sa.insert(Author), name="author 0")
    await refused(integrity, "23502", sa.insert(Author), name=None)
    await refused(integrity, "23503", sa.insert(Book), author_id=10**6, title="x")
    await refused(
        integrity,
        "23514",
        sa.insert(Book).values(author_id=sa.select(sa.func.min(Author.id)).scalar_subquery(), title="x", price=-1),
    )
    await refused(integrity, "23514", sa.text("INSERT INTO kinds (colour) VALUES ('blue')"))
    await refused(sa.exc.DBAPIError, "22001", sa.insert(Tag), id=uuid.uuid4(), word="x" * 21)
    await refused(wrong, "42P01", sa.text("SELECT * FROM missing"))
    await refused(wrong, "42703", sa.text("SELECT missing FROM authors"))


async def check_transactions():
    class Undone(Exception):
        pass

    def work(conn):
        conn.execute(sa.insert(Tag).values(id=uuid.uuid4(), word="kept"))
        inner = conn.begin_nested()
        conn.execute(sa.insert(Tag).values(id=uuid.uuid4(), word="undone"))
        inner.rollback()
        # A violation inside a savepoint leaves the transaction usable.
        with orm.Session(conn) as session:

            def clash():
                with session.begin_nested():
                    session.add(Tag(word="kept"))

            fails(sa.exc.IntegrityError, clash)
            session.commit()
        equal(sorted(conn.scalars(sa.select(Tag.word))), ["kept", "poetry", "prose"])

    def undone(conn):
        conn.execute(sa.delete(tags))
        raise Undone

    await engine.run(work)
    try:
        await engine.run(undone)
    except Undone:
        pass
    assert await engine.run(lambda conn: conn.scalar(sa.select(sa.func.count()).select_from(tags))) > 0

    def serializable(conn):
        conn = conn.execution_options()
        conn.execute(sa.text("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"))
        equal(conn.get_isolation_level(), "SERIALIZABLE")

    await engine.run(serializable)


async def check_inspect():
    def work(conn):
        seen = sa.inspect(conn)
        equal(set(seen.get_table_names()), {"authors", "books", "tags", "book_tags", "kinds"})
        assert "public" in seen.get_schema_names()
        equal(seen.get_view_names(), [])
        assert seen.has_table("books") and not seen.has_table("missing")
        columns = {column["name"]: column for column in seen.get_columns("books")}
        equal(str(columns["price"]["type"]), "NUMERIC(10, 2)")
        equal(columns["price"]["nullable"], False)
        equal(columns["published"]["type"].timezone, True)
        assert columns["id"]["autoincrement"]
        equal(seen.get_pk_constraint("book_tags")["constrained_columns"], ["book_id", "tag_id"])
        keys = seen.get_foreign_keys("books")
        equal(
            [(key["name"], key["referred_table"], key["referred_columns"]) for key in keys],
            [("books_author", "authors", ["id"])],
        )
        equal(
            {key["referred_table"]: key["options"] for key in seen.get_foreign_keys("book_tags")},
            {"books": {"ondelete": "CASCADE"}, "tags": {}},
        )
        equal(
            [(unique["name"], unique["column_names"]) for unique in seen.get_unique_constraints("books")],
            [("one_title_an_author", ["author_id", "title"])],
        )
        indexes = {index["name"]: index["column_names"] for index in seen.get_indexes("books")}
        equal(indexes, {"books_published": ["published", "title"], "one_title_an_author": ["author_id", "title"]})
        checks = seen.get_check_constraints("books")
        equal([check["name"] for check in checks], ["price_not_negative"])

    await engine.run(work)


async def check_reflect():
    def work(conn):
        found = sa.MetaData()
        found.reflect(conn)
        equal(set(found.tables), set(Base.metadata.tables))
        for name, table in Base.metadata.tables.items():
            equal([column.name for column in found.tables[name].columns], [column.name for column in table.columns])
            equal(
                [column.nullable for column in found.tables[name].columns],
                [column.nullable for column in table.columns],
                name,
            )
            for column in table.columns:
                seen = found.tables[name].c[column.name].type
                equal(
                    seen.python_type if name != "kinds" else None,
                    column.type.python_type if name != "kinds" else None,
                    column.name,
                )
        shown = {column.name: str(column.type) for column in found.tables["kinds"].columns}
        expected = {
            "id": "INTEGER",
            "small": "SMALLINT",
            "big": "BIGINT",
            "price": "NUMERIC(12, 4)",
            "ratio": "DOUBLE PRECISION",
            "ok": "BOOLEAN",
            "name": "VARCHAR(20)",
            "note": "TEXT",
            "data": "BYTEA",
            "day": "DATE",
            "clock": "TIME",
            "local": "TIMESTAMP",
            "at": "TIMESTAMP",
            "span": "INTERVAL",
            "doc": "JSON",
            "docb": "JSONB",
            "uid": "UUID",
            "colour": "VARCHAR(5)",
        }
        equal(shown, expected)
        equal(found.tables["kinds"].c.id.identity.start, 1)

    await engine.run(work)


async def check_views_and_drop():
    def work(conn):
        conn.execute(sa.text("CREATE VIEW cheap AS SELECT id, title FROM books WHERE price < 1"))
        equal(sa.inspect(conn).get_view_names(), ["cheap"])
        assert "price" in sa.inspect(conn).get_view_definition("cheap")
        conn.execute(sa.text("DROP VIEW cheap"))
        Base.metadata.drop_all(conn)
        equal(sa.inspect(conn).get_table_names(), [])

    await engine.run(work)


make(
    check_connect,
    check_create_all,
    check_types,
    check_core_bulk_insert,
    check_upsert,
    check_orm,
    check_errors,
    check_transactions,
    check_inspect,
    check_reflect,
    check_views_and_drop,
)
