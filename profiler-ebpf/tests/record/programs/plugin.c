/* A library that is loaded while the program runs. */
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) void plugin_inner(double seconds)
{
	double end = clock() + seconds * CLOCKS_PER_SEC;
	do {
		for (int i = 0; i < 20000; i++)
			sink += i * sink;
	} while (clock() < end);
	sink++;
}

void plugin_work(double seconds)
{
	volatile char some[80];
	some[0] = 1;
	plugin_inner(seconds);
	sink += some[0];
}
