package main

import (
	"math/bits"
	"time"
)

// How long requests took, told to within 1.6 %, for a few nanoseconds and no allocation a request.
// The lab's own for tasks has the same buckets: 64 to each doubling.

const (
	stepsBits = 6
	steps     = 1 << stepsBits
	// Up to 2^40 ns, which is 18 minutes.
	doublings = 40 - stepsBits
)

type latencies struct {
	counts [(doublings + 1) * steps]uint64
	total  uint64
}

func bucketOf(took uint64) int {
	if took < steps {
		return int(took)
	}
	doubling := bits.Len64(took) - stepsBits
	if doubling > doublings {
		return (doublings+1)*steps - 1
	}
	// The leading bit is known, the next ones choose among the steps.
	return doubling*steps + int(took>>(doubling-1)) - steps
}

// middleOf is what is told for all that a bucket holds.
func middleOf(bucket int) float64 {
	if bucket < steps {
		return float64(bucket)
	}
	doubling, step := bucket/steps, bucket%steps
	width := float64(uint64(1) << (doubling - 1))
	return (float64(steps+step) + 0.5) * width
}

func (l *latencies) note(took time.Duration) {
	l.counts[bucketOf(uint64(took))]++
	l.total++
}

func (l *latencies) add(other *latencies) {
	for bucket, count := range other.counts {
		l.counts[bucket] += count
	}
	l.total += other.total
}

// quantile is in nanoseconds; 0 of nothing.
func (l *latencies) quantile(part float64) float64 {
	rank := uint64(part * float64(l.total))
	seen := uint64(0)
	for bucket, count := range l.counts {
		seen += count
		if seen > rank {
			return middleOf(bucket)
		}
	}
	return 0
}
