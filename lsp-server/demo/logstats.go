// Package logstats groups request logs by path and names the slowest ones.
// It is written the way first versions are: clear, correct, and slow.
package logstats

import (
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Request is one line of the log: "GET /path took=123µs".
type Request struct {
	Path   string
	Micros int
}

// parse reads one line; ok is false for anything else.
func parse(line string) (req Request, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != "GET" {
		return req, false
	}
	digits := regexp.MustCompile(`\d+`).FindString(fields[2])
	req.Micros, _ = strconv.Atoi(digits)
	req.Path = normal(fields[1])
	return req, true
}

// normal makes one path of all spellings of it.
func normal(path string) string {
	for strings.Contains(path, "//") {
		path = strings.Replace(path, "//", "/", 1)
	}
	return strings.ToLower(strings.TrimSuffix(path, "/"))
}

// Slowest returns the paths of a log by falling median.
func Slowest(log string) []string {
	times := map[string][]int{}
	for _, line := range strings.Split(log, "\n") {
		if req, ok := parse(line); ok {
			times[req.Path] = append(times[req.Path], req.Micros)
		}
	}
	paths := make([]string, 0, len(times))
	for path := range times {
		paths = append(paths, path)
	}
	sort.Slice(paths, func(i, j int) bool {
		return median(times[paths[i]]) > median(times[paths[j]])
	})
	return paths
}

func median(micros []int) int {
	sorted := append([]int(nil), micros...)
	sort.Ints(sorted)
	return sorted[len(sorted)/2]
}
