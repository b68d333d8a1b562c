// One of lib/pq, pgx and GORM, named by the first argument, against the server whose URL is the second.
//
// Promises: every check is made, in the order given, whatever became of the one before; each that passes prints "ok NAME", and
// if one failed so does the program. Does not know which server it talks to: all of it holds for PostgreSQL itself.
package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
)

// check is what prints one line.
type check struct {
	name string
	run  func()
}

func main() {
	url := os.Args[2]
	programs := map[string]func(string) []check{"lib_pq": libPq, "pgx": pgxChecks, "gorm": gormChecks}
	failed := false
	for _, check := range programs[os.Args[1]](url) {
		if told, stack := perform(check); told != nil {
			failed = true
			fmt.Println("FAILED", check.name, told, stack)
			continue
		}
		fmt.Println("ok", check.name)
	}
	if failed {
		os.Exit(1)
	}
}

// perform returns what a check ended with, and where.
func perform(check check) (told any, stack string) {
	defer func() {
		if told = recover(); told != nil {
			for line := range strings.Lines(string(debug.Stack())) {
				if strings.Contains(line, "/frameworks/go/") && !strings.Contains(line, "checking.go") {
					stack += "\n    " + strings.TrimSpace(line)
				}
			}
		}
	}()
	check.run()
	return nil, ""
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// value is what a call returned that must not fail.
func value[T any](found T, err error) T {
	must(err)
	return found
}

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("found %#v, expected %#v", found, expected))
	}
}

// fails wants an error of the server with this SQLSTATE.
func fails(state string, err error) {
	var ofPq *pq.Error
	var ofPgx *pgconn.PgError
	switch {
	case errors.As(err, &ofPq) && string(ofPq.Code) == state:
	case errors.As(err, &ofPgx) && ofPgx.Code == state:
	default:
		panic(fmt.Sprintf("expected %s, found %v", state, err))
	}
}

func pointer[T any](value T) *T { return &value }

var moment = time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)

func allBytes() []byte {
	bytes := make([]byte, 256)
	for at := range bytes {
		bytes[at] = byte(at)
	}
	return bytes
}
