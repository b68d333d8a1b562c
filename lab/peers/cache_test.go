package main

import (
	"strings"
	"testing"
	"time"
)

func everyKey(keys int) []uint32 {
	sequence := make([]uint32, getsABatch*(keys/getsABatch+1))
	for index := range sequence {
		sequence[index] = uint32(index % keys)
	}
	return sequence
}

func TestEveryCacheHoldsWhatItWasGiven(t *testing.T) {
	const keys = 10_000
	for name, build := range caches {
		get, err := build(keys)
		if err != nil {
			t.Fatal(name, err)
		}
		seen, err := getInTurns(get, everyKey(keys), 2, 8*time.Millisecond)
		if err != nil {
			t.Fatal(name, err)
		}
		if seen.Gets == 0 || seen.P50 <= 0 || seen.P99 < seen.P50 || seen.Clock <= 0 {
			t.Errorf("%s: %+v", name, seen)
		}
	}
}

func TestAMissAndAWrongValueFailAll(t *testing.T) {
	for said, get := range map[string]lookup{
		"7 is not there": func(key uint32) *held {
			if key == 7 {
				return nil
			}
			return &held{key}
		},
		"7 was answered with 8": func(key uint32) *held { return &held{key + key/7} },
	} {
		for _, each := range []func(*getter, time.Time) error{(*getter).count, (*getter).time} {
			err := each(&getter{get: get, sequence: everyKey(8)[:getsABatch]}, time.Now())
			if err == nil || !strings.Contains(err.Error(), said) {
				t.Errorf("%s: %v", said, err)
			}
		}
		if _, err := getInTurns(get, everyKey(8)[:getsABatch], 2, time.Millisecond); err == nil {
			t.Errorf("%s: a failure of one getter is none of all", said)
		}
	}
}

func TestLatenciesAreToldToWithinTheirSteps(t *testing.T) {
	for _, took := range []uint64{0, 1, 63, 64, 127, 128, 1_000, 123_456, 5_000_000_000} {
		var all latencies
		for range 3 {
			all.note(time.Duration(took))
		}
		told := all.quantile(0.5)
		if off := told - float64(took); off > float64(took)/64+0.5 || -off > float64(took)/64 {
			t.Errorf("%d ns is told as %v", took, told)
		}
	}
	var all latencies
	for took := range 100 {
		all.note(time.Duration(took))
	}
	// Above 63 ns a bucket has its middle, 64.5 being that of 64 alone.
	if p50, p99 := all.quantile(0.50), all.quantile(0.99); p50 != 50 || p99 != 99.5 {
		t.Error(p50, p99)
	}
	all.note(1 << 60)
	if all.quantile(1.1) != 0 || all.quantile(0.9999) < 1<<39 {
		t.Error("what takes longest belongs to the last bucket")
	}
}
