// Spends its time on one line, below a function that is inlined.
// Usage: hot SECONDS
package main

import (
	"os"
	"strconv"
	"time"
)

var sink uint64

func mix(x uint64) uint64 {
	return x*6364136223846793005 + 1442695040888963407 // hot
}

//go:noinline
func burn(rounds int) {
	x := uint64(rounds)
	for i := 0; i < rounds; i++ {
		x = mix(x) // calls
	}
	sink += x
}

func main() {
	seconds := 1.0
	if len(os.Args) > 1 {
		seconds, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	for end := time.Now().Add(time.Duration(seconds * 1e9)); time.Now().Before(end); {
		burn(400000)
	}
}
