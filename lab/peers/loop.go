package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A closed loop: goroutines that each ask, await their own answer, check it, and ask again until time is up.
// The same as the lab's own for tasks: a call takes a clock reading only when it is sampled, one in 64, and asking begins
// before the time that is measured and ends after it.

// Parts of a turn, in order.
const (
	warmUp = iota
	timed
	over
)

const (
	sampledOneIn = 64
	// Longer than any peer may take for an answer.
	patience = 30 * time.Second
)

// Batches that the system has run; its processor counts them.
var batches atomic.Uint64

// figures is what the lab reads.
type figures struct {
	Processors  int     `json:"processors"`
	Calls       uint64  `json:"calls"`
	Seconds     float64 `json:"seconds"`
	Batches     uint64  `json:"batches"`
	Allocations uint64  `json:"allocations"`
	Bytes       uint64  `json:"bytes"`
	P50         float64 `json:"p50_us"`
	P99         float64 `json:"p99_us"`
}

// answer is the right answer: never the item itself, never what an empty place would hold.
func answer(item uint64) uint64 { return item*2 + 1 }

// tally is what one caller has seen.
type tally struct {
	calls uint64
	took  []time.Duration
	err   error
	// Callers write these side by side.
	_ [64]byte
}

func closedLoop(system asker, callers int, duration time.Duration) (figures, error) {
	var part atomic.Int32
	// Whether a call has ended in the timed part, or will not.
	var ended atomic.Bool
	tallies := make([]tally, callers)
	var running sync.WaitGroup
	for caller := range callers {
		running.Go(func() {
			tallies[caller].run(system(), uint64(caller), &part, &ended)
		})
	}
	time.Sleep(duration / 8)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	batchesBefore := batches.Load()
	begun := time.Now()
	part.Store(timed)
	time.Sleep(duration)
	for !ended.Load() {
		if time.Since(begun) > patience {
			return figures{}, fmt.Errorf("no call ended within %v", patience)
		}
		time.Sleep(time.Millisecond)
	}
	part.Store(over)
	took := time.Since(begun)
	batchesAfter := batches.Load()
	runtime.ReadMemStats(&after)

	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		return figures{}, fmt.Errorf("a call had no answer within %v", patience)
	}
	seen := figures{
		Processors:  runtime.GOMAXPROCS(0),
		Seconds:     took.Seconds(),
		Batches:     batchesAfter - batchesBefore,
		Allocations: after.Mallocs - before.Mallocs,
		Bytes:       after.TotalAlloc - before.TotalAlloc,
	}
	var samples []time.Duration
	for index := range tallies {
		if err := tallies[index].err; err != nil {
			return figures{}, err
		}
		seen.Calls += tallies[index].calls
		samples = append(samples, tallies[index].took...)
	}
	if len(samples) > 0 {
		slices.Sort(samples)
		quantile := func(part float64) float64 {
			return float64(samples[int(part*float64(len(samples)-1))]) / float64(time.Microsecond)
		}
		seen.P50, seen.P99 = quantile(0.50), quantile(0.99)
	}
	return seen, nil
}

// run is one caller's life.
func (t *tally) run(ask func(uint64) (uint64, error), caller uint64, part *atomic.Int32, ended *atomic.Bool) {
	for call := uint64(0); ; call++ {
		item := caller<<32 | call
		sampled := (caller+call)%sampledOneIn == 0
		var begun time.Time
		if sampled {
			begun = time.Now()
		}
		got, err := ask(item)
		if err == nil && got != answer(item) {
			err = fmt.Errorf("%d was answered with %d", item, got)
		}
		if err != nil {
			t.err = err
			ended.Store(true)
			return
		}
		switch part.Load() {
		case over:
			return
		case timed:
			if t.calls == 0 {
				ended.Store(true)
			}
			t.calls++
			if sampled {
				t.took = append(t.took, time.Since(begun))
			}
		}
	}
}
