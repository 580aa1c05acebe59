/* A fixed amount of work, 18 frames deep, without frame pointers: deep ROUNDS. Prints its CPU time in milliseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) unsigned long work(unsigned long x)
{
	unsigned long a[8] = { x };
	for (int i = 0; i < 20000; i++)
		a[i & 7] = a[(i + 1) & 7] * 6364136223846793005ul + i;
	return a[3];
}

__attribute__((noinline)) unsigned long down(unsigned long x, int depth)
{
	volatile char some[100];
	some[0] = depth;
	unsigned long y = depth ? down(x + 1, depth - 1) : work(x);
	return y + some[0];
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100;
	for (long i = 0; i < rounds; i++)
		sink += down(i, 14);
	printf("%ld\n", clock() / (CLOCKS_PER_SEC / 1000));
	return 0;
}
