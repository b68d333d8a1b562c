package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

var day = windows{
	fresh: time.Second, stale: 24 * time.Hour, missingFresh: time.Second, missingStale: 24 * time.Hour,
	fetchTimeout: 10 * time.Second,
}

func TestTrafficIsAsItIsTold(t *testing.T) {
	asked := newTraffic()
	const requests = 1_000_000
	var hot, warm, cold, unknown int
	seen := map[string]bool{}
	for range requests {
		id, exists := asked.next()
		seen[id] = true
		number := 0
		for _, digit := range strings.TrimPrefix(id, "product-") {
			number = number*10 + int(digit-'0')
		}
		switch {
		case !exists:
			unknown++
		case number <= 20:
			hot++
		case number <= 200:
			warm++
		default:
			cold++
		}
	}
	for _, part := range []struct{ count, thousandths int }{{hot, 800}, {warm, 150}, {cold, 40}, {unknown, 10}} {
		if off := part.count - part.thousandths*requests/1000; off > 2_000 || off < -2_000 {
			t.Errorf("%d of 1,000,000 are to be %d ‰", part.count, part.thousandths)
		}
	}
	if len(seen) != 1_050 {
		t.Errorf("%d names", len(seen))
	}
}

func TestADatabaseIsNeverBusierThanItsConnections(t *testing.T) {
	source := newDatabase(3, 10*time.Millisecond)
	begun := time.Now()
	var running sync.WaitGroup
	for range 9 {
		running.Go(func() {
			if found, err := source.query(context.Background(), "product-7"); err != nil || found.id != "product-7" {
				t.Error(found, err)
			}
		})
	}
	running.Wait()
	if took := time.Since(begun); took < 30*time.Millisecond {
		t.Error("9 queries, 3 at a time, of 10 ms each took", took)
	}
	if source.queries.Load() != 9 || time.Duration(source.busy.Load()) < 90*time.Millisecond {
		t.Error(source.queries.Load(), source.busy.Load())
	}
}

func TestASearchCountsRequestsAndQueries(t *testing.T) {
	seen, err := search(newDatabase(20, time.Millisecond), day, 50, 0, 100*time.Millisecond)
	if err != nil || seen.Errors != 0 || seen.Requests < seen.Queries || seen.Queries == 0 || seen.Seconds < 0.1 {
		t.Errorf("%+v %v", seen, err)
	}
	if seen.P50 <= 0 || seen.P95 < seen.P50 || seen.P99 < seen.P95 || seen.Busy <= 0 {
		t.Errorf("%+v", seen)
	}
}

func TestAFetchThatTakesTooLongIsAnError(t *testing.T) {
	hasty := day
	hasty.fetchTimeout = time.Millisecond
	seen, err := search(newDatabase(1, 20*time.Millisecond), hasty, 10, time.Millisecond, 100*time.Millisecond)
	if err != nil || seen.Errors == 0 || seen.Errors > seen.Requests {
		t.Errorf("%+v %v", seen, err)
	}
}

func TestAWrongProductFailsAll(t *testing.T) {
	source := newDatabase(50, time.Millisecond)
	source.products["product-7"] = source.products["product-8"]
	_, err := search(source, day, 50, 0, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "product-7 was answered with product-8") {
		t.Error(err)
	}
	delete(source.products, "product-7")
	_, err = search(source, day, 50, 0, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "product-7 was not found") {
		t.Error(err)
	}
}
