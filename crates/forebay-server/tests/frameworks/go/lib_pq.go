package main

import (
	"context"
	"database/sql"
	"time"

	"github.com/lib/pq"
)

const kindsTable = "CREATE TABLE kinds (id serial PRIMARY KEY, small smallint, big bigint, price numeric(12,4), ratio double precision, " +
	"ok boolean, name varchar(40) UNIQUE, note text, data bytea, day date, at timestamptz, local timestamp, doc jsonb, uid uuid)"

// libPq is database/sql with lib/pq.
func libPq(url string) []check {
	ctx := context.Background()
	db := value(sql.Open("postgres", url+"?sslmode=disable"))
	count := func(query string, arguments ...any) (count int) {
		must(db.QueryRow(query, arguments...).Scan(&count))
		return count
	}
	return []check{
		{"connect", func() {
			must(db.Ping())
			equal(count("SELECT 1"), 1)
			equal(count("SELECT $1::int + $2", 1, 2), 3)
		}},
		{"types", func() {
			value(db.Exec(kindsTable))
			const names = "small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid"
			const insert = "INSERT INTO kinds (" + names + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING id"
			day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
			given := []any{int64(-7), int64(1) << 62, "12345.6700", 0.1, false, "naïve 🐘", "", allBytes(), day, moment, moment, `{"a": [1]}`, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}
			equal(count(insert, given...), 1)
			equal(count(insert, make([]any, len(given))...), 2)
			var small, big int64
			var price, name, note, doc, uid string
			var ratio float64
			var ok bool
			var data []byte
			var born, at, local time.Time
			must(db.QueryRow("SELECT "+names+" FROM kinds WHERE id = $1", 1).Scan(&small, &big, &price, &ratio, &ok, &name, &note, &data, &born, &at, &local, &doc, &uid))
			equal([]any{small, big, price, ratio, ok, name, note, data, born.UTC(), at.UTC(), local.UTC(), doc, uid}, given)
			var nothing sql.NullString
			must(db.QueryRow("SELECT name FROM kinds WHERE id = 2").Scan(&nothing))
			equal(nothing.Valid, false)
			columns := value(value(db.Query("SELECT * FROM kinds")).ColumnTypes())
			equal(columns[1].DatabaseTypeName(), "INT2")
			equal(columns[6].DatabaseTypeName(), "VARCHAR")
		}},
		{"counts", func() {
			result := value(db.Exec("INSERT INTO kinds (name) VALUES ('a'), ('b'), ('c')"))
			equal(value(result.RowsAffected()), int64(3))
			equal(value(value(db.Exec("UPDATE kinds SET note = name WHERE name = ANY($1)", pq.Array([]string{"a", "b", "x"}))).RowsAffected()), int64(2))
			equal(value(value(db.Exec("DELETE FROM kinds WHERE name IN ('a', 'b', 'c')")).RowsAffected()), int64(3))
		}},
		{"prepared", func() {
			statement := value(db.Prepare("INSERT INTO kinds (name, at) VALUES ($1, $2)"))
			for _, name := range []string{"p1", "p2", "p3"} {
				value(statement.Exec(name, moment))
			}
			fails("23505", func() error { _, err := statement.Exec("p1", moment); return err }())
			must(statement.Close())
			equal(count("SELECT count(*) FROM kinds WHERE at = $1", moment), 4)
		}},
		{"errors", func() {
			value(db.Exec("CREATE TABLE strict (id int PRIMARY KEY, parent int REFERENCES strict, name varchar(5) NOT NULL, age int CONSTRAINT grown CHECK (age > 0))"))
			try := func(arguments ...any) error {
				_, err := db.Exec("INSERT INTO strict VALUES ($1, $2, $3, $4)", arguments...)
				return err
			}
			must(try(1, nil, "a", 1))
			err := try(1, nil, "a", 1)
			fails("23505", err)
			equal(err.(*pq.Error).Constraint, "strict_pkey")
			equal(err.(*pq.Error).Table, "strict")
			fails("23502", try(2, nil, nil, 1))
			fails("23503", try(2, 99, "a", 1))
			fails("23514", try(2, nil, "a", 0))
			fails("22001", try(2, nil, "abcdef", 1))
			_, err = db.Exec("SELECT * FROM missing")
			fails("42P01", err)
		}},
		{"transactions", func() {
			value(db.Exec("CREATE TABLE ledger (id int PRIMARY KEY)"))
			tx := value(db.Begin())
			value(tx.Exec("INSERT INTO ledger VALUES (1)"))
			must(tx.Rollback())
			tx = value(db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable}))
			value(tx.Exec("INSERT INTO ledger VALUES (2)"))
			value(tx.Exec("SAVEPOINT inside"))
			_, err := tx.Exec("INSERT INTO ledger VALUES (2)")
			fails("23505", err)
			value(tx.Exec("ROLLBACK TO SAVEPOINT inside"))
			must(tx.Commit())
			equal(count("SELECT sum(id) FROM ledger"), 2)
			reader := value(db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}))
			_, err = reader.Exec("INSERT INTO ledger VALUES (3)")
			fails("25006", err)
			must(reader.Rollback())
		}},
		{"copy", func() {
			tx := value(db.Begin())
			statement := value(tx.Prepare(pq.CopyIn("ledger", "id")))
			for id := 100; id < 600; id++ {
				value(statement.Exec(id))
			}
			value(statement.Exec())
			must(statement.Close())
			must(tx.Commit())
			equal(count("SELECT count(*) FROM ledger"), 501)
		}},
	}
}
