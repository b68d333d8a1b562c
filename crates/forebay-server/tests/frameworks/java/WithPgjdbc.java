import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.Date;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.TimeZone;
import java.util.TreeSet;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.util.PGobject;
import org.postgresql.util.PSQLException;

/**
 * pgjdbc behind HikariCP: types as JDBC sets them, batches, keys, cursors, metadata, transactions, COPY.
 *
 * <p>Does not know which server it talks to: all of it holds for PostgreSQL itself.
 */
public final class WithPgjdbc {

    private static final String KINDS =
        "CREATE TABLE kinds (id serial PRIMARY KEY, small smallint, big bigint, price numeric(12,4), " +
        "ratio double precision, part real, ok boolean, name varchar(40) NOT NULL UNIQUE, note text, data bytea, day date, clock time, " +
        "local timestamp, at timestamptz, doc jsonb, uid uuid)";
    private static final String INSERT =
        "INSERT INTO kinds (small, big, price, ratio, part, ok, name, note, data, day, clock, local, at, doc, " +
        "uid) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    private static final UUID UID = UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
    private static final LocalDateTime LOCAL = LocalDateTime.of(2024, 2, 29, 23, 59, 59, 123456000);

    private static HikariDataSource pool;

    public static void main(String[] arguments) {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        new Checking()
            .check("pool", () -> pool(arguments[0]))
            .check("types", WithPgjdbc::types)
            .check("many_times", WithPgjdbc::manyTimes)
            .check("batches", WithPgjdbc::batches)
            .check("generated_keys", WithPgjdbc::generatedKeys)
            .check("cursor", WithPgjdbc::cursor)
            .check("errors", WithPgjdbc::errors)
            .check("transactions", WithPgjdbc::transactions)
            .check("metadata", WithPgjdbc::metadata)
            .check("copy", WithPgjdbc::copy)
            .check("simple_protocol", () -> simpleProtocol(arguments[0]))
            .make();
    }

    private static void pool(String url) throws SQLException {
        var config = new HikariConfig();
        config.setJdbcUrl(Checking.url(url, "&reWriteBatchedInserts=true"));
        config.setMaximumPoolSize(3);
        config.setConnectionTestQuery("SELECT 1");
        pool = new HikariDataSource(config);
        for (int turn = 0; turn < 5; turn++) {
            try (var connection = pool.getConnection()) {
                Checking.equal(connection.isValid(5), true);
                Checking.equal(connection.getSchema(), "public");
                connection.setReadOnly(turn % 2 == 1);
                connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                Checking.equal(connection.getTransactionIsolation(), Connection.TRANSACTION_SERIALIZABLE);
            }
        }
        try (var connection = pool.getConnection()) {
            // The pool took it back.
            Checking.equal(connection.getTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
            execute(connection, KINDS);
        }
    }

    private static void types() throws SQLException {
        try (var connection = pool.getConnection(); var insert = connection.prepareStatement(INSERT)) {
            var document = new PGobject();
            document.setType("jsonb");
            document.setValue("{\"a\": [1, null, \"é\"]}");
            byte[] bytes = new byte[256];
            for (int at = 0; at < bytes.length; at++) {
                bytes[at] = (byte) at;
            }
            insert.setShort(1, (short) -7);
            insert.setLong(2, 1L << 62);
            insert.setBigDecimal(3, new BigDecimal("12345.6700"));
            insert.setDouble(4, 0.1);
            insert.setFloat(5, 0.5f);
            insert.setBoolean(6, false);
            insert.setString(7, "naïve 🐘 'q' \\ ?");
            insert.setString(8, "");
            insert.setBytes(9, bytes);
            insert.setDate(10, Date.valueOf("2024-02-29"));
            insert.setTime(11, Time.valueOf("23:59:59"));
            insert.setTimestamp(12, Timestamp.valueOf(LOCAL));
            insert.setTimestamp(13, Timestamp.from(LOCAL.toInstant(ZoneOffset.UTC)));
            insert.setObject(14, document);
            insert.setObject(15, UID);
            Checking.equal(insert.executeUpdate(), 1);
            insert.setObject(7, "of java.time");
            insert.setObject(10, LocalDate.of(2024, 2, 29));
            insert.setObject(12, LOCAL);
            insert.setObject(13, OffsetDateTime.of(LOCAL, ZoneOffset.UTC));
            Checking.equal(insert.executeUpdate(), 1);
            int[] types = {
                Types.SMALLINT,
                Types.BIGINT,
                Types.NUMERIC,
                Types.DOUBLE,
                Types.REAL,
                Types.BOOLEAN,
                Types.VARCHAR,
                Types.VARCHAR,
                Types.BINARY,
                Types.DATE,
                Types.TIME,
                Types.TIMESTAMP,
                Types.TIMESTAMP_WITH_TIMEZONE,
                Types.OTHER,
                Types.OTHER,
            };
            for (int at = 1; at <= types.length; at++) {
                insert.setNull(at, types[at - 1]);
            }
            insert.setString(7, "nulls");
            Checking.equal(insert.executeUpdate(), 1);
            try (var rows = execute(connection, "SELECT * FROM kinds ORDER BY id").getResultSet()) {
                for (int row = 1; row <= 2; row++) {
                    rows.next();
                    Checking.equal(rows.getInt("id"), row);
                    Checking.equal(rows.getShort("small"), (short) -7);
                    Checking.equal(rows.getLong("big"), 1L << 62);
                    Checking.equal(rows.getBigDecimal("price"), new BigDecimal("12345.6700"));
                    Checking.equal(rows.getDouble("ratio"), 0.1);
                    Checking.equal(rows.getFloat("part"), 0.5f);
                    Checking.equal(rows.getBoolean("ok"), false);
                    Checking.equal(rows.getString("name"), row == 1 ? "naïve 🐘 'q' \\ ?" : "of java.time");
                    Checking.equal(rows.getBytes("data"), bytes);
                    Checking.equal(rows.getDate("day"), Date.valueOf("2024-02-29"));
                    Checking.equal(rows.getTime("clock"), Time.valueOf("23:59:59"));
                    Checking.equal(rows.getObject("local", LocalDateTime.class), LOCAL);
                    Checking.equal(rows.getTimestamp("local"), Timestamp.valueOf(LOCAL));
                    Checking.equal(
                        rows.getObject("at", OffsetDateTime.class),
                        OffsetDateTime.of(LOCAL, ZoneOffset.UTC)
                    );
                    Checking.equal(rows.getString("doc"), "{\"a\": [1, null, \"é\"]}");
                    Checking.equal(rows.getObject("uid"), UID);
                }
                rows.next();
                Checking.equal(rows.getObject("small"), null);
                Checking.equal(rows.getTimestamp("at"), null);
                var about = rows.getMetaData();
                Checking.equal(about.getColumnTypeName(1), "serial");
                Checking.equal(about.getColumnTypeName(4), "numeric");
                Checking.equal(
                    List.of(about.getPrecision(4), about.getScale(4), about.getColumnDisplaySize(8)),
                    List.of(12, 4, 40)
                );
                Checking.equal(about.getTableName(1), "kinds");
                Checking.equal(about.isNullable(8), 0);
            }
            var query =
                "SELECT count(*) FROM kinds WHERE day = ? AND local = ? AND at = ? AND price = ? AND uid = ? AND small = ?";
            try (var counted = connection.prepareStatement(query)) {
                counted.setDate(1, Date.valueOf("2024-02-29"));
                counted.setTimestamp(2, Timestamp.valueOf(LOCAL));
                counted.setTimestamp(3, Timestamp.valueOf(LOCAL));
                counted.setBigDecimal(4, new BigDecimal("12345.67"));
                counted.setObject(5, UID);
                counted.setInt(6, -7);
                Checking.equal(number(counted.executeQuery()), 2L);
                Checking.equal(counted.getParameterMetaData().getParameterTypeName(4), "numeric");
            }
        }
    }

    /** After five times pgjdbc names the statement and asks for binary values. */
    private static void manyTimes() throws SQLException {
        try (
            var connection = pool.getConnection();
            var select = connection.prepareStatement(
                "SELECT id, price, at, day, uid, ratio, name FROM kinds WHERE id = ? AND name <> ?"
            )
        ) {
            for (int turn = 0; turn < 12; turn++) {
                select.setInt(1, 1);
                select.setString(2, "turn " + turn);
                try (var rows = select.executeQuery()) {
                    rows.next();
                    Checking.equal(rows.getInt(1), 1);
                    Checking.equal(rows.getBigDecimal(2), new BigDecimal("12345.6700"));
                    Checking.equal(rows.getObject(3, OffsetDateTime.class), OffsetDateTime.of(LOCAL, ZoneOffset.UTC));
                    Checking.equal(rows.getObject(4, LocalDate.class), LocalDate.of(2024, 2, 29));
                    Checking.equal(rows.getObject(5), UID);
                    Checking.equal(rows.getDouble(6), 0.1);
                }
            }
        }
    }

    private static void batches() throws SQLException {
        try (var connection = pool.getConnection()) {
            execute(connection, "CREATE TABLE many (id int PRIMARY KEY, name text, at timestamp)");
            connection.setAutoCommit(false);
            try (var insert = connection.prepareStatement("INSERT INTO many (id, name, at) VALUES (?, ?, ?)")) {
                for (int id = 0; id < 300; id++) {
                    insert.setInt(1, id);
                    insert.setString(2, "name " + id);
                    insert.setTimestamp(3, Timestamp.valueOf(LOCAL));
                    insert.addBatch();
                }
                // Rewritten into inserts of several rows, which tell no counts of their own.
                int[] counts = insert.executeBatch();
                Checking.equal(counts.length, 300);
                connection.commit();
                insert.setInt(1, 1000);
                insert.addBatch();
                insert.setInt(1, 1);
                insert.addBatch();
                Checking.fails("23505", BatchUpdateException.class, insert::executeBatch);
                connection.rollback();
            }
            try (var update = connection.prepareStatement("UPDATE many SET name = ? WHERE id < ?")) {
                for (int most : new int[] { 3, 0, 5 }) {
                    update.setString(1, "below " + most);
                    update.setInt(2, most);
                    update.addBatch();
                }
                Checking.equal(update.executeBatch(), new int[] { 3, 0, 5 });
            }
            connection.commit();
            connection.setAutoCommit(true);
            Checking.equal(number(execute(connection, "SELECT count(*) FROM many").getResultSet()), 300L);
        }
    }

    private static void generatedKeys() throws SQLException {
        try (var connection = pool.getConnection()) {
            try (
                var insert = connection.prepareStatement(
                    "INSERT INTO kinds (name) VALUES (?)",
                    Statement.RETURN_GENERATED_KEYS
                )
            ) {
                insert.setString(1, "keyed");
                insert.executeUpdate();
                var keys = insert.getGeneratedKeys();
                keys.next();
                Checking.equal(keys.getString("name"), "keyed");
                Checking.equal(keys.getInt("id") > 3, true);
            }
            try (
                var insert = connection.prepareStatement("INSERT INTO kinds (name) VALUES (?), (?)", new String[] {
                    "id",
                })
            ) {
                insert.setString(1, "keyed 2");
                insert.setString(2, "keyed 3");
                insert.executeUpdate();
                var keys = insert.getGeneratedKeys();
                keys.next();
                int first = keys.getInt(1);
                keys.next();
                Checking.equal(keys.getInt(1), first + 1);
            }
        }
    }

    private static void cursor() throws SQLException {
        try (var connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            try (var select = connection.prepareStatement("SELECT id FROM many ORDER BY id")) {
                select.setFetchSize(50);
                int next = 0;
                try (var rows = select.executeQuery()) {
                    while (rows.next()) {
                        Checking.equal(rows.getInt(1), next++);
                    }
                }
                Checking.equal(next, 300);
                select.setMaxRows(7);
                int rows = 0;
                for (var some = select.executeQuery(); some.next(); rows++) {}
                Checking.equal(rows, 7);
            }
            connection.commit();
        }
    }

    private static void errors() throws SQLException {
        try (var connection = pool.getConnection()) {
            execute(
                connection,
                "CREATE TABLE strict (id int PRIMARY KEY, parent int REFERENCES strict, name varchar(5) NOT NULL, " +
                    "age int CONSTRAINT grown CHECK (age > 0))"
            );
            execute(connection, "INSERT INTO strict VALUES (1, NULL, 'a', 1)");
            var duplicate = Checking.fails("23505", PSQLException.class, () ->
                execute(connection, "INSERT INTO strict VALUES (1, NULL, 'a', 1)")
            );
            Checking.equal(duplicate.getServerErrorMessage().getConstraint(), "strict_pkey");
            Checking.equal(duplicate.getServerErrorMessage().getDetail(), "Key (id)=(1) already exists.");
            Checking.fails("23502", PSQLException.class, () ->
                execute(connection, "INSERT INTO strict VALUES (2, NULL, NULL, 1)")
            );
            Checking.fails("23503", PSQLException.class, () ->
                execute(connection, "INSERT INTO strict VALUES (2, 99, 'a', 1)")
            );
            Checking.fails("23514", PSQLException.class, () ->
                execute(connection, "INSERT INTO strict VALUES (2, NULL, 'a', 0)")
            );
            Checking.fails("22001", PSQLException.class, () ->
                execute(connection, "INSERT INTO strict VALUES (2, NULL, 'abcdef', 1)")
            );
            Checking.fails("42P01", PSQLException.class, () -> execute(connection, "SELECT * FROM missing"));
            Checking.fails("42601", PSQLException.class, () -> execute(connection, "SELEC 1"));
            try (var typed = connection.prepareStatement("SELECT count(*) FROM strict WHERE name = ?")) {
                // A number is no text: PostgreSQL has no such operator.
                typed.setInt(1, 1);
                Checking.fails("42883", PSQLException.class, typed::executeQuery);
            }
        }
    }

    private static void transactions() throws SQLException {
        try (var connection = pool.getConnection()) {
            execute(connection, "CREATE TABLE ledger (id int PRIMARY KEY)");
            connection.setAutoCommit(false);
            execute(connection, "INSERT INTO ledger VALUES (1)");
            connection.rollback();
            execute(connection, "INSERT INTO ledger VALUES (2)");
            var place = connection.setSavepoint("inside");
            Checking.fails("23505", PSQLException.class, () -> execute(connection, "INSERT INTO ledger VALUES (2)"));
            Checking.fails("25P02", PSQLException.class, () -> execute(connection, "SELECT 1"));
            connection.rollback(place);
            var unnamed = connection.setSavepoint();
            execute(connection, "INSERT INTO ledger VALUES (3)");
            connection.releaseSavepoint(unnamed);
            connection.commit();
            connection.setReadOnly(true);
            Checking.fails("25006", PSQLException.class, () -> execute(connection, "INSERT INTO ledger VALUES (4)"));
            connection.rollback();
            connection.setReadOnly(false);
            connection.setAutoCommit(true);
            Checking.equal(number(execute(connection, "SELECT sum(id) FROM ledger").getResultSet()), 5L);
        }
    }

    /** What tools and frameworks ask a driver about the tables. */
    private static void metadata() throws SQLException {
        try (var connection = pool.getConnection()) {
            execute(connection, "CREATE TABLE parents (a int, b varchar(10), PRIMARY KEY (b, a))");
            execute(
                connection,
                "CREATE TABLE children (id bigserial PRIMARY KEY, a int NOT NULL, b varchar(10) DEFAULT 'x', price numeric(8,3), " +
                    "CONSTRAINT of_parents FOREIGN KEY (b, a) REFERENCES parents (b, a) ON DELETE CASCADE)"
            );
            execute(connection, "CREATE INDEX children_price ON children (price DESC, id)");
            execute(connection, "CREATE VIEW names AS SELECT name FROM kinds");
            var about = connection.getMetaData();
            Checking.equal(about.getDatabaseProductName(), "PostgreSQL");
            var tables = column(about.getTables(null, "public", "%", new String[] { "TABLE" }), "TABLE_NAME");
            Checking.equal(tables, List.of("children", "kinds", "ledger", "many", "parents", "strict"));
            Checking.equal(column(about.getTables(null, null, "names", null), "TABLE_TYPE"), List.of("VIEW"));
            Checking.equal(
                column(about.getColumns(null, "public", "children", "%"), "TYPE_NAME"),
                List.of("bigserial", "int4", "varchar", "numeric")
            );
            Checking.equal(
                column(about.getColumns(null, "public", "children", "%"), "COLUMN_SIZE"),
                List.of("19", "10", "10", "8")
            );
            Checking.equal(
                column(about.getColumns(null, "public", "children", "b"), "COLUMN_DEF"),
                List.of("'x'::character varying")
            );
            Checking.equal(
                column(about.getColumns(null, "public", "children", "id"), "IS_AUTOINCREMENT"),
                List.of("YES")
            );
            Checking.equal(column(about.getPrimaryKeys(null, "public", "parents"), "COLUMN_NAME"), List.of("b", "a"));
            Checking.equal(column(about.getPrimaryKeys(null, "public", "parents"), "KEY_SEQ"), List.of("1", "2"));
            Checking.equal(
                column(about.getImportedKeys(null, "public", "children"), "FKCOLUMN_NAME"),
                List.of("b", "a")
            );
            Checking.equal(
                column(about.getExportedKeys(null, "public", "parents"), "FK_NAME"),
                List.of("of_parents", "of_parents")
            );
            Checking.equal(
                column(about.getCrossReference(null, "public", "parents", null, "public", "children"), "DELETE_RULE"),
                List.of("0", "0")
            );
            var indexes = new TreeSet<>(
                column(about.getIndexInfo(null, "public", "children", false, false), "INDEX_NAME")
            );
            Checking.equal(List.copyOf(indexes), List.of("children_pkey", "children_price"));
            Checking.equal(
                column(about.getBestRowIdentifier(null, "public", "children", 0, true), "COLUMN_NAME"),
                List.of("id")
            );
            Checking.equal(column(about.getSchemas(), "TABLE_SCHEM").contains("public"), true);
            Checking.equal(column(about.getCatalogs(), "TABLE_CAT").contains(connection.getCatalog()), true);
            Checking.equal(
                column(about.getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "text", "timestamptz")),
                true
            );
            Checking.equal(
                column(about.getTablePrivileges(null, "public", "kinds"), "PRIVILEGE").contains("SELECT"),
                true
            );
            column(about.getTableTypes(), "TABLE_TYPE");
            column(about.getFunctions(null, "pg_catalog", "lower"), "FUNCTION_NAME");
            column(about.getProcedures(null, "public", "%"), "PROCEDURE_NAME");
            execute(connection, "DROP VIEW names");
        }
    }

    private static void copy() throws Exception {
        try (var connection = pool.getConnection()) {
            var copies = connection.unwrap(PGConnection.class).getCopyAPI();
            Checking.equal(copies.copyIn("COPY ledger FROM STDIN", new StringReader("10\n11\n12\n")), 3L);
            var out = new StringWriter();
            copies.copyOut("COPY (SELECT id FROM ledger WHERE id >= 10 ORDER BY id) TO STDOUT WITH (FORMAT csv)", out);
            Checking.equal(out.toString(), "10\n11\n12\n");
        }
    }

    private static void simpleProtocol(String url) throws SQLException {
        try (
            var connection = java.sql.DriverManager.getConnection(Checking.url(url, "&preferQueryMode=simple"));
            var select = connection.prepareStatement("SELECT name FROM kinds WHERE id = ? AND day = ? AND at = ?")
        ) {
            select.setInt(1, 1);
            select.setDate(2, Date.valueOf("2024-02-29"));
            select.setTimestamp(3, Timestamp.valueOf(LOCAL));
            Checking.equal(column(select.executeQuery(), "name"), List.of("naïve 🐘 'q' \\ ?"));
        }
    }

    private static Statement execute(Connection connection, String sql) throws SQLException {
        var statement = connection.createStatement();
        statement.closeOnCompletion();
        statement.execute(sql);
        return statement;
    }

    private static long number(ResultSet rows) throws SQLException {
        try (rows) {
            rows.next();
            return rows.getLong(1);
        }
    }

    private static List<String> column(ResultSet rows, String name) throws SQLException {
        var found = new ArrayList<String>();
        try (rows) {
            while (rows.next()) {
                found.add(rows.getString(name));
            }
        }
        return found;
    }
}
