package sums

import (
	"os"
	"testing"
)

// Set-up that is no part of any test.
func TestMain(m *testing.M) {
	if Steady(20_000_000) == 0 { // set-up
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func TestSums(t *testing.T) {
	t.Run("in a goroutine of its own", func(t *testing.T) {
		if Hot(20_000_000) == Steady(20_000_000) {
			t.Error("they are equal")
		}
	})
}

func TestFails(t *testing.T) {
	if Hot(1_000_000) != 7 {
		t.Fatal("it is never seven")
	}
}

func BenchmarkSums(b *testing.B) {
	for i := 0; i < b.N; i++ {
		if Hot(20_000) == Steady(20_000) {
			b.Fatal("they are equal")
		}
	}
}
