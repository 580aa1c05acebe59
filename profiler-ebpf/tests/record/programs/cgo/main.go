// Go that calls C: stacks go through both, and change stacks in between.
package main

// static long burn(long n)
// {
// 	volatile long sum = 0;
// 	for (long i = 0; i < n; i++)
// 		sum += i * sum;
// 	return sum;
// }
import "C"

import (
	"os"
	"strconv"
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
func caller(n int) int {
	return leaf(n) + int(C.burn(20000))
}

func main() {
	rounds := 1000
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	for i := 0; i < rounds; i++ {
		caller(i)
	}
}
