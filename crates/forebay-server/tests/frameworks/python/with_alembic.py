"""Alembic: revisions that autogenerate wrote, upgraded and downgraded, until it finds nothing more to change.

Does not know which server it talks to: all of it holds for PostgreSQL itself.
"""

import contextlib
import io
import pathlib
import tempfile

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext

from checking import equal, make, url_for

URL = url_for("postgresql+psycopg")
TEMPORARY = tempfile.TemporaryDirectory(prefix="forebay-alembic-")
FOLDER = pathlib.Path(TEMPORARY.name)
ENVIRONMENT = """
from alembic import context
import sqlalchemy as sa

attributes = context.config.attributes
with sa.create_engine(attributes["url"]).connect() as connection:
    context.configure(
        connection=connection, target_metadata=attributes["metadata"], compare_type=True, compare_server_default=True
    )
    with context.begin_transaction():
        context.run_migrations()
"""


def first():
    metadata = sa.MetaData()
    sa.Table(
        "users",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("email", sa.String(50), nullable=False),
        sa.Column("nick", sa.String(20)),
    )
    return metadata


def second():
    """A column wider, one gone, two new; a unique constraint, a check, an index; a table that refers to the first."""
    metadata = sa.MetaData()
    sa.Table(
        "users",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("email", sa.String(200), nullable=False),
        sa.Column("active", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("balance", sa.Numeric(10, 2), server_default="0"),
        sa.UniqueConstraint("email", name="users_email"),
        sa.Index("users_active", "active"),
    )
    sa.Table(
        "orders",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("user_id", sa.ForeignKey("users.id", name="orders_user", ondelete="CASCADE"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now()),
        sa.Column("total", sa.Numeric(10, 2)),
        sa.CheckConstraint("total > 0", name="orders_total"),
    )
    return metadata


def third():
    """The nullable turns required, the type of a column changes, a constraint goes."""
    metadata = second()
    users, orders = metadata.tables["users"], metadata.tables["orders"]
    users.c.balance.nullable = False
    users.indexes.clear()
    orders.c.total.type = sa.Numeric(12, 4)
    return metadata


def config(metadata):
    settings = Config(stdout=io.StringIO())
    settings.set_main_option("script_location", str(FOLDER))
    settings.attributes.update(url=URL, metadata=metadata)
    return settings


def revise(metadata, message):
    """Lets autogenerate write the next revision; returns the text of its upgrade and downgrade."""
    script = command.revision(config(metadata), message=message, autogenerate=True)
    return pathlib.Path(script.path).read_text()


def columns(table):
    with sa.create_engine(URL).connect() as conn:
        return {column["name"]: column for column in sa.inspect(conn).get_columns(table)}


def execute(statement, **values):
    with sa.create_engine(URL).begin() as conn:
        return conn.execute(sa.text(statement), values)


def check_first_revision():
    (FOLDER / "versions").mkdir()
    (FOLDER / "env.py").write_text(ENVIRONMENT)
    (FOLDER / "script.py.mako").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        "revision = ${repr(up_revision)}\ndown_revision = ${repr(down_revision)}\n"
        "def upgrade():\n    ${upgrades}\ndef downgrade():\n    ${downgrades}\n"
    )
    text = revise(first(), "first")
    assert "create_table('users'" in text, text
    command.upgrade(config(first()), "head")
    equal(list(columns("users")), ["id", "email", "nick"])
    execute("INSERT INTO users (email, nick) VALUES ('a@example.com', 'a')")


def check_second_revision():
    text = revise(second(), "second")
    for expected in (
        "create_table('orders'",
        "add_column('users'",
        "drop_column('users', 'nick')",
        "alter_column('users', 'email'",
        "create_unique_constraint",
        "create_index",
    ):
        assert expected in text, (expected, text)
    command.upgrade(config(second()), "head")
    equal(set(columns("users")), {"id", "email", "active", "balance"})
    equal(columns("users")["email"]["type"].length, 200)
    row = execute("SELECT email, active, balance FROM users").one()
    equal((row.email, row.active, str(row.balance)), ("a@example.com", True, "0.00"))
    execute("INSERT INTO orders (user_id, total) SELECT id, 5 FROM users")


def check_third_revision():
    text = revise(third(), "third")
    for expected in ("drop_index", "alter_column('users', 'balance'", "alter_column('orders', 'total'"):
        assert expected in text, (expected, text)
    command.upgrade(config(third()), "head")
    equal(columns("users")["balance"]["nullable"], False)
    equal(str(execute("SELECT total FROM orders").scalar_one()), "5.0000")


def check_nothing_left():
    with contextlib.redirect_stdout(io.StringIO()):
        command.check(config(third()))
    command.upgrade(config(third()), "head")


def check_constraints_hold():
    for state, statement in {
        "23505": "INSERT INTO users (email) VALUES ('a@example.com')",
        "23514": "INSERT INTO orders (user_id, total) SELECT id, 0 FROM users",
        "23503": "INSERT INTO orders (user_id, total) VALUES (1000000, 1)",
        "23502": "INSERT INTO users (email, balance) VALUES ('b@example.com', NULL)",
    }.items():
        try:
            execute(statement)
        except sa.exc.IntegrityError as error:
            equal(error.orig.sqlstate, state)
        else:
            raise AssertionError(f"no {state}: {statement}")


def check_downgrade():
    command.downgrade(config(third()), "-1")
    equal(columns("users")["balance"]["nullable"], True)
    command.downgrade(config(third()), "-1")
    equal(set(columns("users")), {"id", "email", "nick"})
    command.upgrade(config(third()), "head")
    command.downgrade(config(third()), "base")
    with sa.create_engine(URL).connect() as conn:
        equal(sa.inspect(conn).get_table_names(), ["alembic_version"])
        equal(MigrationContext.configure(conn).get_current_revision(), None)


make(
    check_first_revision,
    check_second_revision,
    check_third_revision,
    check_nothing_left,
    check_constraints_hold,
    check_downgrade,
)
