/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the sampler needs of the kernel, and nothing more: helper numbers are part of the kernel's
 * stable interface, and the structures are partial. Their fields are found by name when the
 * program is loaded (CO-RE), so that offsets and missing fields here mean nothing.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define RELOCATED __attribute__((preserve_access_index))

/* Members of a map definition: the loader reads numbers and types from the BTF of these. */
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) typeof(type) *name

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_RINGBUF = 27 };
enum { MAP_NO_PREALLOC = 1, MAP_MMAPABLE = 1024 };
enum { ANY = 0, NO_EXIST = 1 };
enum { NO_WAKEUP = 1, FORCE_WAKEUP = 2 };
enum { USER_STACK = 256 };

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const ktime_ns)(void) = (void *)5;
static u64 (*const current_ids)(void) = (void *)14;
static long (*const current_comm)(void *to, u32 size) = (void *)16;
static u64 (*const current_task_address)(void) = (void *)35;
static long (*const get_stack)(void *context, void *to, u32 size, u64 flags) = (void *)67;
static long (*const read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const ring_output)(void *ring, const void *data, u64 size, u64 flags) = (void *)130;
static struct task_struct *(*const current_task)(void) = (void *)158;
static long (*const task_pt_regs)(struct task_struct *task) = (void *)175;
static long (*const find_vma)(struct task_struct *task, u64 address, void *function, void *context, u64 flags) = (void *)180;
static long (*const loop)(u32 times, void *function, void *context, u64 flags) = (void *)181;

/* Reads a field of a kernel structure, wherever this kernel keeps it. */
#define READ(to, field) read_kernel(&(to), sizeof(to), __builtin_preserve_access_index(&(field)))

/* Whether this kernel has a field. */
#define HAS(field) __builtin_preserve_field_info(field, 2)

/* The user's registers on x86-64; part of the kernel's stable interface (ptrace). */
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

struct perf_event_context {
	struct pt_regs regs;
	u64 sample_period;
	u64 address;
};

typedef struct {
	u32 val;
} kuid_t;

typedef struct {
	int counter;
} atomic_t;

struct cred {
	kuid_t uid, euid, suid;
} RELOCATED;

struct ns_common {
	u32 inum;
} RELOCATED;

struct pid_namespace {
	struct ns_common ns;
} RELOCATED;

struct upid {
	int nr;
	struct pid_namespace *ns;
} RELOCATED;

struct pid {
	u32 level;
	struct upid numbers[1];
} RELOCATED;

struct signal_struct {
	atomic_t live;
} RELOCATED;

struct sched_entity {
	u64 sum_exec_runtime;
} RELOCATED;

struct mm_struct {
	u64 start_code;
} RELOCATED;

struct task_struct {
	struct sched_entity se;
	struct mm_struct *mm;
	int pid, tgid;
	u32 __state;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	const struct cred *real_cred;
	struct signal_struct *signal;
} RELOCATED;

struct super_block {
	u32 s_dev;
} RELOCATED;

struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
} RELOCATED;

struct inode {
	struct super_block *i_sb;
	u64 i_ino;
	s64 i_size;
	/* When it was written last; since 6.11. */
	s64 i_mtime_sec;
	u32 i_mtime_nsec;
} RELOCATED;

/* The loader leaves out what follows three underscores. Since 6.7: */
struct inode___6_7 {
	struct timespec64 __i_mtime;
} RELOCATED;

/* Before that: */
struct inode___5 {
	struct timespec64 i_mtime;
} RELOCATED;

struct file {
	struct inode *f_inode;
} RELOCATED;

struct vm_area_struct {
	u64 vm_start, vm_end;
	u64 vm_flags;
	u64 vm_pgoff;
	struct file *vm_file;
} RELOCATED;

enum { VM_EXEC = 4 };
