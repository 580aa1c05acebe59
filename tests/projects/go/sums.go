// Package sums has sums that take time.
package sums

// Hot costs twice what Steady does.
func Hot(rounds uint64) uint64 {
	sum := uint64(1)
	for round := uint64(0); round < 2*rounds; round++ { sum = (sum ^ round) * 0x9E3779B9; sum = sum<<7 | sum>>57 } // hot
	return sum
}

// Steady costs what it costs.
func Steady(rounds uint64) uint64 {
	sum := uint64(3)
	for round := uint64(0); round < rounds; round++ { sum = (sum ^ round) * 0x85EBCA6B; sum = sum<<9 | sum>>55 } // steady
	return sum
}
