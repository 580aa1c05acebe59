/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the kernel program and the recorder share. `src/sampler/layout.rs` says the same in Rust;
 * a test compares both with the types in the built object.
 */
#pragma once
#include "kernel.h"

enum {
	/* Frames of a stack. An interpreter's take two words each. */
	MAX_USER = 512,
	MAX_KERNEL = 128,
	MAX_PYTHON = 128,
	/* A power of two, since the verifier understands masks. */
	MAX_WORDS = 1024,
	/* Of a thread that waits: every one of them keeps a stack for as long. */
	WAIT_USER = 128,
	WAIT_KERNEL = 32,
	WAIT_PYTHON = 32,
	/* Threads of an interpreter that are looked through for the current one. */
	MAX_PYTHON_THREADS = 256,
	/* Halvings that find one of 65 536. */
	MAPPING_STEPS = 17,
	ROW_STEPS = 17,
};

/* How to find the canonical frame address (CFA) of a frame. */
enum {
	CFA_NONE = 0,       /* no rule here: go by the frame pointer */
	CFA_SP = 1,         /* sp + offset */
	CFA_FP = 2,         /* fp + offset */
	CFA_PLT = 3,        /* sp + 8, and 8 more from byte `offset` of a 16-byte stub */
	CFA_DEREF_FP = 4,   /* what lies at fp + offset, plus extra */
	CFA_DEREF_SP = 5,   /* what lies at sp + offset, plus extra */
	CFA_SIGNAL = 6,     /* sp points at the registers that a signal saved */
	CFA_END = 7,        /* the outermost frame */
	CFA_UNSUPPORTED = 8,
	CFA_TRAMPOLINE = 9, /* sp + offset, frame pointer as it is: code that calls on without a frame */
};

/* Where the caller's frame pointer is. */
enum {
	FP_SAME = 0,
	FP_AT_CFA = 1, /* at CFA + offset */
	FP_AT_FP = 2,  /* at fp + offset */
	FP_LOST = 3,
};

struct rule {
	u8 cfa, fp;
	u16 unused;
	s32 cfa_offset, fp_offset;
	s32 extra; /* for CFA_DEREF_*: addend; otherwise where the return address is, from the CFA */
};

/* An executable mapping. */
struct mapping {
	u64 begin, end;
	u64 bias;       /* address here - address in the file's own terms */
	u32 first_page; /* in `pages`; NO_TABLE: go by the frame pointer */
	u32 pages;
};
enum { NO_TABLE = 0xffffffff };

/* A file that has a table, by its device (the kernel's number) and inode; the rest tells whether it changed. */
struct file_key {
	u64 inode, device;
};

struct file_table {
	u64 shift; /* address in the file's own terms - place in the file, of its code */
	u64 size;
	s64 seconds; /* when it was written last */
	u32 nanoseconds;
	u32 first_page, pages; /* as of a mapping */
	u32 unused;
};

/* Mappings of a process that the recorder has not come to yet. Those with an end are there. */
enum { MAX_LEARNED = 8 };
struct learned {
	u32 count;
	u32 unused;
	struct mapping mappings[MAX_LEARNED];
};

/* A process that is recorded: a slice of `mappings`, sorted by address. */
struct process {
	u32 first, count;
	u64 quiet_until; /* when an unknown address is worth reporting again */
};

/* A CPython interpreter: where `_PyRuntime` is, and how its structures are laid out in this version. */
struct python {
	u64 runtime;
	u32 interpreters; /* in the runtime: the first interpreter */
	u32 threads;      /* in an interpreter: the first thread */
	u32 next;         /* in a thread: the next one */
	u32 native_id;    /* in a thread: its number for the kernel */
	u32 frame;        /* in a thread: the current frame, or what points at it */
	u32 indirect;     /* in what points at it: the current frame; NO_TABLE: there is no such thing */
	u32 code, instruction, previous, owner; /* in a frame */
};

/* What records begin with; see `struct sample`, `struct notice` and `struct mapped`. */
enum {
	RECORD_SAMPLE = 1,
	RECORD_FORK = 2,
	RECORD_EXEC = 3,
	RECORD_EXIT = 4,
	RECORD_UNMAPPED = 5,
	RECORD_MAPPED = 6,
};

/* As `StackEnd` of the protocol. */
enum {
	END_COMPLETE = 1,
	END_NO_MAPPING = 2,
	END_NO_RULE = 3,
	END_UNSUPPORTED = 4,
	END_UNREADABLE = 5,
	END_TOO_DEEP = 6,
	END_NO_USER_PART = 7,
};

/* As `EventKind` of the protocol. */
enum {
	EVENT_CPU = 1,
	EVENT_BLOCKED = 2,
	EVENT_PREEMPTED = 3,
	EVENT_ALLOC = 4,
	EVENT_FREE = 5,
	EVENT_PAGE_FAULT = 6,
};

/* An address that is where execution goes on, not a return address. */
#define EXACT (1ull << 63)

struct sample {
	u32 type;
	u32 tgid, tid;
	u16 user, kernel; /* frames in `words`: the interpreter's, the user's, the kernel's */
	u8 event, end;
	u16 python;
	u32 unused2;
	u64 time;
	u64 value;
	u64 interval;   /* of EVENT_ALLOC: mean bytes between samples */
	u64 allocation; /* of EVENT_ALLOC and EVENT_FREE: the pointer */
	u8 comm[16];
	u64 words[MAX_WORDS];
};

/* A thread that is off its CPU: the beginning of a sample, whose `time` is when it left. */
struct wait {
	u64 head[9];
	u64 words[2 * WAIT_PYTHON + WAIT_USER + WAIT_KERNEL];
};

struct notice {
	u32 type;
	u32 tgid;
	u32 parent; /* of a fork */
	u32 first;  /* of a fork: the slice that the child shares */
	u64 time;
	u64 address; /* of RECORD_UNMAPPED; of RECORD_MAPPED: where it begins */
};

/* RECORD_MAPPED: a mapping that the recorder may never see itself. */
struct mapped {
	struct notice notice;
	u64 end;
	u64 offset; /* into the file */
	struct file_key file;
};

/* Counters, added up over CPUs by the recorder. */
enum {
	COUNT_HELD_BACK = 0,  /* times the clock should have struck while a thread ran, and did not */
	COUNT_SAMPLES = 1,    /* samples sent */
	COUNT_RING_FULL = 2,  /* samples that found no room */
	COUNT_OTHER_USER = 3, /* samples of tasks that are not the caller's */
	COUNT_MAP_FULL = 4,   /* children that found no room */
	COUNT_NOT_TAKEN = 5,  /* samples that could not be taken */
	COUNT_NOTICES_LOST = 6,
	COUNT_NS = 7, /* time spent in the sampling program */
	COUNTERS = 8,
};

_Static_assert(__builtin_offsetof(struct wait, words) == __builtin_offsetof(struct sample, words),
	       "a wait begins as a sample does");
_Static_assert(sizeof(struct rule) == 16, "rows of `rules` are read by the recorder");
_Static_assert(sizeof(struct python) == 48, "values of `pythons` are written by the recorder");
_Static_assert(MAX_WORDS >= 2 * MAX_PYTHON + MAX_USER + MAX_KERNEL, "a stack has room");
_Static_assert(sizeof(struct mapping) == 32, "rows of `mappings` are written by the recorder");
_Static_assert(sizeof(struct file_table) == 40, "values of `files` are written by the recorder");
_Static_assert(sizeof(struct process) == 16, "values of `processes` are written by the recorder");
_Static_assert(sizeof(struct notice) == 32, "notices are read by the recorder");
_Static_assert(sizeof(struct mapped) == 64, "so are these");
