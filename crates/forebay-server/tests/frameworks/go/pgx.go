package main

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// allKinds is a row of all kinds of values; pointers, because each may be NULL.
type allKinds struct {
	Small *int16
	Big   *int64
	Price *pgtype.Numeric
	Ratio *float64
	OK    *bool
	Name  *string
	Note  *string
	Data  []byte
	Day   *time.Time
	At    *time.Time
	Local *time.Time
	Doc   *string
	UID   *pgtype.UUID
}

// pgxChecks is pgx with its pool, as most services use it.
func pgxChecks(url string) []check {
	ctx := context.Background()
	pool := value(pgxpool.New(ctx, url))
	exec := func(sql string, arguments ...any) string {
		return value(pool.Exec(ctx, sql, arguments...)).String()
	}
	try := func(sql string, arguments ...any) error {
		_, err := pool.Exec(ctx, sql, arguments...)
		return err
	}
	count := func(sql string, arguments ...any) (count int) {
		must(pool.QueryRow(ctx, sql, arguments...).Scan(&count))
		return count
	}
	return []check{
		{"connect", func() {
			must(pool.Ping(ctx))
			equal(count("SELECT $1::int + 1", 1), 2)
		}},
		{"types", func() {
			exec(kindsTable)
			const names = "small, big, price, ratio, ok, name, note, data, day, at, local, doc, uid"
			const insert = "INSERT INTO kinds (" + names + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING " + names
			var price pgtype.Numeric
			var uid pgtype.UUID
			must(price.Scan("12345.67"))
			must(uid.Scan("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"))
			full := allKinds{
				Small: pointer(int16(-7)), Big: pointer(int64(1) << 62), Price: &price, Ratio: pointer(0.1), OK: pointer(false),
				Note: pointer(""), Data: allBytes(), Day: pointer(time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)),
				At: &moment, Local: &moment, Doc: pointer(`{"a": [1, null, "é"]}`), UID: &uid,
			}
			modes := []pgx.QueryExecMode{
				pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
				pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
			}
			for _, mode := range modes {
				for _, row := range []allKinds{full, {}} {
					if row.OK != nil {
						row.Name = pointer("naïve 🐘 'q' \\ " + mode.String())
					}
					var found allKinds
					must(pool.QueryRow(ctx, insert, mode, row.Small, row.Big, row.Price, row.Ratio, row.OK, row.Name, row.Note, row.Data, row.Day,
						row.At, row.Local, row.Doc, row.UID).Scan(&found.Small, &found.Big, &found.Price, &found.Ratio, &found.OK, &found.Name,
						&found.Note, &found.Data, &found.Day, &found.At, &found.Local, &found.Doc, &found.UID))
					if found.At != nil {
						found.At = pointer(found.At.UTC())
						equal(value(found.Price.Float64Value()).Float64, 12345.67)
						found.Price = row.Price
					}
					equal(found, row)
				}
			}
			equal(count("SELECT count(*) FROM kinds WHERE at = $1 AND uid = $2 AND price = $3 AND day = $4", moment, uid, price, *full.Day), 5)
		}},
		{"collect_rows", func() {
			type part struct {
				ID   int32
				Name *string
			}
			rows := value(pool.Query(ctx, "SELECT id, name FROM kinds WHERE id = ANY($1) ORDER BY id", []int32{1, 2, 99}))
			found := value(pgx.CollectRows(rows, pgx.RowToStructByName[part]))
			equal([]int32{found[0].ID, found[1].ID}, []int32{1, 2})
			names := pgx.NamedArgs{"least": 1, "like": "naïve%"}
			equal(count("SELECT count(*) FROM kinds WHERE id >= @least AND name LIKE @like", names), 5)
		}},
		{"copy", func() {
			exec("CREATE TABLE copied (id bigint PRIMARY KEY, name text, at timestamptz)")
			rows := make([][]any, 500)
			for at := range rows {
				rows[at] = []any{int64(at), strings.Repeat("x", at%7), moment}
			}
			equal(value(pool.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"id", "name", "at"}, pgx.CopyFromRows(rows))), int64(500))
			_, err := pool.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"id"}, pgx.CopyFromRows([][]any{{int64(1000)}, {int64(1)}}))
			fails("23505", err)
			equal(count("SELECT count(*) FROM copied WHERE at = $1", moment), 500)
		}},
		{"batch", func() {
			batch := &pgx.Batch{}
			for id := range 20 {
				batch.Queue("INSERT INTO copied (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING id", id+490)
			}
			total := 0
			results := pool.SendBatch(ctx, batch)
			for range 20 {
				var id int
				must(results.QueryRow().Scan(&id))
				total += id
			}
			must(results.Close())
			equal(total, 20*490+190)
			equal(count("SELECT count(*) FROM copied"), 510)
		}},
		{"errors", func() {
			exec("CREATE TABLE strict (id int PRIMARY KEY, parent int REFERENCES strict, name varchar(5) NOT NULL, age int CONSTRAINT grown CHECK (age > 0))")
			const insert = "INSERT INTO strict VALUES ($1, $2, $3, $4)"
			must(try(insert, 1, nil, "a", 1))
			fails("23505", try(insert, 1, nil, "a", 1))
			fails("23502", try(insert, 2, nil, nil, 1))
			fails("23503", try(insert, 2, 99, "a", 1))
			fails("23514", try(insert, 2, nil, "a", 0))
			fails("22001", try(insert, 2, nil, "abcdef", 1))
			fails("42P01", try("SELECT * FROM missing"))
			fails("42804", try("INSERT INTO strict (id) VALUES (true)"))
		}},
		{"transactions", func() {
			exec("CREATE TABLE ledger (id int PRIMARY KEY)")
			must(pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
				value(tx.Exec(ctx, "INSERT INTO ledger VALUES (1)"))
				inner := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
					_, err := inner.Exec(ctx, "INSERT INTO ledger VALUES (2), (1)")
					return err
				})
				fails("23505", inner)
				value(tx.Exec(ctx, "INSERT INTO ledger VALUES (3)"))
				return nil
			}))
			fails("25006", pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "INSERT INTO ledger VALUES (4)")
				return err
			}))
			equal(count("SELECT sum(id) FROM ledger"), 4)
		}},
	}
}
