// A small Go program that hands out its profiles, to be scraped by profiling servers under test.
//
//	go run demo.go 127.0.0.1:6060
package main

import (
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"
	"time"
)

// held stays in use: 64 blocks of 64 KiB.
var held [][]byte

func hold() {
	for range 64 {
		held = append(held, make([]byte, 64<<10))
	}
}

func burn(rounds int) uint64 {
	sum := uint64(1)
	for i := range rounds {
		sum = sum*31 + uint64(i)
	}
	return sum
}

func main() {
	hold()
	go func() {
		var sum uint64
		for {
			sum += burn(2_000_000)
			time.Sleep(20 * time.Millisecond)
			if sum == 42 {
				fmt.Println("unlikely")
			}
		}
	}()
	if err := http.ListenAndServe(os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
