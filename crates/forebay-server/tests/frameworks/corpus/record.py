"""Writes the files beside it: what each framework's program sends to a real PostgreSQL, as it passes a relay of bytes.

    python3 record.py postgresql://postgres@127.0.0.1:5432/postgres [NAME ...]

The user must be one who may create databases and needs no password; each program gets a database of its own, which is dropped again.
Needs what `cargo xtask setup` installed.

A file holds records, in the order in which they were first sent, between lines "-- ;". Statements that define or change tables stand
there each time they were sent, so that a file can be replayed; others once for each text and types of parameters. Lines before a text:

    -- sent: simple or extended
    -- parameters: types the program gave them; "unspecified" where it left one open; no line where it named none
    -- described: types of the parameters as PostgreSQL described them, where the program asked
    -- columns: names, types and, in brackets, type modifiers of the rows, where there were any; once for each shape
    -- fails: SQLSTATE and message, where PostgreSQL refused it the first time
"""

import asyncio
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent
INSTALLED = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or SOURCES.parents[3] / "target") / "frameworks"
JAVA = ["java", "-cp", f"{INSTALLED}/java/classes:{INSTALLED}/java/libraries/*"]


def python(program, *arguments):
    return [f"{INSTALLED}/python/bin/python3", "-B", f"{SOURCES}/python/{program}", "{URL}", *arguments]


PROGRAMS = {
    "sqlalchemy_psycopg": python("with_sqlalchemy.py", "psycopg"),
    "sqlalchemy_asyncpg": python("with_sqlalchemy.py", "asyncpg"),
    "alembic": python("with_alembic.py"),
    "django": python("with_django.py"),
    "asyncpg": python("with_asyncpg.py"),
    "psycopg_copy": python("with_psycopg_copy.py"),
    **{
        name: ["node", f"{SOURCES}/node/with_{name}.js", "{URL}"]
        for name in ("typeorm", "sequelize", "knex", "drizzle")
    },
    "prisma": ["node", f"{SOURCES}/prisma/with_prisma.js", "{URL}"],
    **{name: [f"{INSTALLED}/go/frameworks", name, "{URL}"] for name in ("lib_pq", "pgx", "gorm")},
    "pgjdbc": [*JAVA, "WithPgjdbc", "{URL}"],
    "hibernate": [*JAVA, "WithHibernate", "{URL}"],
    "pdo": ["php", f"{SOURCES}/php/with_pdo.php", "{URL}"],
    **{
        name: ["psql", "-qX", "{URL}", "-o", "/dev/null", "-f", f"{SOURCES}/tools/{name}.sql"]
        for name in ("psql", "dbeaver", "pgadmin", "metabase", "grafana")
    },
}
DEFINES = re.compile(r"(\s|--.*\n|SET CONSTRAINTS[^;]*;)*(CREATE|ALTER|DROP|TRUNCATE|COMMENT)\b", re.IGNORECASE)
# What a client sends first when it asks for encryption, or wants a statement ended.
BEFORE_START = (80877102, 80877103, 80877104)


class Statement:
    """One text as it was sent, and what PostgreSQL told of it."""

    def __init__(self, sent, text, parameters=()):
        self.sent, self.text, self.parameters = sent, text, parameters
        self.described, self.columns, self.fails, self.worked = None, [], None, False

    def record(self, type_names):
        def named(oid):
            return "unspecified" if oid == 0 else type_names.get(oid, "unknown")

        lines = [f"-- sent: {self.sent}"]
        if self.parameters:
            lines.append("-- parameters: " + ", ".join(map(named, self.parameters)))
        if self.described:
            lines.append("-- described: " + ", ".join(map(named, self.described)))
        for columns in self.columns:
            shown = [
                (name if name.isidentifier() else json.dumps(name, ensure_ascii=False))
                + f" {named(oid)}"
                + (f"[{modifier}]" if modifier != -1 else "")
                for name, oid, modifier in columns
            ]
            lines.append("-- columns: " + ", ".join(shown))
        if self.fails:
            lines.append(f"-- fails: {self.fails}")
        return "\n".join([*lines, self.text.strip("\n").rstrip()]) + "\n"


class Recorder:
    """All that one program sent."""

    def __init__(self):
        self.statements, self.known = [], {}

    def note(self, sent, text, parameters=()):
        key = (text.strip(), parameters)
        if key not in self.known or DEFINES.match(text):
            self.known[key] = Statement(sent, text, parameters)
            self.statements.append(self.known[key])
        return self.known[key]


class Connection:
    """The two directions of one connection; `awaited` are the client's messages whose answers are still to come."""

    def __init__(self, recorder):
        self.recorder, self.awaited, self.named, self.portals = recorder, [], {}, {}

    def of_client(self, kind, body):
        if kind == b"Q":
            self.awaited.append(("query", self.recorder.note("simple", text_at(body, 0)[0])))
        elif kind == b"P":
            name, at = text_at(body, 0)
            text, at = text_at(body, at)
            (count,) = struct.unpack_from("!H", body, at)
            self.named[name] = self.recorder.note("extended", text, struct.unpack_from(f"!{count}I", body, at + 2))
            self.awaited.append(("parse", self.named[name]))
        elif kind == b"B":
            portal, at = text_at(body, 0)
            self.portals[portal] = self.named.get(text_at(body, at)[0])
            self.awaited.append(("bind", self.portals[portal]))
        elif kind == b"D":
            of = self.named if body[:1] == b"S" else self.portals
            self.awaited.append(("describe", of.get(text_at(body, 1)[0])))
        elif kind == b"E":
            self.awaited.append(("execute", self.portals.get(text_at(body, 0)[0])))
        elif kind == b"C":
            self.awaited.append(("close", None))
        elif kind == b"S":
            self.awaited.append(("sync", None))

    def of_server(self, kind, body):
        what, statement = self.awaited[0] if self.awaited else ("", None)
        if kind in b"123":
            self.awaited.pop(0)
        elif kind == b"t" and statement:
            (count,) = struct.unpack_from("!H", body)
            statement.described = struct.unpack_from(f"!{count}I", body, 2)
        elif kind in (b"T", b"n"):
            if kind == b"T" and statement:
                columns = columns_of(body)
                if columns not in statement.columns:
                    statement.columns.append(columns)
            if what == "describe":
                self.awaited.pop(0)
        elif kind in (b"C", b"s", b"I"):
            if statement:
                statement.worked = True
            if what == "execute":
                self.awaited.pop(0)
        elif kind == b"E":
            fields = {field[:1]: field[1:].decode() for field in body.split(b"\0")}
            if statement and not statement.worked:
                statement.fails = f"{fields[b'C']} {fields[b'M']}".replace("\n", " ")
            if what != "query":
                while self.awaited and self.awaited[0][0] != "sync":
                    self.awaited.pop(0)
        elif kind == b"Z" and self.awaited:
            self.awaited.pop(0)


def text_at(body, at):
    end = body.index(b"\0", at)
    return body[at:end].decode("utf-8", "replace"), end + 1


def columns_of(body):
    (count,), at, columns = struct.unpack_from("!H", body), 2, []
    for _ in range(count):
        name, at = text_at(body, at)
        _, _, oid, _, modifier, _ = struct.unpack_from("!IHIhih", body, at)
        columns.append((name, oid, modifier))
        at += 18
    return columns


async def relay(recorder, upstream, reader, writer):
    from_server, to_server = await asyncio.open_connection(upstream.hostname, upstream.port)
    connection = Connection(recorder)

    async def of_client():
        while True:
            head = await reader.readexactly(8)
            length, code = struct.unpack("!II", head)
            to_server.write(head + await reader.readexactly(length - 8))
            if code not in BEFORE_START:
                break
        while True:
            head = await reader.readexactly(5)
            body = await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
            connection.of_client(head[:1], body)
            to_server.write(head + body)
            await to_server.drain()

    async def of_server():
        started = False
        while True:
            kind = await from_server.readexactly(1)
            if not started and kind == b"N":
                writer.write(kind)
                continue
            length = await from_server.readexactly(4)
            body = await from_server.readexactly(struct.unpack("!I", length)[0] - 4)
            if started:
                connection.of_server(kind, body)
            started = started or kind == b"Z"
            writer.write(kind + length + body)
            await writer.drain()

    async def until_it_ends(work, other):
        try:
            await work()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            other.close()

    await asyncio.gather(until_it_ends(of_client, to_server), until_it_ends(of_server, writer))


async def record(name, upstream, type_names):
    recorder = Recorder()
    database = f"forebay_{name}"
    sql(upstream, f"DROP DATABASE IF EXISTS {database}")
    sql(upstream, f"CREATE DATABASE {database}")
    listener = await asyncio.start_server(lambda *streams: relay(recorder, upstream, *streams), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    url = f"postgresql://{upstream.username}@127.0.0.1:{port}/{database}"
    program = [word.replace("{URL}", url) for word in PROGRAMS[name]]
    environment = {**os.environ, "NODE_PATH": f"{INSTALLED}/node/node_modules:{INSTALLED}/prisma/node_modules"}
    process = await asyncio.create_subprocess_exec(
        *program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output, _ = await process.communicate()
    listener.close()
    sql(upstream, f"DROP DATABASE {database} WITH (FORCE)")
    if process.returncode:
        sys.exit(f"{output.decode()}\n{name} failed; nothing was written")
    text = "-- ;\n".join(statement.record(type_names) for statement in recorder.statements)
    (HERE / f"{name}.sql").write_text(text)
    print(f"{name}: {len(recorder.statements)} statements")


def sql(upstream, statement):
    command = ["psql", "-qXAt", upstream.geturl(), "-c", "SET client_min_messages = warning", "-c", statement]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    upstream = urllib.parse.urlsplit(sys.argv[1])
    rows = sql(upstream, "SELECT oid, typname FROM pg_type WHERE oid < 16384").split()
    type_names = {int(oid): name for oid, name in (row.split("|") for row in rows)}
    for name in sys.argv[2:] or PROGRAMS:
        asyncio.run(record(name, upstream, type_names))


main()
