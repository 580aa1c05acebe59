// Groups request logs by path and names the slowest one.
// It is written the way first versions are: clear, correct, and slow.
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATHS 200
#define TIMES 500

// A path and how long its requests took.
struct path {
	char name[64];
	int count, micros[TIMES];
};

// Reads one line of the log, "GET /path took=123us"; 0 for anything else.
static int parse(const char *line, char path[64], int *micros)
{
	regex_t pattern;
	regmatch_t parts[3];
	regcomp(&pattern, "^GET ([^ ]+) took=([0-9]+)us$", REG_EXTENDED);
	int failed = regexec(&pattern, line, 3, parts, 0);
	regfree(&pattern);
	if (failed)
		return 0;
	snprintf(path, 64, "%.*s", (int)(parts[1].rm_eo - parts[1].rm_so), line + parts[1].rm_so);
	*micros = atoi(line + parts[2].rm_so);
	return 1;
}

// Finds a path among those seen, or adds it.
static struct path *lookup(struct path *paths, const char *name)
{
	struct path *path = paths;
	while (path->name[0] && strcmp(path->name, name) != 0)
		path++;
	strcpy(path->name, name);
	return path;
}

static int by_size(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int median(const struct path *path)
{
	int sorted[TIMES];
	memcpy(sorted, path->micros, sizeof sorted);
	qsort(sorted, path->count, sizeof *sorted, by_size);
	return sorted[path->count / 2];
}

int main(void)
{
	static struct path paths[PATHS + 1];
	for (int request = 0; clock() < 2 * CLOCKS_PER_SEC; request++) {
		char line[96], name[64];
		int micros;
		snprintf(line, sizeof line, "GET /users/%d took=%dus", request * 7 % PATHS, request * 31 % 9973);
		if (!parse(line, name, &micros))
			continue;
		struct path *path = lookup(paths, name);
		path->micros[path->count++ % TIMES] = micros;
		if (path->count == TIMES) {
			printf("%s %d\n", path->name, median(path));
			path->count = 0;
		}
	}
	return 0;
}
