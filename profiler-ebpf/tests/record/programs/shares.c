/* Two functions that cost 2 : 1, below a chain of calls; built without frame pointers. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

#define WORK(name, rounds)                                                             \
	__attribute__((noinline)) unsigned long name(unsigned long x)                      \
	{                                                                                  \
		unsigned long a[8] = { x };                                                    \
		for (int i = 0; i < rounds; i++)                                               \
			a[i & 7] = a[(i + 1) & 7] * 6364136223846793005ul + i;                     \
		return a[3];                                                                   \
	}
WORK(twice, 20000)
WORK(once, 10000)

__attribute__((noinline)) unsigned long middle(unsigned long x, int depth)
{
	char text[200]; /* a frame of some size */
	snprintf(text, 8, "%d", depth);
	unsigned long y = depth ? middle(x + 1, depth - 1) : twice(x) + once(x);
	return y + text[0];
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	while (clock() < seconds * CLOCKS_PER_SEC)
		sink += middle(sink, 10);
	return 0;
}
