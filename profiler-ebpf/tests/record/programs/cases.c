/* Small programs for one peculiarity each: cases NAME [ARGUMENT…]. Built without frame pointers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) void burn(double seconds)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	double end = t.tv_sec + t.tv_nsec * 1e-9 + seconds;
	do {
		for (int i = 0; i < 20000; i++)
			sink += i * sink;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec + t.tv_nsec * 1e-9 < end);
}

/* Signals interrupt `interrupted`; the handler's stack must lead back into it. */
__attribute__((noinline)) void on_signal(int signal)
{
	burn(0.004);
	sink += signal; /* no tail call */
}

__attribute__((noinline)) void interrupted(void)
{
	burn(1.2);
	sink++;
}

static void signals(void)
{
	struct itimerval every = { { 0, 8000 }, { 0, 8000 } };
	signal(SIGPROF, on_signal);
	setitimer(ITIMER_PROF, &every, 0);
	interrupted();
}

/* A frame that is aligned more than the ABI asks for, and one whose size is known at run time only. */
__attribute__((noinline)) void realigned(int depth)
{
	_Alignas(128) volatile char wide[256];
	volatile char *any = __builtin_alloca(64 + depth * 16);
	wide[0] = any[0] = depth;
	if (depth)
		realigned(depth - 1);
	else
		burn(0.01);
	sink += wide[0] + any[0];
}

static void aligned(void)
{
	for (int i = 0; i < 60; i++)
		realigned(6);
}

__attribute__((noinline)) void child_work(int depth)
{
	volatile char some[40];
	some[0] = depth;
	if (depth)
		child_work(depth - 1);
	else
		burn(0.015);
	some[1] = some[0];
}

static void forks(void)
{
	for (int i = 0; i < 40; i++) {
		if (!fork()) {
			child_work(8);
			_exit(0);
		}
		wait(0);
	}
}

static void *worker(void *argument)
{
	(void)argument;
	burn(0.7);
	return 0;
}

/* The first thread ends; the process goes on. */
static void orphan(void)
{
	pthread_t thread;
	pthread_create(&thread, 0, worker, 0);
	pthread_exit(0);
}

static void plugin(const char *path)
{
	burn(0.3);
	void *library = dlopen(path, RTLD_NOW);
	if (!library)
		exit(3);
	void (*work)(double) = (void (*)(double))dlsym(library, "plugin_work");
	work(1.0);
}

static void programs(const char *self)
{
	for (int i = 0; i < 30; i++) {
		if (!fork()) {
			execl(self, self, "burn", "0.03", (char *)0);
			_exit(127);
		}
		wait(0);
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (!strcmp(name, "burn"))
		burn(argc > 2 ? atof(argv[2]) : 1);
	else if (!strcmp(name, "signals"))
		signals();
	else if (!strcmp(name, "aligned"))
		aligned();
	else if (!strcmp(name, "forks"))
		forks();
	else if (!strcmp(name, "orphan"))
		orphan();
	else if (!strcmp(name, "plugin"))
		plugin(argv[2]);
	else if (!strcmp(name, "programs"))
		programs(argv[0]);
	else if (!strcmp(name, "sleep")) {
		burn(0.1);
		sleep(60);
	}
	else
		return 2;
	return 0;
}
