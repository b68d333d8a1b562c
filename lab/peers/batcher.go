package main

import (
	"flag"
	"time"
)

// The batching one writes by hand in Go: callers send to one channel, a goroutine takes what waits, has it processed, and
// answers each caller on the channel that this caller keeps for its answers.

type request struct {
	item   uint64
	answer chan<- uint64
}

func batcher(flags *flag.FlagSet) func() asker {
	maxItems := flags.Int("max-items", 1000, "most items in a batch")
	window := flags.Duration("window", 0, "how long a batch that is not full waits; 0: not at all")
	return func() asker {
		requests := make(chan request, *maxItems)
		go serve(requests, *maxItems, *window)
		return func() func(uint64) (uint64, error) {
			answers := make(chan uint64, 1)
			return func(item uint64) (uint64, error) {
				requests <- request{item, answers}
				return <-answers, nil
			}
		}
	}
}

// process does nothing but answer.
func process(items []uint64) []uint64 {
	for index, item := range items {
		items[index] = answer(item)
	}
	return items
}

func serve(requests <-chan request, maxItems int, window time.Duration) {
	items := make([]uint64, 0, maxItems)
	callers := make([]chan<- uint64, 0, maxItems)
	take := func(taken request) {
		items = append(items, taken.item)
		callers = append(callers, taken.answer)
	}
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	for taken := range requests {
		take(taken)
		gather(requests, take, maxItems-1, timer, window)
		batches.Add(1)
		for index, answer := range process(items) {
			callers[index] <- answer
		}
		items, callers = items[:0], callers[:0]
	}
}

// gather takes up to room more: what waits, and with a window also what comes until it ends.
func gather(requests <-chan request, take func(request), room int, timer *time.Timer, window time.Duration) {
	for ; room > 0; room-- {
		select {
		case taken := <-requests:
			take(taken)
			continue
		default:
		}
		break
	}
	if window == 0 || room == 0 {
		return
	}
	timer.Reset(window)
	defer timer.Stop()
	for ; room > 0; room-- {
		select {
		case taken := <-requests:
			take(taken)
		case <-timer.C:
			return
		}
	}
}
