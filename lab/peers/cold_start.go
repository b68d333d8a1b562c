package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/theplant/cachex"
	"golang.org/x/sync/semaphore"
)

// A product search that begins with an empty cache, over a database that can do little. Traffic, database and windows are
// those of cachex's own benchmark of this, and so is how it is set up. What differs: names of products are made
// beforehand, every product is checked, every request is timed and not one in a hundred, the pause between requests may
// be none, and what cachex would log goes nowhere.

const (
	products = 10_000
	unknowns = 50
)

// windows are how long an answer is good for.
type windows struct {
	fresh, stale, missingFresh, missingStale, fetchTimeout time.Duration
}

// product is what is searched for.
type product struct {
	id, name, description string
	price, stock          int64
}

// database simulates one: a few connections, and each query takes its time.
type database struct {
	connections *semaphore.Weighted
	latency     time.Duration
	products    map[string]*product
	queries     atomic.Uint64
	busy        atomic.Int64
}

// starts is what the lab reads.
type starts struct {
	Processors int     `json:"processors"`
	Requests   uint64  `json:"requests"`
	Seconds    float64 `json:"seconds"`
	Errors     uint64  `json:"errors"`
	Queries    uint64  `json:"queries"`
	// Keys that queries asked for.
	Keys uint64 `json:"keys"`
	// Connections' time in queries.
	Busy float64 `json:"busy_seconds"`
	P50  float64 `json:"p50_ns"`
	P95  float64 `json:"p95_ns"`
	P99  float64 `json:"p99_ns"`
}

func coldStart(flags *flag.FlagSet) measure {
	connections := flags.Int64("connections", 1, "queries that the database runs at once")
	latency := flags.Duration("latency", time.Millisecond, "how long a query takes")
	pause := flags.Duration("pause", 0, "how long a caller pauses after a request; 0: not at all")
	var limits windows
	flags.DurationVar(&limits.fetchTimeout, "fetch-timeout", time.Second, "how long a fetch may take")
	flags.DurationVar(&limits.fresh, "fresh", time.Second, "how long a product is fresh")
	flags.DurationVar(&limits.stale, "stale", 24*time.Hour, "how long after that it is stale")
	flags.DurationVar(&limits.missingFresh, "missing-fresh", time.Second, "how long it is known that there is none")
	flags.DurationVar(&limits.missingStale, "missing-stale", 24*time.Hour, "how long after that it is still believed")
	return func(callers int, duration time.Duration) (any, error) {
		return search(newDatabase(*connections, *latency), limits, callers, *pause, duration)
	}
}

func newDatabase(connections int64, latency time.Duration) *database {
	made := &database{
		connections: semaphore.NewWeighted(connections),
		latency:     latency,
		products:    make(map[string]*product, products),
	}
	for number, id := range productNames() {
		made.products[id] = &product{
			id:          id,
			name:        fmt.Sprintf("Product %d", number+1),
			description: fmt.Sprintf("Description for product %d", number+1),
			price:       int64(1_000 + number%9_000),
			stock:       int64(number % 1_000),
		}
	}
	return made
}

// query waits for a connection, and then as long as a query takes.
func (d *database) query(ctx context.Context, id string) (*product, error) {
	if err := d.connections.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("no connection: %w", err)
	}
	defer d.connections.Release(1)
	d.queries.Add(1)
	begun := time.Now()
	time.Sleep(d.latency)
	d.busy.Add(int64(time.Since(begun)))
	found, ok := d.products[id]
	if !ok {
		return nil, &cachex.ErrKeyNotFound{}
	}
	return found, nil
}

func productNames() []string {
	names := make([]string, products)
	for index := range names {
		names[index] = fmt.Sprintf("product-%d", index+1)
	}
	return names
}

// traffic is what one caller asks for: names, and how it chooses among them.
type traffic struct {
	known, unknown []string
	state          uint64
}

func newTraffic() traffic {
	unknown := make([]string, unknowns)
	for index := range unknown {
		unknown[index] = fmt.Sprintf("product-notfound-%d", index)
	}
	return traffic{known: productNames(), unknown: unknown}
}

// next says also whether there is such a product.
func (t *traffic) next() (string, bool) {
	// SplitMix64.
	t.state += 0x9e3779b97f4a7c15
	mixed := t.state
	mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
	mixed ^= mixed >> 31
	among := func(count uint64) uint64 { return (mixed & 0xffffffff) * count >> 32 }
	switch slot := (mixed >> 32) * 1000 >> 32; {
	case slot < 800:
		return t.known[among(20)], true
	case slot < 950:
		return t.known[20+among(180)], true
	case slot < 990:
		return t.known[200+among(800)], true
	default:
		return t.unknown[among(unknowns)], false
	}
}

// cachexClient is set up as in cachex's own benchmark of a product search, but logs nothing.
func cachexClient[T any](
	upstream cachex.UpstreamFunc[*cachex.Entry[T]], limits windows,
) (*cachex.Client[*cachex.Entry[T]], func(), error) {
	config := cachex.DefaultRistrettoCacheConfig[*cachex.Entry[T]]()
	config.TTL = limits.fresh + limits.stale
	present, err := cachex.NewRistrettoCache(config)
	if err != nil {
		return nil, nil, err
	}
	missingConfig := cachex.DefaultRistrettoCacheConfig[time.Time]()
	missingConfig.TTL = limits.missingFresh + limits.missingStale
	missing, err := cachex.NewRistrettoCache(missingConfig)
	if err != nil {
		return nil, nil, err
	}
	client := cachex.NewClient(present, upstream,
		cachex.EntryWithTTL[T](limits.fresh, limits.stale),
		cachex.NotFoundWithTTL[*cachex.Entry[T]](missing, limits.missingFresh, limits.missingStale),
		cachex.WithServeStale[*cachex.Entry[T]](true),
		cachex.WithFetchTimeout[*cachex.Entry[T]](limits.fetchTimeout),
		cachex.WithLogger[*cachex.Entry[T]](slog.New(slog.NewTextHandler(io.Discard, nil))))
	return client, func() {
		_ = present.Close()
		_ = missing.Close()
	}, nil
}

// searcher is one caller.
type searcher struct {
	traffic  traffic
	requests uint64
	errors   uint64
	wrong    error
	took     latencies
}

// search lets callers ask until time is up; it ends when the last of their requests has.
func search(source *database, limits windows, callers int, pause, duration time.Duration) (starts, error) {
	client, end, err := cachexClient(func(ctx context.Context, id string) (*cachex.Entry[*product], error) {
		found, err := source.query(ctx, id)
		if err != nil {
			return nil, err
		}
		return &cachex.Entry[*product]{Data: found, CachedAt: cachex.NowFunc()}, nil
	}, limits)
	if err != nil {
		return starts{}, err
	}
	searchers := make([]searcher, callers)
	shared := newTraffic()
	var isOver atomic.Bool
	var running sync.WaitGroup
	begun := time.Now()
	for index := range searchers {
		searcher := &searchers[index]
		searcher.traffic = shared
		searcher.traffic.state = uint64(index)
		running.Go(func() { searcher.run(client, pause, &isOver) })
	}
	time.Sleep(duration)
	isOver.Store(true)
	running.Wait()
	took := time.Since(begun)

	seen := starts{
		Processors: runtime.GOMAXPROCS(0),
		Seconds:    took.Seconds(),
		Queries:    source.queries.Load(),
		Keys:       source.queries.Load(),
		Busy:       time.Duration(source.busy.Load()).Seconds(),
	}
	end()
	var all latencies
	var wrong []error
	for index := range searchers {
		seen.Requests += searchers[index].requests
		seen.Errors += searchers[index].errors
		all.add(&searchers[index].took)
		wrong = append(wrong, searchers[index].wrong)
	}
	seen.P50, seen.P95, seen.P99 = all.quantile(0.50), all.quantile(0.95), all.quantile(0.99)
	return seen, errors.Join(wrong...)
}

func (s *searcher) run(client *cachex.Client[*cachex.Entry[*product]], pause time.Duration, isOver *atomic.Bool) {
	everyone := context.Background()
	for !isOver.Load() {
		id, exists := s.traffic.next()
		begun := time.Now()
		entry, err := client.Get(everyone, id)
		s.took.note(time.Since(begun))
		s.requests++
		switch {
		case err == nil && entry != nil && entry.Data != nil:
			if !exists || entry.Data.id != id {
				s.wrong = fmt.Errorf("%s was answered with %s", id, entry.Data.id)
				return
			}
		case cachex.IsErrKeyNotFound(err):
			if exists {
				s.wrong = fmt.Errorf("%s was not found", id)
				return
			}
		default:
			s.errors++
		}
		if pause > 0 {
			time.Sleep(pause)
		}
	}
}
