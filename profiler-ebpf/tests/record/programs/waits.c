/* Threads that wait, and memory that stays: waits NAME. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sink;

static void pause_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&t, 0);
}

/* Sleeps 20 times for 20 ms. */
__attribute__((noinline)) void sleeps(void)
{
	for (int i = 0; i < 20; i++)
		pause_ms(20);
	sink++;
}

/* Waits for the lock that the other thread holds, 20 times for 10 ms or so. */
__attribute__((noinline)) void waits_for_lock(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		pause_ms(2);
	}
	sink++;
}

static void *holder(void *argument)
{
	for (int i = 0; i < 60; i++) {
		pthread_mutex_lock(&lock);
		pause_ms(10);
		pthread_mutex_unlock(&lock);
		pause_ms(1);
	}
	return argument;
}

static void *forever(void *argument)
{
	pause();
	return argument;
}

static void off_cpu(void)
{
	pthread_t thread, last;
	pthread_create(&last, 0, forever, 0);
	sleeps();
	pthread_create(&thread, 0, holder, 0);
	waits_for_lock();
	pthread_join(thread, 0);
}

enum { MANY = 40000 };
static void *kept[MANY];

/* 40 000 times 2 000 bytes, all of which stay. */
__attribute__((noinline)) void keeps(void)
{
	for (int i = 0; i < MANY; i++)
		kept[i] = malloc(2000);
	sink++;
}

/* 200 MB through 64 KiB at a time, none of which stays. */
__attribute__((noinline)) void passes(void)
{
	for (int i = 0; i < 3200; i++) {
		char *p = malloc(65536);
		p[i] = 1;
		sink += p[0];
		free(p);
	}
}

/* Half of 80 MB grows by realloc. */
__attribute__((noinline)) void grows(void)
{
	char *p = 0;
	for (int i = 1; i <= 80; i++)
		p = realloc(p, i << 20);
	kept[0] = p;
	sink++;
}

/* 64 MB, touched page by page. */
__attribute__((noinline)) void touches(void)
{
	size_t size = 64 << 20;
	char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < size; i += 4096)
		p[i] = 1;
	sink += p[0];
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (!strcmp(name, "off-cpu")) {
		off_cpu();
		_exit(0);
	} else if (!strcmp(name, "alloc")) {
		/* A process's first moments are counted apart. */
		pause_ms(20);
		keeps();
		passes();
		grows();
	} else if (!strcmp(name, "faults")) {
		touches();
	} else {
		return 2;
	}
	return 0;
}
