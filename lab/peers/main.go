// Command peers measures one peer written in Go in one case, and prints one line of figures as JSON.
//
//	peers SCENARIO -callers N -seconds S [the scenario's own flags]
//
// It exits with 1, and says why on standard error, when an answer is wrong or missing.
// It knows the peers; the cases are chosen by the lab, which builds and runs it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// asker makes what one caller asks with: it is called in the caller's own goroutine.
type asker func() func(item uint64) (uint64, error)

// measure runs once and gives the figures, which are printed as JSON.
type measure func(callers int, duration time.Duration) (any, error)

// askers are the systems that are asked in the closed loop. They set their own flags, and are made once these are read.
var askers = map[string]func(flags *flag.FlagSet) func() asker{
	"batcher": batcher,
	"loader":  loader,
}

// measures are the scenarios with a loop of their own; their flags are as those of the askers.
var measures = map[string]func(flags *flag.FlagSet) measure{
	"cache":      hitPath,
	"cold-start": coldStart,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("name a scenario")
	}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	callers := flags.Int("callers", 1, "goroutines that ask")
	seconds := flags.Float64("seconds", 1, "how long is measured")
	measure, ok := chosen(arguments[0], flags)
	if !ok {
		return fmt.Errorf("no scenario %q here", arguments[0])
	}
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	figures, err := measure(*callers, time.Duration(*seconds*float64(time.Second)))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(figures)
}

// chosen is the scenario of that name.
func chosen(name string, flags *flag.FlagSet) (measure, bool) {
	if own, ok := measures[name]; ok {
		return own(flags), true
	}
	asked, ok := askers[name]
	if !ok {
		return nil, false
	}
	system := asked(flags)
	return func(callers int, duration time.Duration) (any, error) {
		return closedLoop(system(), callers, duration)
	}, true
}
