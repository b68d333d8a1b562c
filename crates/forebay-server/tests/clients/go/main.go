// Command forebay-client-go drives pgx against the server whose URL is the first argument.
//
// Promises: every check is made, in the order of checks, whatever became of the one before; each that passes prints
// "ok NAME", and if one failed so does the program. Does not know which server it talks to: all of it holds for PostgreSQL itself.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const forEver = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"

const columns = "id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, price numeric, at timestamptz DEFAULT now(), " +
	"ok boolean, data bytea, doc json, uid uuid, born date, ratio double precision, small bigint"

var url string

type check struct {
	name string
	run  func(ctx context.Context, conn *pgx.Conn)
}

var checks = []check{
	{"connect", checkConnect},
	{"types", checkTypes},
	{"returning", checkReturning},
	{"counts", checkCounts},
	{"errors", checkErrors},
	{"transactions", checkTransactions},
	{"prepared", checkPrepared},
	{"portions", checkPortions},
	{"concurrency", checkConcurrency},
	{"cancel", checkCancel},
	{"pipeline", checkPipeline},
}

func main() {
	url = os.Args[1]
	failed := false
	for _, check := range checks {
		if failure := perform(check); failure != nil {
			fmt.Printf("--- FAILED %s: %v\n", check.name, failure)
			failed = true
			continue
		}
		fmt.Println("ok", check.name)
	}
	if failed {
		os.Exit(1)
	}
}

// perform makes one check on a connection of its own and tells what it panicked with, and where.
func perform(check check) (failure error) {
	defer func() {
		if told := recover(); told != nil {
			failure = fmt.Errorf("%v%s", told, ownLines(debug.Stack()))
		}
	}()
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	conn := connect(ctx)
	defer conn.Close(ctx)
	check.run(ctx, conn)
	return nil
}

// ownLines are the places in this file that a stack names.
func ownLines(stack []byte) string {
	own := ""
	for line := range strings.Lines(string(stack)) {
		if at := strings.Index(line, "main.go:"); at >= 0 && !strings.Contains(line, "perform") {
			own += "\n    " + strings.TrimSpace(line[at:])
		}
	}
	return own
}

// must ends the check when it cannot go on; the trace says where.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("found %#v, expected %#v", found, expected))
	}
}

// fails wants an error of the server with this SQLSTATE.
func fails(state string, err error) {
	var told *pgconn.PgError
	if !errors.As(err, &told) || told.Code != state {
		panic(fmt.Sprintf("expected %s, found %v", state, err))
	}
}

func connect(ctx context.Context) *pgx.Conn {
	conn, err := pgx.Connect(ctx, url)
	must(err)
	return conn
}

func exec(ctx context.Context, conn *pgx.Conn, sql string, arguments ...any) string {
	tag, err := conn.Exec(ctx, sql, arguments...)
	must(err)
	return tag.String()
}

func try(ctx context.Context, conn *pgx.Conn, sql string, arguments ...any) error {
	_, err := conn.Exec(ctx, sql, arguments...)
	return err
}

// column reads the first column of all rows.
func column[T any](ctx context.Context, conn *pgx.Conn, sql string, arguments ...any) []T {
	rows, err := conn.Query(ctx, sql, arguments...)
	must(err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[T])
	must(err)
	return found
}

func checkConnect(ctx context.Context, conn *pgx.Conn) {
	for name, value := range map[string]string{
		"client_encoding": "UTF8", "server_encoding": "UTF8", "standard_conforming_strings": "on", "integer_datetimes": "on",
	} {
		equal(conn.PgConn().ParameterStatus(name), value)
	}
	if conn.PgConn().ParameterStatus("server_version") == "" || conn.PgConn().PID() == 0 {
		panic("no server_version or no process id")
	}
	equal(column[int64](ctx, conn, "SELECT 1"), []int64{1})
	must(conn.Ping(ctx))
}

// kinds is a row of all kinds of values; pointers, because each may be NULL.
type kinds struct {
	Name  string
	Price *string
	At    *time.Time
	OK    *bool
	Data  []byte
	Doc   *string
	UID   *pgtype.UUID
	Born  *time.Time
	Ratio *float64
	Small *int64
}

func pointer[T any](value T) *T { return &value }

func checkTypes(ctx context.Context, conn *pgx.Conn) {
	exec(ctx, conn, "CREATE TABLE kinds ("+columns+")")
	bytes := make([]byte, 256)
	for at := range bytes {
		bytes[at] = byte(at)
	}
	var uid pgtype.UUID
	must(uid.Scan("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"))
	full := kinds{
		Price: pointer("123456.789012345"),
		At:    pointer(time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)),
		OK:    pointer(true),
		Data:  bytes,
		Doc:   pointer(`{"a": [1, null, "é"]}`),
		UID:   &uid,
		Born:  pointer(time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)),
		Ratio: pointer(0.1),
		Small: pointer(int64(-7)),
	}
	const names = "name, price, at, ok, data, doc, uid, born, ratio, small"
	const insert = "INSERT INTO kinds (" + names + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
	// pgx sends and asks for binary values where it knows the type, in all modes but the last, which is all text.
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	for _, mode := range modes {
		for _, row := range []kinds{full, {}} {
			row.Name = fmt.Sprintf("naïve 🐘 'quoted' \\ %v %v", mode, row.OK != nil)
			exec(ctx, conn, insert, mode, row.Name, row.Price, row.At, row.OK, row.Data, row.Doc, row.UID, row.Born,
				row.Ratio, row.Small)
			var found kinds
			must(conn.QueryRow(ctx, "SELECT "+names+" FROM kinds WHERE name = $1", mode, row.Name).Scan(
				&found.Name, &found.Price, &found.At, &found.OK, &found.Data, &found.Doc, &found.UID, &found.Born,
				&found.Ratio, &found.Small))
			if found.At != nil {
				found.At = pointer(found.At.UTC())
			}
			equal(found, row)
		}
	}
	exec(ctx, conn, "INSERT INTO kinds (name) VALUES ('defaults')")
	at := column[time.Time](ctx, conn, "SELECT at FROM kinds WHERE name = 'defaults'")[0]
	if time.Since(at).Abs() > time.Minute {
		panic(at)
	}
}

func checkReturning(ctx context.Context, conn *pgx.Conn) {
	exec(ctx, conn, "CREATE TABLE given (id bigserial PRIMARY KEY, name text NOT NULL)")
	const insert = "INSERT INTO given (name) VALUES ($1), ($2) RETURNING id"
	equal(column[int64](ctx, conn, insert, "a", "b"), []int64{1, 2})
	const update = "UPDATE given SET name = name || '!' WHERE id = $1 RETURNING name"
	equal(column[string](ctx, conn, update, 2), []string{"b!"})
	equal(column[string](ctx, conn, "DELETE FROM given WHERE id = $1 RETURNING name", 1), []string{"a"})
}

func checkCounts(ctx context.Context, conn *pgx.Conn) {
	exec(ctx, conn, "CREATE TABLE counted (id bigint PRIMARY KEY, even boolean)")
	equal(exec(ctx, conn, "INSERT INTO counted VALUES (1, false), (2, true), (3, false)"), "INSERT 0 3")
	equal(exec(ctx, conn, "UPDATE counted SET even = NOT even WHERE id > $1", 1), "UPDATE 2")
	equal(exec(ctx, conn, "UPDATE counted SET even = true WHERE id = 99"), "UPDATE 0")
	equal(exec(ctx, conn, "SELECT * FROM counted"), "SELECT 3")
	equal(exec(ctx, conn, "DELETE FROM counted"), "DELETE 3")
}

func checkErrors(ctx context.Context, conn *pgx.Conn) {
	exec(ctx, conn, "CREATE TABLE parents (id bigint PRIMARY KEY)")
	exec(ctx, conn, "CREATE TABLE children (id bigint PRIMARY KEY, name text NOT NULL UNIQUE, "+
		"parent bigint REFERENCES parents (id), age bigint CHECK (age >= 0))")
	exec(ctx, conn, "INSERT INTO children VALUES (1, 'one', NULL, 1)")
	const insert = "INSERT INTO children VALUES ($1, $2, $3, $4)"
	fails("23505", try(ctx, conn, insert, 2, "one", nil, 1))
	fails("23502", try(ctx, conn, insert, 2, nil, nil, 1))
	fails("23503", try(ctx, conn, insert, 2, "two", 99, 1))
	fails("23514", try(ctx, conn, insert, 2, "two", nil, -1))
	fails("42P01", try(ctx, conn, "SELECT * FROM missing"))
	fails("42703", try(ctx, conn, "SELECT missing FROM children"))
	fails("42601", try(ctx, conn, "SELEC 1"))
	fails("22P02", try(ctx, conn, "SELECT $1::int", pgx.QueryExecModeExec, "x"))
	equal(conn.PgConn().TxStatus(), byte('I'))
	equal(column[int64](ctx, conn, "SELECT count(*) FROM children"), []int64{1})
}

func checkTransactions(ctx context.Context, conn *pgx.Conn) {
	ids := func(conn *pgx.Conn) []int64 { return column[int64](ctx, conn, "SELECT id FROM ledger ORDER BY id") }
	exec(ctx, conn, "CREATE TABLE ledger (id bigint PRIMARY KEY)")
	outer, err := conn.Begin(ctx)
	must(err)
	equal(conn.PgConn().TxStatus(), byte('T'))
	exec(ctx, conn, "INSERT INTO ledger VALUES (1)")
	other := connect(ctx)
	equal(ids(other), []int64{})
	must(other.Close(ctx))
	must(outer.Rollback(ctx))
	equal(conn.PgConn().TxStatus(), byte('I'))
	equal(ids(conn), []int64{})

	outer, err = conn.Begin(ctx)
	must(err)
	exec(ctx, conn, "INSERT INTO ledger VALUES (2)")
	released, err := outer.Begin(ctx)
	must(err)
	exec(ctx, conn, "INSERT INTO ledger VALUES (3)")
	must(released.Commit(ctx))
	undone, err := outer.Begin(ctx)
	must(err)
	exec(ctx, conn, "INSERT INTO ledger VALUES (4)")
	fails("23505", try(ctx, conn, "INSERT INTO ledger VALUES (2)"))
	equal(conn.PgConn().TxStatus(), byte('E'))
	fails("25P02", try(ctx, conn, "SELECT 1"))
	must(undone.Rollback(ctx))
	equal(conn.PgConn().TxStatus(), byte('T'))
	must(outer.Commit(ctx))
	equal(ids(conn), []int64{2, 3})

	outer, err = conn.Begin(ctx)
	must(err)
	fails("23505", try(ctx, conn, "INSERT INTO ledger VALUES (2)"))
	fails("25P02", try(ctx, conn, "SELECT 1"))
	if err := outer.Commit(ctx); !errors.Is(err, pgx.ErrTxCommitRollback) {
		panic(fmt.Sprintf("a failed transaction was committed: %v", err))
	}
	equal(conn.PgConn().TxStatus(), byte('I'))
	equal(ids(conn), []int64{2, 3})
}

func checkPrepared(ctx context.Context, conn *pgx.Conn) {
	exec(ctx, conn, "CREATE TABLE prepared (id bigint PRIMARY KEY, name text)")
	insert, err := conn.Prepare(ctx, "insert one", "INSERT INTO prepared VALUES ($1, $2)")
	must(err)
	equal(insert.ParamOIDs, []uint32{pgtype.Int8OID, pgtype.TextOID})
	selected, err := conn.Prepare(ctx, "select one", "SELECT name FROM prepared WHERE id = $1")
	must(err)
	equal(selected.Fields[0].DataTypeOID, uint32(pgtype.TextOID))
	for id := range 20 {
		exec(ctx, conn, "insert one", id, fmt.Sprintf("name %d", id))
	}
	for _, id := range []int{3, 19, 3} {
		equal(column[string](ctx, conn, "select one", id), []string{fmt.Sprintf("name %d", id)})
	}
	fails("23505", try(ctx, conn, "insert one", 3, "again"))
	equal(column[string](ctx, conn, "select one", 4), []string{"name 4"})
	must(conn.Deallocate(ctx, "insert one"))
	fails("42601", try(ctx, conn, "insert one", 30, "gone"))
}

func checkPortions(ctx context.Context, conn *pgx.Conn) {
	exec(ctx, conn, "CREATE TABLE portions (id bigint PRIMARY KEY)")
	values := make([]string, 0, 1000)
	for id := range 1000 {
		values = append(values, fmt.Sprintf("(%d)", id))
	}
	exec(ctx, conn, "INSERT INTO portions VALUES "+strings.Join(values, ", "))
	rows, err := conn.Query(ctx, "SELECT id FROM portions WHERE id >= $1 ORDER BY id", 10)
	must(err)
	next := int64(10)
	for ; rows.Next(); next++ {
		var id int64
		must(rows.Scan(&id))
		equal(id, next)
	}
	must(rows.Err())
	equal(next, int64(1000))
	// Left in the middle: pgx reads the rest away, and the connection is ready for the next statement.
	rows, err = conn.Query(ctx, "SELECT id FROM portions")
	must(err)
	equal(rows.Next(), true)
	rows.Close()
	equal(column[int64](ctx, conn, "SELECT count(*) FROM portions"), []int64{1000})
}

func checkConcurrency(ctx context.Context, conn *pgx.Conn) {
	exec(ctx, conn, "CREATE TABLE crowd (id bigserial PRIMARY KEY, worker bigint NOT NULL, turn bigint NOT NULL)")
	var workers sync.WaitGroup
	failures := make(chan any, 20)
	for worker := range 20 {
		workers.Go(func() {
			defer func() {
				if told := recover(); told != nil {
					failures <- told
				}
			}()
			own := connect(ctx)
			for turn := range 25 {
				var found [2]int
				insert := "INSERT INTO crowd (worker, turn) VALUES ($1, $2) RETURNING worker, turn"
				must(own.QueryRow(ctx, insert, worker, turn).Scan(&found[0], &found[1]))
				equal(found, [2]int{worker, turn})
			}
			must(own.Close(ctx))
		})
	}
	workers.Wait()
	if len(failures) > 0 {
		panic(<-failures)
	}
	equal(column[int64](ctx, conn, "SELECT count(DISTINCT id) FROM crowd"), []int64{500})
	expected := make([]int64, 20)
	for worker := range expected {
		expected[worker] = 25
	}
	equal(column[int64](ctx, conn, "SELECT count(*) FROM crowd GROUP BY worker"), expected)
}

func checkCancel(ctx context.Context, conn *pgx.Conn) {
	ended := make(chan error, 1)
	go func() { ended <- try(ctx, conn, forEver) }()
	begun := time.Now()
	for {
		// A cancel that comes before the statement does nothing, so it is sent until the statement has ended.
		must(conn.PgConn().CancelRequest(ctx))
		select {
		case err := <-ended:
			fails("57014", err)
			if time.Since(begun) > 10*time.Second {
				panic("the cancel took too long")
			}
			equal(column[int64](ctx, conn, "SELECT 1"), []int64{1})
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func checkPipeline(ctx context.Context, conn *pgx.Conn) {
	exec(ctx, conn, "CREATE TABLE piped (id bigint PRIMARY KEY)")
	batch := &pgx.Batch{}
	for id := range 50 {
		batch.Queue("INSERT INTO piped VALUES ($1)", id)
	}
	batch.Queue("SELECT count(*) FROM piped")
	results := conn.SendBatch(ctx, batch)
	for range 50 {
		tag, err := results.Exec()
		must(err)
		equal(tag.RowsAffected(), int64(1))
	}
	var count int
	must(results.QueryRow().Scan(&count))
	equal(count, 50)
	must(results.Close())

	// One sync ends a batch, so an error in it undoes all of it.
	batch = &pgx.Batch{}
	for _, id := range []int{100, 1, 101} {
		batch.Queue("INSERT INTO piped VALUES ($1)", id)
	}
	fails("23505", conn.SendBatch(ctx, batch).Close())
	equal(conn.PgConn().TxStatus(), byte('I'))
	equal(column[int64](ctx, conn, "SELECT count(*) FROM piped"), []int64{50})

	// A sync after each: every statement stands alone.
	pipeline := conn.PgConn().StartPipeline(ctx)
	for _, id := range []string{"200", "1", "201"} {
		pipeline.SendQueryParams("INSERT INTO piped VALUES ($1)", [][]byte{[]byte(id)}, nil, nil, nil)
		must(pipeline.Sync())
	}
	outcomes := []string{}
	for len(outcomes) < 3 {
		result, err := pipeline.GetResults()
		var told *pgconn.PgError
		if errors.As(err, &told) {
			outcomes = append(outcomes, told.Code)
			continue
		}
		must(err)
		if reader, is := result.(*pgconn.ResultReader); is {
			tag, err := reader.Close()
			if errors.As(err, &told) {
				outcomes = append(outcomes, told.Code)
				continue
			}
			must(err)
			outcomes = append(outcomes, tag.String())
		}
	}
	must(pipeline.Close())
	equal(outcomes, []string{"INSERT 0 1", "23505", "INSERT 0 1"})
	equal(column[int64](ctx, conn, "SELECT id FROM piped WHERE id >= 100 ORDER BY id"), []int64{200, 201})
}
