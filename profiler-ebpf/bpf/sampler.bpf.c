/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Samples stacks of chosen processes and unwinds them without frame pointers.
 *
 * The recorder puts the unwind rules of every file into flat arrays (`rows`, `pages`, `rules`) and the
 * executable mappings of every process into slices of `mappings`; see ARCHITECTURE.md, "Unwind tables".
 * A slice that is in use never changes: a new one is written, then the entry in `processes` replaced.
 *
 * What is not here: symbols, files, any decision that could be made later.
 */
#include "layout.h"

char license_of_program[] SEC("license") = "Dual MIT/GPL";

/* Set before loading, constant afterwards. */
const volatile u32 caller_uid = 0;
const volatile u32 any_user = 0;
const volatile u32 follow_children = 0;
const volatile u32 with_kernel = 0;
const volatile u32 pid_namespace = 0; /* inode of the recorder's pid namespace; 0: the first one */
const volatile u64 period_ns = 0;
const volatile u64 off_cpu_threshold_ns = 1000000;
const volatile u64 quiet_ns = 20000000;

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 8192);
	TYPE(key, u32);
	TYPE(value, struct process);
} processes SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 65536);
	NUMBER(map_flags, MAP_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct mapping);
} mappings SEC(".maps");

/* Per 64 KiB of a file's addresses: its first row, and the row after its last in the upper half. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 65536);
	NUMBER(map_flags, MAP_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, u64);
} pages SEC(".maps");

/* Two rows each: low 16 bits of an address << 16 | the rule in force from there on. */
struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 1048576);
	NUMBER(map_flags, MAP_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, u64);
} rows SEC(".maps");

struct {
	NUMBER(type, MAP_ARRAY);
	NUMBER(max_entries, 65536);
	NUMBER(map_flags, MAP_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct rule);
} rules SEC(".maps");

struct {
	NUMBER(type, MAP_RINGBUF);
	NUMBER(max_entries, 8388608);
} records SEC(".maps");

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, COUNTERS);
	TYPE(key, u32);
	TYPE(value, u64);
} counters SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 8192);
	TYPE(key, u32);
	TYPE(value, struct python);
} pythons SEC(".maps");

struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 8192);
	TYPE(key, struct file_key);
	TYPE(value, struct file_table);
} files SEC(".maps");

/* By process. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 2048);
	TYPE(key, u32);
	TYPE(value, struct learned);
} learned SEC(".maps");

const struct learned nothing_learned = {};

/* Threads off their CPU, by their id. */
struct {
	NUMBER(type, MAP_HASH);
	NUMBER(max_entries, 16384);
	NUMBER(map_flags, MAP_NO_PREALLOC);
	TYPE(key, u32);
	TYPE(value, struct wait);
} waits SEC(".maps");

/* A frame on its way, and the sample it goes into. One per program: they can interrupt each other. */
struct walk {
	u64 pc, sp, fp;
	u32 first, count;
	u32 exact; /* pc is where execution goes on, not a return address */
	u32 depth;
	u32 limit; /* of frames */
	u32 busy;  /* a task uses it, and may be preempted */
	u64 unmapped;
	u32 base;  /* of the user's frames in `words` */
	u32 found; /* the current thread among the interpreter's */
	u32 python_limit;
	u32 native_id;
	u64 thread, frame;
	struct python python;
	u32 asked; /* the kernel, about a mapping */
	u32 unused;
	struct mapping area; /* what it said */
	u64 area_offset;
	struct file_key area_file;
	struct sample sample;
};

enum { SCRATCH_CLOCK, SCRATCH_FAULT, SCRATCH_SWITCH, SCRATCH_PROBE, SCRATCH_EXEC, SCRATCHES };

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, SCRATCHES);
	TYPE(key, u32);
	TYPE(value, struct walk);
} scratch SEC(".maps");

/* When the clock struck last on a CPU. */
struct strike {
	u64 task; /* that ran; 0 when it is not recorded */
	u64 runtime;
	u64 time;
};

struct {
	NUMBER(type, MAP_PERCPU_ARRAY);
	NUMBER(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct strike);
} strikes SEC(".maps");

ALWAYS_INLINE void count(u32 which, u64 by)
{
	u64 *counter = map_lookup(&counters, &which);
	if (counter)
		*counter += by;
}

/* The ids of a task as the recorder sees them; 0 when it can't see it. */
ALWAYS_INLINE u32 id_in_namespace(struct task_struct *task)
{
	struct pid *pid = 0;
	u32 level = 0;
	READ(pid, task->thread_pid);
	if (!pid || READ(level, pid->level))
		return 0;
	for (u32 i = 0; i < 16; i++) {
		struct pid_namespace *namespace = 0;
		u32 inode = 0, id = 0;
		if (i > level)
			break;
		/* Offset and size of a number are the same on all kernels; where they begin is not. */
		struct upid *number = (void *)__builtin_preserve_access_index(&pid->numbers) + i * 16;
		READ(namespace, number->ns);
		READ(inode, namespace->ns.inum);
		if (inode == pid_namespace) {
			READ(id, number->nr);
			return id;
		}
	}
	return 0;
}

ALWAYS_INLINE u32 process_id(struct task_struct *task)
{
	u32 id = 0;
	if (pid_namespace) {
		struct task_struct *leader = 0;
		READ(leader, task->group_leader);
		return leader ? id_in_namespace(leader) : 0;
	}
	READ(id, task->tgid);
	return id;
}

ALWAYS_INLINE u32 thread_id(struct task_struct *task)
{
	u32 id = 0;
	if (pid_namespace)
		return id_in_namespace(task);
	READ(id, task->pid);
	return id;
}

/* Whether the caller may look at this task: nothing in it belongs to somebody else. */
ALWAYS_INLINE int is_callers(struct task_struct *task)
{
	const struct cred *cred = 0;
	kuid_t uid = {}, euid = {}, suid = {};
	if (any_user)
		return 1;
	if (READ(cred, task->real_cred) || READ(uid, cred->uid) || READ(euid, cred->euid) || READ(suid, cred->suid))
		return 0;
	return uid.val == caller_uid && euid.val == caller_uid && suid.val == caller_uid;
}

ALWAYS_INLINE struct mapping *find_mapping(struct walk *walk, u64 address)
{
	u32 low = walk->first, high = walk->first + walk->count;
	for (int i = 0; i < MAPPING_STEPS; i++) {
		if (low >= high)
			break;
		u32 middle = (low + high) >> 1;
		struct mapping *mapping = map_lookup(&mappings, &middle);
		if (!mapping)
			break;
		if (address < mapping->begin)
			high = middle;
		else if (address >= mapping->end)
			low = middle + 1;
		else
			return mapping;
	}
	return 0;
}

/* Whether a file is the one that the table was made of. */
ALWAYS_INLINE int is_unchanged(struct inode *inode, struct file_table *table)
{
	s64 size = 0, seconds = 0, nanoseconds = 0;
	READ(size, inode->i_size);
	if (HAS(inode->i_mtime_sec)) {
		u32 part = 0;
		READ(seconds, inode->i_mtime_sec);
		READ(part, inode->i_mtime_nsec);
		nanoseconds = part;
	} else if (HAS(((struct inode___6_7 *)inode)->__i_mtime)) {
		READ(seconds, ((struct inode___6_7 *)inode)->__i_mtime.tv_sec);
		READ(nanoseconds, ((struct inode___6_7 *)inode)->__i_mtime.tv_nsec);
	} else if (HAS(((struct inode___5 *)inode)->i_mtime)) {
		READ(seconds, ((struct inode___5 *)inode)->i_mtime.tv_sec);
		READ(nanoseconds, ((struct inode___5 *)inode)->i_mtime.tv_nsec);
	} else {
		return 0;
	}
	return (u64)size == table->size && seconds == table->seconds && nanoseconds == table->nanoseconds;
}

/* Notes a mapping that the kernel has found, if its file has a table. */
static long note_mapping(struct task_struct *task, struct vm_area_struct *area, void *context)
{
	struct walk *walk = *(struct walk **)context;
	struct file *file = 0;
	struct inode *inode = 0;
	struct super_block *filesystem = 0;
	struct file_key key = {};
	u64 flags = 0, page = 0;
	u32 device = 0;
	if (READ(flags, area->vm_flags) || !(flags & VM_EXEC) || READ(file, area->vm_file) || !file ||
	    READ(inode, file->f_inode) || !inode || READ(filesystem, inode->i_sb) || READ(key.inode, inode->i_ino) ||
	    READ(device, filesystem->s_dev) || READ(page, area->vm_pgoff))
		return 0;
	key.device = device;
	walk->area_offset = page << 12;
	walk->area_file = key;
	struct file_table *table = map_lookup(&files, &key);
	if (!table || !is_unchanged(inode, table))
		return 0;
	struct mapping *found = &walk->area;
	READ(found->begin, area->vm_start);
	found->bias = found->begin - walk->area_offset - table->shift;
	found->first_page = table->first_page;
	found->pages = table->pages;
	READ(found->end, area->vm_end);
	return 0;
}

/* Adds a mapping to those of a process that are in no slice yet. */
ALWAYS_INLINE void learn(u32 tgid, struct walk *walk)
{
	struct mapping *found = &walk->area;
	struct learned *known = map_lookup(&learned, &tgid);
	if (!known) {
		map_update(&learned, &tgid, &nothing_learned, NO_EXIST);
		known = map_lookup(&learned, &tgid);
		if (!known)
			return;
	}
	u32 slot = __sync_fetch_and_add(&known->count, 1);
	if (slot >= MAX_LEARNED) {
		known->count = MAX_LEARNED;
		return;
	}
	struct mapping *mapping = &known->mappings[slot];
	mapping->begin = found->begin;
	mapping->bias = found->bias;
	mapping->first_page = found->first_page;
	mapping->pages = found->pages;
	/* It is there once it has an end; a program on another CPU may be looking. */
	asm volatile("" ::: "memory");
	mapping->end = found->end;

	/* The process may have ended before anybody reads what it has mapped. */
	struct mapped mapped = {
		{ RECORD_MAPPED, tgid, 0, 0, ktime_ns(), found->begin }, found->end, walk->area_offset, walk->area_file
	};
	if (ring_output(&records, &mapped, sizeof(mapped), NO_WAKEUP))
		count(COUNT_NOTICES_LOST, 1);
}

/*
 * A mapping that the recorder has not come to yet: what a program maps when it starts is old by the time its notice
 * is read, and a short one has ended. So the kernel is asked which file is there, and the file looked up.
 */
ALWAYS_INLINE struct mapping *find_new_mapping(struct walk *walk, u64 address)
{
	struct learned *known = map_lookup(&learned, &walk->sample.tgid);
	if (known) {
		for (int i = 0; i < MAX_LEARNED; i++) {
			struct mapping *mapping = &known->mappings[i];
			if (address >= mapping->begin && address < mapping->end)
				return mapping;
		}
	}
	/* Once per stack: it takes a lock that is given back only after the interrupt. */
	if (walk->asked)
		return 0;
	walk->asked = 1;
	walk->area.end = 0;
	find_vma(current_task(), address, note_mapping, &walk, 0);
	if (address >= walk->area.end)
		return 0;
	learn(walk->sample.tgid, walk);
	return &walk->area;
}

/* The rule for an address in the file's own terms; 0 when the file has no table for it. */
ALWAYS_INLINE struct rule *find_rule(struct mapping *mapping, u64 address)
{
	u64 page = address >> 16;
	u32 rule = 0; /* CFA_NONE */
	if (mapping->first_page != NO_TABLE && page < mapping->pages) {
		u32 index = mapping->first_page + (u32)page;
		u64 *range = map_lookup(&pages, &index);
		if (!range)
			return 0;
		u32 low = (u32)*range, high = *range >> 32;
		u32 wanted = (u32)(address & 0xffff) << 16 | 0xffff;
		for (int i = 0; i < ROW_STEPS; i++) {
			if (low >= high)
				break;
			u32 middle = (low + high) >> 1, slot = middle >> 1;
			u64 *pair = map_lookup(&rows, &slot);
			if (!pair)
				return 0;
			u32 row = middle & 1 ? *pair >> 32 : (u32)*pair;
			if (row <= wanted) {
				rule = row & 0xffff;
				low = middle + 1;
			} else {
				high = middle;
			}
		}
	}
	return map_lookup(&rules, &rule);
}

ALWAYS_INLINE int read_word(u64 *to, u64 address)
{
	return read_user(to, sizeof(*to), (void *)address);
}

ALWAYS_INLINE long stop(struct walk *walk, u8 end)
{
	walk->sample.end = end;
	return 1;
}

/* Goes from the registers that a signal saved on to where it interrupted. */
ALWAYS_INLINE long leave_signal_frame(struct walk *walk)
{
	/* Offsets into `struct ucontext`, where sp points. */
	u64 pc = 0, sp = 0, fp = 0;
	if (read_word(&pc, walk->sp + 168) || read_word(&sp, walk->sp + 160) || read_word(&fp, walk->sp + 120))
		return stop(walk, END_UNREADABLE);
	walk->pc = pc;
	walk->sp = sp;
	walk->fp = fp;
	walk->exact = 1;
	return 0;
}

/* A frame without a rule: by the frame pointer, as compilers for JIT code and Go keep it. */
ALWAYS_INLINE long step_by_frame_pointer(struct walk *walk)
{
	u64 pc = 0, fp = 0;
	if (!walk->fp) /* what the ABI asks of outermost frames */
		return stop(walk, walk->depth > 1 ? END_COMPLETE : END_NO_RULE);
	if (read_word(&fp, walk->fp) || read_word(&pc, walk->fp + 8))
		return stop(walk, walk->depth > 1 ? END_UNREADABLE : END_NO_RULE);
	if (!pc)
		return stop(walk, END_COMPLETE);
	if (fp == walk->fp)
		return stop(walk, END_NO_RULE);
	walk->pc = pc;
	walk->sp = walk->fp + 16;
	walk->fp = fp;
	walk->exact = 0;
	return 0;
}

/* One frame: notes its address, then finds the frame that called it. */
static long step(u32 index, void *context)
{
	struct walk *walk = *(struct walk **)context;
	if (index >= MAX_USER || index >= walk->limit)
		return stop(walk, END_TOO_DEEP);
	walk->sample.words[(walk->base + index) & (MAX_WORDS - 1)] = walk->exact && index ? walk->pc | EXACT : walk->pc;
	walk->sample.user = index + 1;
	walk->depth = index + 1;

	/* A call may be the last instruction of its function: look where the call is. */
	u64 address = walk->exact ? walk->pc : walk->pc - 1;
	struct mapping *mapping = find_mapping(walk, address);
	if (!mapping) {
		/* The recorder is to know of it in any case. */
		walk->unmapped = address;
		mapping = find_new_mapping(walk, address);
	}
	if (!mapping)
		return stop(walk, END_NO_MAPPING);
	struct rule *rule = find_rule(mapping, address - mapping->bias);
	if (!rule)
		return stop(walk, END_NO_RULE);

	u64 cfa = 0, pc = 0, fp = walk->fp;
	s32 at = -8;
	switch (rule->cfa) {
	case CFA_NONE:
		return step_by_frame_pointer(walk);
	case CFA_SP:
		cfa = walk->sp + rule->cfa_offset;
		at = rule->extra;
		break;
	case CFA_FP:
		cfa = walk->fp + rule->cfa_offset;
		at = rule->extra;
		break;
	case CFA_PLT:
		cfa = walk->sp + 8 + ((walk->pc & 15) >= (u32)rule->cfa_offset ? 8 : 0);
		break;
	case CFA_DEREF_FP:
		if (read_word(&cfa, walk->fp + rule->cfa_offset))
			return stop(walk, END_UNREADABLE);
		cfa += rule->extra;
		break;
	case CFA_DEREF_SP:
		if (read_word(&cfa, walk->sp + rule->cfa_offset))
			return stop(walk, END_UNREADABLE);
		cfa += rule->extra;
		break;
	case CFA_TRAMPOLINE:
		cfa = walk->sp + rule->cfa_offset;
		break;
	case CFA_SIGNAL:
		return leave_signal_frame(walk);
	case CFA_END:
		return stop(walk, END_COMPLETE);
	default:
		return stop(walk, END_UNSUPPORTED);
	}
	if (read_word(&pc, cfa + at))
		return stop(walk, END_UNREADABLE);
	if (rule->fp == FP_AT_CFA) {
		if (read_word(&fp, cfa + rule->fp_offset))
			return stop(walk, END_UNREADABLE);
	} else if (rule->fp == FP_AT_FP) {
		if (read_word(&fp, walk->fp + rule->fp_offset))
			return stop(walk, END_UNREADABLE);
	} else if (rule->fp == FP_LOST) {
		fp = 0;
	}
	if (!pc)
		return stop(walk, END_COMPLETE);
	walk->pc = pc;
	walk->sp = cfa;
	walk->fp = fp;
	walk->exact = 0;
	return 0;
}

ALWAYS_INLINE void notify(u32 type, u32 tgid, u32 parent, u32 first, u64 address, u64 flags)
{
	struct notice notice = { type, tgid, parent, first, ktime_ns(), address };
	if (ring_output(&records, &notice, sizeof(notice), flags))
		count(COUNT_NOTICES_LOST, 1);
}

/* Fills in everything that is the same whatever is sampled. */
ALWAYS_INLINE void begin(struct walk *walk, struct process *process, u32 tgid, struct task_struct *task, u8 event)
{
	struct sample *sample = &walk->sample;
	sample->type = RECORD_SAMPLE;
	sample->tgid = tgid;
	sample->tid = thread_id(task);
	sample->user = 0;
	sample->kernel = 0;
	sample->event = event;
	sample->end = 0;
	sample->time = ktime_ns();
	sample->interval = 0;
	sample->allocation = 0;
	current_comm(sample->comm, sizeof(sample->comm));
	walk->first = process->first;
	walk->count = process->count;
	walk->exact = 1;
	walk->depth = 0;
	walk->limit = MAX_USER;
	walk->unmapped = 0;
	walk->asked = 0;
	walk->base = 0;
	sample->python = 0;
}

/* The number that a task has for itself, in the innermost of its namespaces. */
ALWAYS_INLINE u32 own_id(struct task_struct *task)
{
	struct pid *pid = 0;
	u32 level = 0, id = 0;
	READ(pid, task->thread_pid);
	if (!pid || READ(level, pid->level) || level > 32)
		return 0;
	struct upid *number = (void *)__builtin_preserve_access_index(&pid->numbers) + level * 16;
	READ(id, number->nr);
	return id;
}

/* Whether the interpreter's next thread is the current one. */
static long look_at_python_thread(u32 index, void *context)
{
	struct walk *walk = *(struct walk **)context;
	u64 id = 0;
	if (!walk->thread)
		return 1;
	if (read_word(&id, walk->thread + walk->python.native_id))
		return 1;
	if ((u32)id == walk->native_id) {
		walk->found = 1;
		return 1;
	}
	if (read_word(&walk->thread, walk->thread + walk->python.next))
		walk->thread = 0;
	return 0;
}

/* Notes a frame of the interpreter: its code with the owner in the upper byte, and its instruction. */
static long step_python(u32 index, void *context)
{
	struct walk *walk = *(struct walk **)context;
	u64 code = 0, instruction = 0, frame = walk->frame;
	u8 owner = 0;
	if (!frame || index >= MAX_PYTHON || index >= walk->python_limit)
		return 1;
	if (read_word(&code, frame + walk->python.code) || read_word(&instruction, frame + walk->python.instruction) ||
	    read_user(&owner, 1, (void *)(frame + walk->python.owner)))
		return 1;
	walk->sample.words[(2 * index) & (MAX_WORDS - 1)] = (code & 0x00ffffffffffffff) | (u64)owner << 56;
	walk->sample.words[(2 * index + 1) & (MAX_WORDS - 1)] = instruction;
	walk->sample.python = index + 1;
	if (read_word(&walk->frame, frame + walk->python.previous))
		walk->frame = 0;
	return 0;
}

/* The interpreter's frames, before the native ones. */
ALWAYS_INLINE void walk_python(struct walk *walk, struct task_struct *task, u32 tgid, u32 limit)
{
	struct python *python = map_lookup(&pythons, &tgid);
	u64 interpreter = 0;
	if (!python)
		return;
	walk->python = *python;
	walk->native_id = own_id(task);
	walk->found = 0;
	walk->thread = 0;
	walk->python_limit = limit;
	if (read_word(&interpreter, python->runtime + python->interpreters) || !interpreter ||
	    read_word(&walk->thread, interpreter + python->threads))
		return;
	loop(MAX_PYTHON_THREADS, look_at_python_thread, &walk, 0);
	if (!walk->found || read_word(&walk->frame, walk->thread + python->frame) || !walk->frame)
		return;
	if (python->indirect != NO_TABLE && read_word(&walk->frame, walk->frame + python->indirect))
		return;
	loop(MAX_PYTHON, step_python, &walk, 0);
	walk->base = 2 * walk->sample.python;
}

/* Unwinds the user's part from the registers `begin` was followed by. */
ALWAYS_INLINE void unwind(struct walk *walk)
{
	if (!walk->pc) {
		walk->sample.end = END_NO_USER_PART;
		return;
	}
	loop(MAX_USER + 1, step, &walk, 0);
}

ALWAYS_INLINE void send(struct walk *walk, u64 size)
{
	if (size > sizeof(walk->sample))
		size = sizeof(walk->sample);
	if (ring_output(&records, &walk->sample, size, NO_WAKEUP))
		count(COUNT_RING_FULL, 1);
	else
		count(COUNT_SAMPLES, 1);
}

/* A stack went through unknown memory: the recorder may find out more, if it did not look just now. */
ALWAYS_INLINE void report_unmapped(struct walk *walk, struct process *process)
{
	if (walk->unmapped && walk->sample.time >= process->quiet_until) {
		process->quiet_until = walk->sample.time + quiet_ns;
		notify(RECORD_UNMAPPED, walk->sample.tgid, 0, 0, walk->unmapped, FORCE_WAKEUP);
	}
}

/* Adds the kernel's part, and sends. */
ALWAYS_INLINE void finish(void *context, struct walk *walk, struct process *process, int in_kernel)
{
	struct sample *sample = &walk->sample;
	u32 used = walk->base + sample->user;
	long bytes = 0;
	if (used > MAX_WORDS - MAX_KERNEL)
		used = MAX_WORDS - MAX_KERNEL;
	if (in_kernel && with_kernel) {
		bytes = get_stack(context, &sample->words[used], MAX_KERNEL * 8, 0);
		if (bytes < 0)
			bytes = 0;
	}
	sample->kernel = (u64)bytes >> 3;
	send(walk, __builtin_offsetof(struct sample, words) + used * 8 + (u32)bytes);
	report_unmapped(walk, process);
}

/* The process of the current task, if it is recorded; what is not the caller's is counted. */
ALWAYS_INLINE struct process *recorded(struct task_struct *task, u32 *tgid, int counted)
{
	*tgid = process_id(task);
	struct process *process = map_lookup(&processes, tgid);
	if (process && !is_callers(task)) {
		if (counted)
			count(COUNT_OTHER_USER, 1);
		return 0;
	}
	return process;
}

/*
 * The kernel holds the clock back when sampling takes too much time, and tells nobody. What is missing is known where
 * one thread ran from one strike to the next; an idle CPU may miss strikes for reasons of its own. The thread's time is
 * counted in steps of the scheduler's clock, which may be longer than ours: so it bounds the count and is not the count.
 */
ALWAYS_INLINE void count_held_back(u64 task)
{
	u32 which = 0;
	struct strike *last = map_lookup(&strikes, &which);
	if (!last)
		return;
	u64 runtime = 0, now = ktime_ns();
	if (task)
		READ(runtime, ((struct task_struct *)task)->se.sum_exec_runtime);
	if (task && task == last->task && period_ns) {
		u64 due = (now - last->time + period_ns / 2) / period_ns;
		u64 run = (runtime - last->runtime + period_ns / 2) / period_ns;
		if (due > run)
			due = run;
		if (due > 1)
			count(COUNT_HELD_BACK, due - 1);
	}
	last->task = task;
	last->runtime = runtime;
	last->time = now;
}

/* What the clock and page faults have in common; whether the task is recorded. */
ALWAYS_INLINE int sample_event(struct perf_event_context *context, u32 which, u8 event, u64 value)
{
	struct task_struct *task = current_task();
	u32 tgid = 0;
	struct process *process = recorded(task, &tgid, 1);
	if (!process)
		return 0;
	struct walk *walk = map_lookup(&scratch, &which);
	if (!walk) {
		count(COUNT_NOT_TAKEN, 1);
		return 1;
	}
	begin(walk, process, tgid, task, event);
	walk_python(walk, task, tgid, MAX_PYTHON);
	walk->sample.value = value;
	int in_kernel = (context->regs.cs & 3) != 3;
	walk->pc = context->regs.ip;
	walk->sp = context->regs.sp;
	walk->fp = context->regs.bp;
	/* The context may be read at fixed offsets only: keep the compiler from joining this with what follows. */
	asm volatile("" ::: "memory");
	if (in_kernel) {
		struct pt_regs *regs = (struct pt_regs *)task_pt_regs(task);
		walk->pc = regs->ip;
		walk->sp = regs->sp;
		walk->fp = regs->bp;
	}
	unwind(walk);
	finish(context, walk, process, in_kernel);
	count(COUNT_NS, ktime_ns() - walk->sample.time);
	return 1;
}

SEC("perf_event") int on_clock(struct perf_event_context *context)
{
	int ours = current_ids() /* not idle */ && sample_event(context, SCRATCH_CLOCK, EVENT_CPU, period_ns);
	count_held_back(ours ? current_task_address() : 0);
	return 0;
}

/* For kernels that are too old to unwind in (before 5.17): the kernel follows frame pointers. */
SEC("perf_event") int on_clock_fp(struct perf_event_context *context)
{
	struct task_struct *task = (struct task_struct *)current_task_address();
	u32 tgid = 0, which = SCRATCH_CLOCK;
	struct process *process = current_ids() ? recorded(task, &tgid, 1) : 0;
	count_held_back(process ? (u64)task : 0);
	if (!process)
		return 0;
	struct walk *walk = map_lookup(&scratch, &which);
	if (!walk) {
		count(COUNT_NOT_TAKEN, 1);
		return 0;
	}
	begin(walk, process, tgid, task, EVENT_CPU);
	walk->sample.value = period_ns;
	long bytes = get_stack(context, walk->sample.words, MAX_USER * 8, USER_STACK);
	walk->sample.user = bytes > 0 ? bytes >> 3 : 0;
	finish(context, walk, process, (context->regs.cs & 3) != 3);
	count(COUNT_NS, ktime_ns() - walk->sample.time);
	return 0;
}

SEC("perf_event") int on_fault(struct perf_event_context *context)
{
	sample_event(context, SCRATCH_FAULT, EVENT_PAGE_FAULT, context->sample_period);
	return 0;
}

/* A thread runs again: what it waited for is over. */
ALWAYS_INLINE void end_wait(struct task_struct *next)
{
	u32 tid = thread_id(next);
	struct wait *wait = map_lookup(&waits, &tid);
	if (!wait)
		return;
	struct sample *sample = (struct sample *)wait;
	u64 now = ktime_ns(), waited = now - sample->time;
	if (waited >= off_cpu_threshold_ns) {
		u64 size = __builtin_offsetof(struct sample, words) + (2 * sample->python + sample->user + sample->kernel) * 8;
		sample->value = waited;
		sample->time = now;
		if (size > sizeof(*wait))
			size = sizeof(*wait);
		if (ring_output(&records, wait, size, NO_WAKEUP))
			count(COUNT_RING_FULL, 1);
		else
			count(COUNT_SAMPLES, 1);
	}
	map_delete(&waits, &tid);
}

/* The kernel's states of tasks, as far as they matter here. */
enum { STATE_RUNNING = 0, STATE_DEAD = 0x80 };

SEC("tp_btf/sched_switch") int on_switch(u64 *arguments)
{
	struct task_struct *previous = (void *)arguments[1], *next = (void *)arguments[2];
	u32 tgid = 0, state = 0, which = SCRATCH_SWITCH;
	end_wait(next);

	/* `previous` still is the current task, so its stack can be read now, and only now. */
	/* Most switches would never become a sample, so those of others are not counted. */
	struct process *process = recorded(previous, &tgid, 0);
	if (!process || READ(state, previous->__state) || state & STATE_DEAD)
		return 0;
	struct walk *walk = map_lookup(&scratch, &which);
	if (!walk) {
		count(COUNT_NOT_TAKEN, 1);
		return 0;
	}
	int ready = arguments[0] || state == STATE_RUNNING;
	begin(walk, process, tgid, previous, ready ? EVENT_PREEMPTED : EVENT_BLOCKED);
	walk_python(walk, previous, tgid, WAIT_PYTHON);
	walk->limit = WAIT_USER;
	struct sample *sample = &walk->sample;
	sample->value = 0;
	struct pt_regs *regs = (struct pt_regs *)task_pt_regs(previous);
	walk->pc = regs->ip;
	walk->sp = regs->sp;
	walk->fp = regs->bp;
	unwind(walk);
	u32 used = walk->base + sample->user;
	long bytes = 0;
	if (used > 2 * WAIT_PYTHON + WAIT_USER) /* never; the verifier wants to see it */
		used = 2 * WAIT_PYTHON + WAIT_USER;
	if (with_kernel) {
		bytes = get_stack(arguments, &sample->words[used], WAIT_KERNEL * 8, 0);
		if (bytes < 0)
			bytes = 0;
	}
	sample->kernel = (u64)bytes >> 3;
	u32 tid = sample->tid;
	if (map_update(&waits, &tid, sample, ANY))
		count(COUNT_MAP_FULL, 1);
	report_unmapped(walk, process);
	return 0;
}

/* Programs on probes can be preempted by others of their kind on the same CPU. */
ALWAYS_INLINE struct walk *enter_probe(void)
{
	u32 which = SCRATCH_PROBE;
	struct walk *walk = map_lookup(&scratch, &which);
	if (!walk || walk->busy) {
		count(COUNT_NOT_TAKEN, 1);
		return 0;
	}
	walk->busy = 1;
	return walk;
}

SEC("uprobe") int on_alloc(struct pt_regs *regs)
{
	struct task_struct *task = current_task();
	u32 tgid = 0;
	struct process *process = recorded(task, &tgid, 1);
	struct walk *walk = process ? enter_probe() : 0;
	if (!walk)
		return 0;
	begin(walk, process, tgid, task, EVENT_ALLOC);
	walk_python(walk, task, tgid, MAX_PYTHON);
	walk->sample.allocation = regs->di;
	walk->sample.value = regs->si;
	walk->sample.interval = regs->dx;
	walk->pc = regs->ip;
	walk->sp = regs->sp;
	walk->fp = regs->bp;
	unwind(walk);
	finish(regs, walk, process, 0);
	walk->busy = 0;
	return 0;
}

SEC("uprobe") int on_free(struct pt_regs *regs)
{
	struct task_struct *task = current_task();
	u32 tgid = 0;
	struct process *process = recorded(task, &tgid, 1);
	struct walk *walk = process ? enter_probe() : 0;
	if (!walk)
		return 0;
	begin(walk, process, tgid, task, EVENT_FREE);
	walk->sample.allocation = regs->di;
	walk->sample.value = 0;
	walk->sample.end = END_NO_USER_PART;
	send(walk, __builtin_offsetof(struct sample, words));
	walk->busy = 0;
	return 0;
}

SEC("raw_tp/sched_process_fork") int on_fork(u64 *arguments)
{
	struct task_struct *parent = (void *)arguments[0], *child = (void *)arguments[1];
	if (!follow_children)
		return 0;
	u32 parent_id = process_id(parent), child_id = process_id(child);
	if (parent_id == child_id || !child_id) /* a thread */
		return 0;
	struct process *process = map_lookup(&processes, &parent_id);
	if (!process)
		return 0;
	struct process copy = *process;
	copy.quiet_until = 0;
	struct python *python = map_lookup(&pythons, &parent_id);
	if (python) {
		struct python same = *python;
		map_update(&pythons, &child_id, &same, ANY);
	}
	if (map_update(&processes, &child_id, &copy, ANY))
		count(COUNT_MAP_FULL, 1);
	else
		notify(RECORD_FORK, child_id, parent_id, copy.first, 0, NO_WAKEUP);
	return 0;
}

/* What a new program begins with: itself and its loader. Here the kernel may be asked more than once. */
ALWAYS_INLINE void learn_program(u32 tgid)
{
	struct task_struct *task = current_task();
	u32 which = SCRATCH_EXEC;
	struct walk *walk = map_lookup(&scratch, &which);
	struct mm_struct *memory = 0;
	u64 code = 0;
	if (!walk || !is_callers(task) || READ(memory, task->mm) || !memory || READ(code, memory->start_code))
		return;
	struct pt_regs *regs = (struct pt_regs *)task_pt_regs(task);
	walk->area.end = 0;
	find_vma(task, code, note_mapping, &walk, 0);
	if (walk->area.end)
		learn(tgid, walk);
	walk->area.end = 0;
	find_vma(task, regs->ip, note_mapping, &walk, 0);
	if (walk->area.end)
		learn(tgid, walk);
}

SEC("raw_tp/sched_process_exec") int on_exec(u64 *arguments)
{
	u32 id = process_id((struct task_struct *)arguments[0]);
	struct process *process = map_lookup(&processes, &id);
	if (!process)
		return 0;
	/* The old mappings are gone; until the recorder knows the new ones there are none. */
	struct process empty = { 0, 0, 0 };
	map_update(&processes, &id, &empty, ANY);
	map_delete(&pythons, &id);
	map_delete(&learned, &id);
	notify(RECORD_EXEC, id, 0, 0, 0, FORCE_WAKEUP);
	learn_program(id);
	return 0;
}

SEC("raw_tp/sched_process_exit") int on_exit(u64 *arguments)
{
	struct task_struct *task = (void *)arguments[0];
	u32 id = process_id(task);
	struct signal_struct *signal = 0;
	int live = 0;
	if (!map_lookup(&processes, &id))
		return 0;
	/* A process ends with its last thread, which need not be its first. */
	if (READ(signal, task->signal) || READ(live, signal->live.counter) || live > 0)
		return 0;
	map_delete(&processes, &id);
	map_delete(&pythons, &id);
	map_delete(&learned, &id);
	notify(RECORD_EXIT, id, 0, 0, 0, NO_WAKEUP);
	return 0;
}
