/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Put in front of a program's allocator, it lets about one allocation per 512 KiB be seen.
 *
 * A probe on every malloc would cost eighty times what malloc costs. Here a thread counts bytes down, a
 * few instructions per call, and calls `perflens_alloc_sample` when they are used up; only that carries the
 * probe. Intervals are exponentially distributed, so that every byte is equally likely to be seen, whatever
 * sizes come in which order. Sampled pointers are remembered, so that giving them back is seen too.
 *
 * It allocates nothing itself, calls on to whatever allocator comes next (glibc's, jemalloc's), and needs
 * no library beyond what defines `dlsym`. What it can't see: static programs, allocators that are not
 * called malloc, memory mapped by hand.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define PROBE __attribute__((visibility("default"), noinline, used))
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* Mean distance between samples in bytes. */
enum { INTERVAL = 512 * 1024 };

/* ---- What the recorder puts its probes on. ---- */

PROBE void perflens_alloc_sample(void *pointer, size_t size, size_t interval)
{
	__asm__ volatile("" ::"r"(pointer), "r"(size), "r"(interval) : "memory");
}

PROBE void perflens_free_sample(void *pointer)
{
	__asm__ volatile("" ::"r"(pointer) : "memory");
}

/* ---- The next allocator. ---- */

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static void *(*next_memalign)(size_t, size_t);

/* Looking for it may allocate; that comes from here, and is never given back. */
static char early[64 * 1024] __attribute__((aligned(16)));
static size_t early_used;

static void *early_alloc(size_t size)
{
	size_t rounded = (size + 15) & ~(size_t)15;
	if (size > sizeof(early))
		return NULL;
	size_t at = __atomic_fetch_add(&early_used, rounded, __ATOMIC_RELAXED);
	return at + rounded <= sizeof(early) ? early + at : NULL;
}

static int is_early(const void *pointer)
{
	return (uintptr_t)pointer - (uintptr_t)early < sizeof(early);
}

static __thread int resolving __attribute__((tls_model("initial-exec")));

static void resolve(void)
{
	resolving = 1;
	next_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
	next_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	next_posix_memalign = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
	next_aligned_alloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
	next_memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "memalign");
	next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	/* Last: whoever sees it sees all. */
	__atomic_store_n(&next_malloc, (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc"), __ATOMIC_RELEASE);
	resolving = 0;
}

/* Whether there is an allocator to call on to. */
static inline int ready(void)
{
	if (LIKELY(__atomic_load_n(&next_malloc, __ATOMIC_ACQUIRE) != NULL))
		return 1;
	if (resolving)
		return 0;
	resolve();
	return next_malloc != NULL;
}

/* ---- Which allocations are seen. ---- */

static __thread int64_t left __attribute__((tls_model("initial-exec")));
static __thread uint64_t random_state __attribute__((tls_model("initial-exec")));

static uint64_t next_random(void)
{
	uint64_t x = random_state;
	if (!x)
		x = ((uintptr_t)&random_state ^ (__builtin_ia32_rdtsc() * 0x9e3779b97f4a7c15u)) | 1;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	random_state = x;
	return x * 0x2545f4914f6cdd1du;
}

/* An exponentially distributed distance: -ln(u) * INTERVAL. */
static int64_t next_distance(void)
{
	/* log2(1 + i / 32) * 65536, to go between with straight lines: wrong by less than 0.0002. */
	static const uint32_t log2_table[33] = {
		0,     2909,  5732,  8473,  11136, 13727, 16248, 18704, 21098, 23433, 25711,
		27936, 30109, 32234, 34312, 36346, 38336, 40286, 42196, 44068, 45904, 47705,
		49472, 51207, 52911, 54584, 56229, 57845, 59434, 60997, 62534, 64047, 65536,
	};
	uint64_t u = next_random() | 1;
	int zeros = __builtin_clzll(u);
	uint64_t mantissa = (u << zeros) << 1; /* 64 bits behind the leading one */
	if (zeros == 63)
		mantissa = 0;
	uint32_t i = mantissa >> 59;
	uint32_t fraction = (mantissa >> 43) & 0xffff;
	uint32_t part = log2_table[i] + (((uint64_t)(log2_table[i + 1] - log2_table[i]) * fraction) >> 16);
	/* -log2(u / 2^64), 16 bits behind the point; ln is 0.693… of that. */
	uint64_t bits = ((uint64_t)(zeros + 1) << 16) - part;
	return (int64_t)((bits * 45426 >> 16) * INTERVAL >> 16) + 1;
}

/* Sampled pointers: 8 to a cache line, found without a lock. */
enum { BUCKETS = 8192, PER_BUCKET = 8 };
static uintptr_t sampled[BUCKETS][PER_BUCKET] __attribute__((aligned(64)));
static size_t sampled_count;

static inline uintptr_t *bucket_of(uintptr_t pointer)
{
	return sampled[((pointer >> 4) * 0x9e3779b97f4a7c15u) >> 51];
}

static __attribute__((noinline)) void sample(void *pointer, size_t size)
{
	/* A thread's first allocation finds no distance yet. */
	if (!random_state) {
		left += next_distance();
		if (left > 0)
			return;
	}
	do
		left += next_distance();
	while (left <= 0);
	if (!pointer)
		return;
	uintptr_t *bucket = bucket_of((uintptr_t)pointer);
	for (int i = 0; i < PER_BUCKET; i++) {
		uintptr_t empty = 0;
		if (__atomic_compare_exchange_n(&bucket[i], &empty, (uintptr_t)pointer, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			__atomic_fetch_add(&sampled_count, 1, __ATOMIC_RELAXED);
			break;
		}
	}
	perflens_alloc_sample(pointer, size, INTERVAL);
}

static inline void *allocated(void *pointer, size_t size)
{
	left -= (int64_t)size;
	if (!LIKELY(left > 0))
		sample(pointer, size);
	return pointer;
}

static inline void released(void *pointer)
{
	if (!pointer || !__atomic_load_n(&sampled_count, __ATOMIC_RELAXED))
		return;
	uintptr_t *bucket = bucket_of((uintptr_t)pointer);
	for (int i = 0; i < PER_BUCKET; i++) {
		uintptr_t seen = (uintptr_t)pointer;
		if (__atomic_load_n(&bucket[i], __ATOMIC_RELAXED) == seen &&
		    __atomic_compare_exchange_n(&bucket[i], &seen, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_fetch_sub(&sampled_count, 1, __ATOMIC_RELAXED);
			perflens_free_sample(pointer);
			return;
		}
	}
}

/* ---- In front of the allocator. ---- */

EXPORT void *malloc(size_t size)
{
	return ready() ? allocated(next_malloc(size), size) : early_alloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
	size_t all;
	if (__builtin_mul_overflow(count, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	/* What comes early was never used before, so it is zero. */
	return ready() ? allocated(next_calloc(count, size), all) : early_alloc(all);
}

EXPORT void free(void *pointer)
{
	if (is_early(pointer) || !ready())
		return;
	released(pointer);
	next_free(pointer);
}

EXPORT void *realloc(void *pointer, size_t size)
{
	if (!ready() || is_early(pointer)) {
		/* Its old size is unknown; it lies within `early`, and so does what follows it. */
		char *new = malloc(size);
		size_t most = pointer ? (size_t)(early + sizeof(early) - (char *)pointer) : 0;
		for (size_t i = 0; new && i < size && i < most; i++)
			new[i] = ((char *)pointer)[i];
		return new;
	}
	/* Before, since another thread may get the old memory at once. */
	released(pointer);
	void *new = next_realloc(pointer, size);
	if (new)
		return allocated(new, size);
	return NULL;
}

EXPORT int posix_memalign(void **to, size_t alignment, size_t size)
{
	if (!ready() || !next_posix_memalign)
		return ENOMEM;
	int error = next_posix_memalign(to, alignment, size);
	if (!error)
		allocated(*to, size);
	return error;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return ready() && next_aligned_alloc ? allocated(next_aligned_alloc(alignment, size), size) : NULL;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	return ready() && next_memalign ? allocated(next_memalign(alignment, size), size) : NULL;
}
