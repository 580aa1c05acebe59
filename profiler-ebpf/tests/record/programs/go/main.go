// Goroutines, closures and the collector; built as go build does.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
)

//go:noinline
func leaf(n int) int {
	sum := 0
	for i := 0; i < 20000; i++ {
		sum += i * n % 7
	}
	return sum
}

//go:noinline
func middle(n, depth int) int {
	if depth == 0 {
		return leaf(n)
	}
	return middle(n+1, depth-1) + depth
}

//go:noinline
func texts(n int) int {
	all := make([]string, 0, 100)
	for i := 0; i < 100; i++ {
		all = append(all, fmt.Sprintf("%d", i*n%1009))
	}
	sort.Strings(all)
	return len(all)
}

func main() {
	rounds := 1000
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	var group sync.WaitGroup
	for w := 0; w < 3; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < rounds; i++ {
				middle(i, 8)
				texts(i)
			}
		}()
	}
	group.Wait()
}
