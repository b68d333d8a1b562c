package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"
)

// Answers rightly until the given call of each caller, then as told.
func oddly(from uint64, odd func(uint64) (uint64, error)) asker {
	return func() func(uint64) (uint64, error) {
		return func(item uint64) (uint64, error) {
			batches.Add(1)
			if item&(1<<32-1) >= from {
				return odd(item)
			}
			return answer(item), nil
		}
	}
}

func TestOneWrongAnswerFailsAll(t *testing.T) {
	wrong := func(item uint64) (uint64, error) { return answer(item) + 1, nil }
	_, err := closedLoop(oddly(1, wrong), 3, 20*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "was answered with") {
		t.Fatal(err)
	}
}

func TestOneMissingAnswerFailsAll(t *testing.T) {
	missing := func(uint64) (uint64, error) { return 0, errors.New("closed") }
	_, err := closedLoop(oddly(1, missing), 3, 20*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "closed") {
		t.Fatal(err)
	}
}

func TestEveryPeerAnswersInBatches(t *testing.T) {
	for _, arguments := range [][]string{
		{"batcher", "-max-items=10"},
		{"batcher", "-max-items=10", "-window=1ms"},
		{"loader", "-peer=dataloadgen", "-max-items=10"},
		{"loader", "-peer=graph-gophers", "-max-items=10"},
	} {
		flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
		system := askers[arguments[0]](flags)
		if err := flags.Parse(arguments[1:]); err != nil {
			t.Fatal(err)
		}
		// On a busy machine one turn may see few calls.
		before, calls := batches.Load(), uint64(0)
		for turn := 0; turn < 100 && calls < 1000; turn++ {
			seen, err := closedLoop(system(), 40, 20*time.Millisecond)
			if err != nil {
				t.Fatal(arguments, err)
			}
			calls += seen.Calls
		}
		// Batches of the warm-up are among them, so that there are enough for all calls.
		ran := batches.Load() - before
		// Who does not wait hardly gathers while the processor has nothing to do.
		waits := len(arguments) > 2 || arguments[0] == "loader"
		if calls > 10*ran || waits && calls < 2*ran {
			t.Errorf("%v: %d calls in %d batches", arguments, calls, ran)
		}
	}
}

func TestAWindowGathersWhatComesLater(t *testing.T) {
	requests := make(chan request)
	taken := 0
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	go func() {
		for range 3 {
			requests <- request{}
		}
	}()
	// Ends because it is full, an hour early.
	gather(requests, func(request) { taken++ }, 3, timer, time.Hour)
	if taken != 3 {
		t.Fatal(taken)
	}
	// Ends because time is up.
	gather(requests, func(request) { taken++ }, 3, timer, time.Millisecond)
	if taken != 3 {
		t.Fatal(taken)
	}
}
