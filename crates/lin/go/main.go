// Sends concurrent operations to a server and checks with Porcupine that the server is
// linearizable: that each operation takes effect at one moment between its call and its return.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// Exit statuses.
const (
	linearizable = iota
	notLinearizable
	notTested
)

func main() {
	os.Exit(start())
}

func start() int {
	set := settings{}
	flag.StringVar(&set.address, "address", "", "HOST:PORT of the server")
	flag.Int64Var(&set.seed, "seed", 1, "where the random numbers begin")
	flag.Int64Var(&set.operations, "operations", math.MaxInt64, "end after so many")
	seconds := flag.Float64("seconds", 1e9, "end after so long")
	flag.IntVar(&set.connections[0], "connections-min", 8, "the fewest at a time")
	flag.IntVar(&set.connections[1], "connections-max", 64, "the most at a time")
	flag.StringVar(&set.folder, "folder", "", "where the picture of a violation goes")
	names := flag.String("profiles", "", "the kinds of history, separated by commas; all if empty")
	planted := flag.String("fault", "", "the fault to plant between the connections and the server")
	list := flag.Bool("list", false, "print the profiles and faults, and end")
	flag.Parse()
	if *list {
		printNames()
		return linearizable
	}
	set.time = time.Duration(*seconds * float64(time.Second))
	set.profiles = profiles
	if *names != "" {
		set.profiles = nil
		for _, name := range strings.Split(*names, ",") {
			at := slices.IndexFunc(profiles, func(p *profile) bool { return p.name == name })
			if at < 0 {
				return say(notTested, "no profile %q", name)
			}
			set.profiles = append(set.profiles, profiles[at])
		}
	}
	if *planted != "" {
		if set.fault = faultNamed(*planted); set.fault == nil {
			return say(notTested, "no fault %q", *planted)
		}
	}
	if set.connections[0] < 1 || set.connections[1] < set.connections[0] {
		return say(notTested, "connections from %d to %d", set.connections[0], set.connections[1])
	}
	return test(set)
}

func test(set settings) int {
	stats, err := drive(set)
	if stats != nil {
		stats.print(os.Stdout)
		fmt.Printf("%10.1f seconds, seed %d\n", time.Since(began).Seconds(), set.seed)
	}
	var found *violation
	if errors.As(err, &found) {
		fmt.Print(found.report)
		return notLinearizable
	}
	if err != nil {
		return say(notTested, "%v", err)
	}
	fmt.Println("linearizable")
	return linearizable
}

func printNames() {
	for _, p := range profiles {
		fmt.Printf("profile %s\n", p.name)
	}
	for _, f := range faults {
		fmt.Printf("fault %s: %s\n", f.name, f.about)
	}
}

func say(status int, format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "lin: "+format+"\n", args...)
	return status
}
