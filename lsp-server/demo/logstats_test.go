package logstats

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

func BenchmarkSlowest(b *testing.B) {
	random := rand.New(rand.NewSource(1))
	var log strings.Builder
	for range 20_000 {
		path := fmt.Sprintf("//API//v%d//Item/%d/", random.Intn(3), random.Intn(40))
		fmt.Fprintf(&log, "GET %s took=%dµs\n", path, random.Intn(10_000))
	}
	for b.Loop() {
		Slowest(log.String())
	}
}
