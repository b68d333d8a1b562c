package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/theplant/cachex"
	"github.com/viccon/sturdyc"
)

// The hit path: goroutines that each get one key after the other, in the order of a sequence that the lab has drawn, from
// a cache that holds them all. Every value is checked; a miss fails all. The clock is read once a batch; what one get takes
// is seen in a part of its own, where one in a few is timed.

const (
	// Between readings of the clock.
	getsABatch = 1024
	// In the part that is for latency.
	timedOneIn = 16
	// Shards that are not all equally full must not evict.
	roomFor = 2
	// Longer than any measurement.
	freshFor = time.Hour
)

// held is what the caches hold a pointer to.
type held struct{ key uint32 }

// lookup gives what the cache holds of a key; nil: nothing.
type lookup func(key uint32) *held

// hits is what the lab reads.
type hits struct {
	Processors int     `json:"processors"`
	Gets       uint64  `json:"gets"`
	Seconds    float64 `json:"seconds"`
	P50        float64 `json:"p50_ns"`
	P99        float64 `json:"p99_ns"`
	// What reading the clock twice takes, which is in both.
	Clock float64 `json:"clock_ns"`
}

var caches = map[string]func(keys int) (lookup, error){
	"otter":   otterLookup,
	"sturdyc": sturdycLookup,
	"cachex":  cachexLookup,
}

func hitPath(flags *flag.FlagSet) measure {
	peer := flags.String("peer", "otter", "otter, sturdyc or cachex")
	keys := flags.Int("keys", 10_000, "keys that the cache holds, counted from 0")
	file := flags.String("sequence", "", "a file of the keys to get, in order, four bytes each, little-endian")
	return func(callers int, duration time.Duration) (any, error) {
		build, ok := caches[*peer]
		if !ok {
			return nil, fmt.Errorf("no peer %q here", *peer)
		}
		sequence, err := readSequence(*file)
		if err != nil {
			return nil, err
		}
		get, err := build(*keys)
		if err != nil {
			return nil, err
		}
		return getInTurns(get, sequence, callers, duration)
	}
}

func readSequence(file string) ([]uint32, error) {
	bytes, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sequence := make([]uint32, len(bytes)/4)
	for index := range sequence {
		sequence[index] = binary.LittleEndian.Uint32(bytes[4*index:])
	}
	if len(sequence) == 0 || len(sequence)%getsABatch != 0 {
		return nil, fmt.Errorf("a sequence of %d keys is not one of whole batches of %d", len(sequence), getsABatch)
	}
	return sequence, nil
}

// getInTurns warms up for an eighth of the time, counts gets for all of it, and then times some for a quarter of it.
func getInTurns(get lookup, sequence []uint32, callers int, duration time.Duration) (hits, error) {
	getters := make([]getter, callers)
	part := func(duration time.Duration, each func(*getter, time.Time) error) (time.Duration, error) {
		failures := make([]error, callers)
		var running sync.WaitGroup
		begun := time.Now()
		for index := range getters {
			running.Go(func() { failures[index] = each(&getters[index], begun.Add(duration)) })
		}
		running.Wait()
		return time.Since(begun), errors.Join(failures...)
	}
	for index := range getters {
		// Each begins elsewhere in the sequence.
		at := len(sequence) / getsABatch * index / callers * getsABatch
		getters[index] = getter{get: get, sequence: sequence, at: at}
	}
	if _, err := part(duration/8, (*getter).count); err != nil {
		return hits{}, err
	}
	for index := range getters {
		getters[index].gets = 0
	}
	took, err := part(duration, (*getter).count)
	if err != nil {
		return hits{}, err
	}
	if _, err := part(duration/4, (*getter).time); err != nil {
		return hits{}, err
	}
	seen := hits{Processors: runtime.GOMAXPROCS(0), Seconds: took.Seconds(), Clock: clock()}
	var all latencies
	for index := range getters {
		seen.Gets += getters[index].gets
		all.add(&getters[index].took)
	}
	seen.P50, seen.P99 = all.quantile(0.50), all.quantile(0.99)
	return seen, nil
}

// getter is one goroutine's life.
type getter struct {
	get      lookup
	sequence []uint32
	// Where in the sequence the next batch begins.
	at   int
	gets uint64
	took latencies
	// Getters write these side by side.
	_ [64]byte
}

func (g *getter) batch() []uint32 {
	batch := g.sequence[g.at : g.at+getsABatch]
	g.at += getsABatch
	if g.at == len(g.sequence) {
		g.at = 0
	}
	return batch
}

func wrong(key uint32, got *held) error {
	if got == nil {
		return fmt.Errorf("%d is not there", key)
	}
	return fmt.Errorf("%d was answered with %d", key, got.key)
}

func (g *getter) count(until time.Time) error {
	for {
		for _, key := range g.batch() {
			if got := g.get(key); got == nil || got.key != key {
				return wrong(key, got)
			}
		}
		g.gets += getsABatch
		if !time.Now().Before(until) {
			return nil
		}
	}
}

func (g *getter) time(until time.Time) error {
	for {
		for index, key := range g.batch() {
			var got *held
			if index%timedOneIn == 0 {
				begun := time.Now()
				got = g.get(key)
				g.took.note(time.Since(begun))
			} else {
				got = g.get(key)
			}
			if got == nil || got.key != key {
				return wrong(key, got)
			}
		}
		if !time.Now().Before(until) {
			return nil
		}
	}
}

// clock is what a reading of the clock and the next take, of half of them.
func clock() float64 {
	var took latencies
	for range 10_000 {
		begun := time.Now()
		took.note(time.Since(begun))
	}
	return took.quantile(0.50)
}

// holding is a value for each key; and for caches whose keys are texts, the text of each.
func holding(keys int) ([]*held, []string) {
	values, names := make([]*held, keys), make([]string, keys)
	for key := range keys {
		values[key], names[key] = &held{uint32(key)}, fmt.Sprintf("product-%d", key)
	}
	return values, names
}

func otterLookup(keys int) (lookup, error) {
	cache, err := otter.New(&otter.Options[uint64, *held]{
		MaximumSize:      roomFor * keys,
		ExpiryCalculator: otter.ExpiryWriting[uint64, *held](freshFor),
	})
	if err != nil {
		return nil, err
	}
	values, _ := holding(keys)
	for key, value := range values {
		cache.Set(uint64(key), value)
	}
	return func(key uint32) *held {
		value, _ := cache.GetIfPresent(uint64(key))
		return value
	}, nil
}

// sturdycLookup has the shards and the evictions of its own documentation.
func sturdycLookup(keys int) (lookup, error) {
	cache := sturdyc.New[*held](roomFor*keys, 10, freshFor, 10)
	values, names := holding(keys)
	for key, value := range values {
		cache.Set(names[key], value)
	}
	return func(key uint32) *held {
		value, _ := cache.Get(names[key])
		return value
	}, nil
}

// cachexLookup is made as its own benchmark makes it, over a source that is never to be asked.
func cachexLookup(keys int) (lookup, error) {
	unasked := func(_ context.Context, key string) (*cachex.Entry[*held], error) {
		return nil, fmt.Errorf("%s was fetched", key)
	}
	client, _, err := cachexClient(unasked, windows{
		fresh: freshFor, stale: freshFor, missingFresh: freshFor, missingStale: freshFor, fetchTimeout: time.Second,
	})
	if err != nil {
		return nil, err
	}
	everyone := context.Background()
	values, names := holding(keys)
	for key, value := range values {
		if err := client.Set(everyone, names[key], &cachex.Entry[*held]{Data: value, CachedAt: cachex.NowFunc()}); err != nil {
			return nil, err
		}
	}
	return func(key uint32) *held {
		entry, err := client.Get(everyone, names[key])
		if err != nil {
			return nil
		}
		return entry.Data
	}, nil
}
