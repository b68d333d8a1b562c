package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	dataloader "github.com/graph-gophers/dataloader/v7"
	"github.com/vikstrous/dataloadgen"
)

// The loaders: each with its memory off, so that every load really loads, over a fetch that does nothing but answer.

func loader(flags *flag.FlagSet) func() asker {
	peer := flags.String("peer", "dataloadgen", "dataloadgen or graph-gophers")
	maxItems := flags.Int("max-items", 100, "most keys in a fetch")
	wait := flags.Duration("wait", time.Millisecond, "how long a batch that is not full waits")
	return func() asker {
		var ask func(uint64) (uint64, error)
		switch *peer {
		case "dataloadgen":
			ask = dataloadgenAsk(*maxItems, *wait)
		case "graph-gophers":
			ask = graphGophersAsk(*maxItems, *wait)
		default:
			fmt.Fprintf(os.Stderr, "no peer %q here\n", *peer)
			os.Exit(1)
		}
		return func() func(uint64) (uint64, error) { return ask }
	}
}

func dataloadgenAsk(maxItems int, wait time.Duration) func(uint64) (uint64, error) {
	fetch := func(_ context.Context, keys []uint64) ([]uint64, []error) {
		batches.Add(1)
		values := make([]uint64, len(keys))
		for index, key := range keys {
			values[index] = answer(key)
		}
		return values, nil
	}
	loader := dataloadgen.NewLoader(fetch,
		dataloadgen.WithBatchCapacity(maxItems), dataloadgen.WithWait(wait), dataloadgen.WithoutCache())
	everyone := context.Background()
	return func(key uint64) (uint64, error) { return loader.Load(everyone, key) }
}

func graphGophersAsk(maxItems int, wait time.Duration) func(uint64) (uint64, error) {
	fetch := func(_ context.Context, keys []uint64) []*dataloader.Result[uint64] {
		batches.Add(1)
		// One allocation for all values, one for the pointers that the interface asks for.
		values := make([]dataloader.Result[uint64], len(keys))
		results := make([]*dataloader.Result[uint64], len(keys))
		for index, key := range keys {
			values[index].Data = answer(key)
			results[index] = &values[index]
		}
		return results
	}
	loader := dataloader.NewBatchedLoader(fetch,
		dataloader.WithBatchCapacity[uint64, uint64](maxItems),
		dataloader.WithInputCapacity[uint64, uint64](maxItems),
		dataloader.WithWait[uint64, uint64](wait),
		dataloader.WithCache[uint64, uint64](&dataloader.NoCache[uint64, uint64]{}))
	everyone := context.Background()
	return func(key uint64) (uint64, error) { return loader.Load(everyone, key)() }
}
