// Native: the benchmarks of alloc/ in C, on whatever malloc the program is run
// with: plain for the C library's, LD_PRELOAD for another.
//
//	cc -O2 -fno-builtin -pthread native.c -ldl           an allocator's rows
//	cc -O2 -fno-builtin -pthread -DLOOP native.c -ldl    the loops alone
//
//	./native -bench Pair/size=64/goroutines=1
//
// Same names, same random numbers and same output as the Go program; every
// function here has its twin there. -fno-builtin and the volatile touch keep
// the compiler from seeing that a block is not needed.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#define MAX_THREADS 64

// What to run, from the benchmark's name and the flags.
static struct {
	const char *bench;
	uint64_t min, max, span; // bytes of a block
	int threads, read;
	uint64_t peak; // bytes that are live at most
	char by[16], trace[64];
	uint64_t slots;   // live blocks
	double warm, run; // ns
	uint64_t ops;     // exactly so many instead, without a warm-up; 0 means for a time
	uint64_t top;     // the last size of what grows
} p = {.bench = "", .min = 64, .max = 64, .threads = 1, .slots = 10000, .warm = 20e6, .run = 60e6, .top = 1 << 30};

typedef struct {
	double ns;
	uint64_t ops, sum, requested, resident;
	double peak; // bytes for each live one
} result;

static void die(const char *why) {
	fprintf(stderr, "native: %s\n", why);
	exit(1);
}

// --- the allocator ---------------------------------------------------------

#ifdef LOOP
static char only[1 << 20];
static inline void *get(uint64_t n) { (void)n; return only; }
static inline void *get_zeroed(uint64_t n) { (void)n; return only; }
static inline void put(void *b) { (void)b; }
#else
static inline void *get(uint64_t n) { return malloc(n); }
static inline void *get_zeroed(uint64_t n) { return calloc(1, n); }
static inline void put(void *b) { free(b); }
#endif

static inline void touch(void *b) { *(volatile unsigned char *)b = 1; }
static inline unsigned char first(void *b) { return *(volatile unsigned char *)b; }

static inline void *must(void *b) {
	if (__builtin_expect(!b, 0)) die("malloc returned NULL");
	return b;
}

// print_version asks the malloc in use who it is, so that a preload that did not
// take is seen.
static void print_version(void) {
	int (*mallctl)(const char *, void *, size_t *, void *, size_t);
	int (*mi_version)(void);
	const char *(*tc_version)(int *, int *, const char **);
	*(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
	*(void **)&mi_version = dlsym(RTLD_DEFAULT, "mi_version");
	*(void **)&tc_version = dlsym(RTLD_DEFAULT, "tc_version");
	if (mallctl) {
		const char *v = "?";
		size_t n = sizeof v;
		mallctl("version", &v, &n, NULL, 0);
		printf("allocator: jemalloc %s\n", v);
	} else if (mi_version) {
		int v = mi_version();
		if (v < 1000) v = v / 100 * 10000 + v / 10 % 10 * 100 + v % 10; // as it was up to version 2.1
		printf("allocator: mimalloc %d.%d.%d\n", v / 10000, v / 100 % 100, v % 100);
	} else if (tc_version) {
		printf("allocator: tcmalloc of %s\n", tc_version(NULL, NULL, NULL));
	} else if (dlsym(RTLD_DEFAULT, "peer_name")) {
		printf("allocator: %s\n", (const char *)dlsym(RTLD_DEFAULT, "peer_name"));
	} else if (dlsym(RTLD_DEFAULT, "MallocExtension_Internal_GetNumericProperty")) {
		printf("allocator: tcmalloc of google\n");
	} else {
#ifdef __GLIBC__
		printf("allocator: libc %s\n", gnu_get_libc_version());
#else
		printf("allocator: libc of this system\n");
#endif
	}
}

// --- random numbers, clocks, memory of our own ------------------------------

static inline uint64_t next(uint64_t *r) {
	uint64_t x = *r;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*r = x;
	return x * 2685821657736338717u;
}

static uint64_t seed(int thread) { return 0x9E3779B97F4A7C15u * (uint64_t)(thread + 1); }
static inline uint64_t slot_of(uint64_t x, uint64_t slots) { return (x >> 32) * slots >> 32; }
static inline uint64_t size_of(uint64_t x, uint64_t min, uint64_t span) {
	return min + ((x & 0xffffffffu) * span >> 32);
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double cpu_time(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3;
}

static double cpu; // processor time in ns of the measured part
static void begin(void) { cpu = -cpu_time(); }
static void end(void) { cpu += cpu_time(); }

// table returns touched memory that no malloc has seen.
static void *table(uint64_t bytes) {
	void *t = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t == MAP_FAILED) die("mmap failed");
	memset(t, 0, bytes);
	return t;
}

// memory_of returns the figure of a line of a file.
static uint64_t memory_of(const char *file, const char *format) {
	char line[256];
	unsigned long kB = 0;
	FILE *f = fopen(file, "r");
	if (!f) die("needs Linux's /proc to measure");
	while (fgets(line, sizeof line, f))
		if (sscanf(line, format, &kB) == 1) break;
	fclose(f);
	return (uint64_t)kB << 10;
}

static uint64_t resident_bytes(void) { return memory_of("/proc/self/smaps_rollup", "Rss: %lu kB"); }
static uint64_t peak_bytes(void) { return memory_of("/proc/self/status", "VmHWM: %lu kB"); }

static uint64_t reset_peak(void) {
	FILE *f = fopen("/proc/self/clear_refs", "w");
	if (!f || fputs("5", f) < 0 || fclose(f)) die("the peak of resident memory cannot be reset");
	return peak_bytes();
}

// --- threads -----------------------------------------------------------------

// A load has a state per thread, set up by fresh; loop runs n operations.
typedef struct {
	uint64_t sum, random, done;
	void **live;
	uint32_t *order;
	int freeing;
	char pad[128];
} state;

typedef struct {
	void (*fresh)(state *, int thread);
	void (*loop)(state *, uint64_t n);
} looper;

static struct {
	looper l;
	pthread_barrier_t warm;
	result each[MAX_THREADS];
} team;

static void *member(void *arg) {
	int thread = (int)(intptr_t)arg;
	state *s = table(sizeof *s);
	s->random = seed(thread);
	if (team.l.fresh) team.l.fresh(s, thread);

	uint64_t chunk = 1;
	if (!p.ops) {
		for (double start = now();;) {
			double t = now();
			team.l.loop(s, chunk);
			if (now() - t < 200e3) chunk *= 2;
			if (now() - start >= p.warm) break;
		}
	}
	if (pthread_barrier_wait(&team.warm) == PTHREAD_BARRIER_SERIAL_THREAD) begin();

	result r = {0};
	double start = now();
	if (p.ops) {
		team.l.loop(s, p.ops);
		r.ops = p.ops;
	} else {
		while (now() - start < p.run) {
			team.l.loop(s, chunk);
			r.ops += chunk;
		}
	}
	r.ns = (now() - start) / r.ops;
	r.sum = s->sum;
	team.each[thread] = r;
	return NULL;
}

static result run_threads(looper l) {
	pthread_t t[MAX_THREADS];
	result r = {0};
	team.l = l;
	pthread_barrier_init(&team.warm, NULL, p.threads);
	for (int i = 1; i < p.threads; i++)
		if (pthread_create(&t[i], NULL, member, (void *)(intptr_t)i)) die("no thread");
	member(0);
	for (int i = 1; i < p.threads; i++) pthread_join(t[i], NULL);
	end();
	for (int i = 0; i < p.threads; i++) {
		r.ns += team.each[i].ns / p.threads;
		r.ops += team.each[i].ops;
	}
	r.sum = team.each[0].sum; // what the others have done is up to the clock in Go
	return r;
}

// --- pair, zeroed --------------------------------------------------------------

static void pair_loop(state *s, uint64_t n) {
	uint64_t size = p.min;
	for (uint64_t i = 0; i < n; i++) {
		void *b = must(get(size));
		touch(b);
		put(b);
	}
	s->sum += size * n;
}

static void zeroed_loop(state *s, uint64_t n) {
	uint64_t size = p.min;
	for (uint64_t i = 0; i < n; i++) {
		void *b = must(get_zeroed(size));
		touch(b);
		put(b);
	}
	s->sum += size * n;
}

// --- mixed ---------------------------------------------------------------------

// fill_table returns n live blocks.
static void **fill_table(uint64_t n, uint64_t *random) {
	void **live = table(n * sizeof(void *));
	for (uint64_t i = 0; i < n; i++) {
		live[i] = must(get(size_of(next(random), p.min, p.span)));
		touch(live[i]);
	}
	return live;
}

static void mixed_fresh(state *s, int thread) {
	(void)thread;
	s->live = fill_table(p.slots, &s->random);
}

static void replace(state *s, uint64_t slots, uint64_t n) {
	void **live = s->live;
	uint64_t min = p.min, span = p.span, random = s->random, sum = s->sum;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t x = next(&random), slot = slot_of(x, slots), size = size_of(x, min, span);
		put(live[slot]);
		void *b = must(get(size));
		touch(b);
		live[slot] = b;
		sum += slot ^ size;
	}
	s->random = random;
	s->sum = sum;
}

static void mixed_loop(state *s, uint64_t n) { replace(s, p.slots, n); }

// --- scatter, larson, mstress ---------------------------------------------------

static void scatter_fresh(state *s, int thread) {
	(void)thread;
	s->live = table(p.slots * sizeof(void *));
	s->order = table(p.slots * sizeof(uint32_t));
	for (uint64_t i = 0; i < p.slots; i++) {
		uint64_t at = slot_of(next(&s->random), i + 1);
		s->order[i] = s->order[at];
		s->order[at] = (uint32_t)i;
	}
}

static void scatter_loop(state *s, uint64_t n) {
	for (uint64_t half = 0; half < 2 * n;) {
		uint64_t i = s->done, end = i + 2 * n - half < p.slots ? i + 2 * n - half : p.slots, size = p.min;
		half += end - i;
		s->done = end < p.slots ? end : 0;
		if (s->freeing)
			for (; i < end; i++) {
				put(s->live[s->order[i]]);
				s->sum += s->order[i];
			}
		else
			for (; i < end; i++) {
				s->live[i] = must(get(size));
				touch(s->live[i]);
			}
		if (end == p.slots) s->freeing = !s->freeing;
	}
	s->sum += n * p.min;
}

#define LARSON_BLOCKS 5000
#define LARSON_TURN 500000

static _Atomic(void **) left;
static void larson_begin(void) {
	uint64_t random = seed(p.threads);
	left = fill_table(LARSON_BLOCKS, &random);
}

static void larson_fresh(state *s, int thread) {
	(void)thread;
	s->live = fill_table(LARSON_BLOCKS, &s->random);
}

static void larson_loop(state *s, uint64_t n) {
	while (n > 0) {
		uint64_t now = n < LARSON_TURN - s->done ? n : LARSON_TURN - s->done;
		replace(s, LARSON_BLOCKS, now);
		n -= now;
		if ((s->done += now) == LARSON_TURN) {
			s->live = atomic_exchange(&left, s->live);
			s->done = 0;
		}
	}
}

#define MSTRESS_BLOCKS 4000
#define MSTRESS_SHARED 1000

// A cell is a place for a block that threads exchange, or NULL.
typedef struct { void *b; } cell;
static _Atomic(cell *) shared[MSTRESS_SHARED];

static void mstress_begin(void) {
	cell *cells = table(sizeof shared);
	for (int i = 0; i < MSTRESS_SHARED; i++) shared[i] = &cells[i];
}

static void mstress_fresh(state *s, int thread) {
	(void)thread;
	cell *cells = table(MSTRESS_BLOCKS * sizeof *cells);
	s->live = table(MSTRESS_BLOCKS * sizeof(void *));
	for (int i = 0; i < MSTRESS_BLOCKS; i++) s->live[i] = &cells[i];
}

static void mstress_loop(state *s, uint64_t n) {
	cell **cells = (cell **)s->live;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t x = next(&s->random), y = next(&s->random);
		uint64_t slot = slot_of(x, MSTRESS_BLOCKS), size = size_of(x, p.min, p.span);
		if (slot_of(y, 100) == 0) size *= 100;
		cell *c = cells[slot];
		if (c->b) put(c->b);
		c->b = must(get(size));
		touch(c->b);
		if (y % 4 == 0) cells[slot] = atomic_exchange(&shared[size_of(y, 0, MSTRESS_SHARED)], c);
		s->sum += slot ^ size;
		if (++s->done < 2 * MSTRESS_BLOCKS) continue;
		for (int j = 0; j < MSTRESS_BLOCKS; j++) {
			if (cells[j]->b) put(cells[j]->b);
			cells[j]->b = NULL;
		}
		s->done = 0;
	}
}

// --- handover ------------------------------------------------------------------

#define RING_SLOTS 16
#define BATCH_SIZE 256
#define SPIN_ROUNDS 1000

static struct {
	_Alignas(128) atomic_uint_fast64_t head;
	_Alignas(128) atomic_uint_fast64_t tail;
	_Alignas(128) atomic_bool done;
	_Alignas(128) void *batches[RING_SLOTS][BATCH_SIZE];
} ring;

static uint64_t produce_batch(uint64_t *random) {
	uint64_t head = atomic_load(&ring.head), sum = 0;
	for (int spins = 0; head - atomic_load(&ring.tail) == RING_SLOTS; spins++)
		if (spins >= SPIN_ROUNDS) sched_yield();
	void **blocks = ring.batches[head % RING_SLOTS];
	for (int i = 0; i < BATCH_SIZE; i++) {
		uint64_t size = size_of(next(random), p.min, p.span);
		void *b = must(get(size));
		touch(b);
		blocks[i] = b;
		sum += size;
	}
	atomic_store(&ring.head, head + 1);
	return sum;
}

static void *consume(void *arg) {
	(void)arg;
	for (int spins = 0;;) {
		uint64_t tail = atomic_load(&ring.tail);
		int done = atomic_load(&ring.done);
		if (atomic_load(&ring.head) == tail) {
			if (done) return NULL;
			if (++spins >= SPIN_ROUNDS) sched_yield();
			continue;
		}
		spins = 0;
		void **blocks = ring.batches[tail % RING_SLOTS];
		for (int i = 0; i < BATCH_SIZE; i++) {
			if (p.read && first(blocks[i]) != 1) die("a block lost its byte on the way");
			put(blocks[i]);
		}
		atomic_store(&ring.tail, tail + 1);
	}
}

// --- xmalloc -------------------------------------------------------------------

#define XMALLOC_BLOCKS 4096
#define XMALLOC_BATCHES 100

typedef struct { void *blocks[XMALLOC_BLOCKS]; } batch;
typedef struct {
	pthread_mutex_t mu;
	int n;
	batch *all[XMALLOC_BATCHES];
} batches;

static batches empty = {PTHREAD_MUTEX_INITIALIZER, 0, {0}}, full = {PTHREAD_MUTEX_INITIALIZER, 0, {0}};

static void put_batch(batches *s, batch *b) {
	pthread_mutex_lock(&s->mu);
	s->all[s->n++] = b;
	pthread_mutex_unlock(&s->mu);
}

// take_batch returns NULL if there is none any more.
static batch *take_batch(batches *s) {
	for (;; sched_yield()) {
		int done = atomic_load(&ring.done);
		pthread_mutex_lock(&s->mu);
		batch *b = s->n > 0 ? s->all[--s->n] : NULL;
		pthread_mutex_unlock(&s->mu);
		if (b || done) return b;
	}
}

static void *free_batches(void *arg) {
	(void)arg;
	for (batch *b; (b = take_batch(&full)); put_batch(&empty, b))
		for (int i = 0; i < XMALLOC_BLOCKS; i++) put(b->blocks[i]);
	return NULL;
}

static void xmalloc_begin(void) {
	for (int i = 0; i < XMALLOC_BATCHES; i++) put_batch(&empty, table(sizeof(batch)));
}

static uint64_t xmalloc_batch(uint64_t *random) {
	batch *b = take_batch(&empty);
	uint64_t sum = 0;
	for (int i = 0; i < XMALLOC_BLOCKS; i++) {
		uint64_t size = size_of(next(random), p.min, p.span);
		b->blocks[i] = must(get(size));
		touch(b->blocks[i]);
		sum += size;
	}
	put_batch(&full, b);
	return sum;
}

static result run_handover(uint64_t (*produce)(uint64_t *random), uint64_t blocks, void *(*consume)(void *)) {
	result r = {0};
	uint64_t random = seed(0);
	pthread_t consumer;
	if (pthread_create(&consumer, NULL, consume, NULL)) die("no thread");
	if (!p.ops)
		for (double start = now(); now() - start < p.warm;) produce(&random);
	begin();
	double start = now();
	for (uint64_t n = 0; p.ops ? n < p.ops : now() - start < p.run; n++) {
		r.sum += produce(&random);
		r.ops += blocks;
	}
	r.ns = (now() - start) / r.ops;
	end();
	atomic_store(&ring.done, 1);
	pthread_join(consumer, NULL);
	return r;
}

// --- grow, copy ----------------------------------------------------------------

#define GROW_FROM ((uint64_t)1 << 20)
#define GROW_WARM ((uint64_t)16 << 20)
#define PAGE_STEP 4096

static void *step_realloc(void *b, uint64_t from, uint64_t to) {
	(void)from;
	return must(realloc(b, to));
}

static void *step_copy(void *old, uint64_t from, uint64_t to) {
	void *b = must(malloc(to));
	memcpy(b, old, from);
	free(old);
	return b;
}

static void stamp(volatile char *b, uint64_t from, uint64_t to) {
	for (uint64_t i = from; i < to; i += PAGE_STEP) b[i] = 1;
}

static double grow_once(uint64_t top, void *(*step)(void *, uint64_t, uint64_t)) {
	double spent = 0;
	char *b = must(malloc(GROW_FROM));
	stamp(b, 0, GROW_FROM);
	for (uint64_t size = GROW_FROM; size < top; size *= 2) {
		double start = now();
		b = step(b, size, 2 * size);
		spent += now() - start;
		if (b[0] != 1 || b[size - PAGE_STEP] != 1) die("the block lost its contents");
		stamp(b, size, 2 * size);
	}
	free(b);
	return spent;
}

static result growth(void *(*step)(void *, uint64_t, uint64_t)) {
	result r = {.ops = 1, .sum = p.top};
	grow_once(p.top < GROW_WARM ? p.top : GROW_WARM, step);
	begin();
	r.ns = grow_once(p.top, step);
	end();
	return r;
}

// --- live, churn ---------------------------------------------------------------

static result run_live(void) {
	result r = {.ops = p.slots};
	void **live = table(p.slots * sizeof(void *));
	uint64_t random = seed(0);
	put(must(get(p.min)));
	uint64_t before = resident_bytes();
	begin();
	double start = now();
	for (uint64_t i = 0; i < p.slots; i++) {
		live[i] = must(get(size_of(next(&random), p.min, p.span)));
		touch(live[i]);
	}
	r.ns = (now() - start) / p.slots;
	end();
	random = seed(0);
	for (uint64_t i = 0; i < p.slots; i++) {
		uint64_t size = size_of(next(&random), p.min, p.span);
		memset(live[i], 1, size);
		r.requested += size;
	}
	r.sum = r.requested;
	r.resident = resident_bytes() - before;
	return r;
}

static result run_churn(void) {
	result r = {.ops = 2 * p.slots};
	void **live = table(p.slots * sizeof(void *));
	uint32_t *sizes = table(p.slots * sizeof(uint32_t));
	uint64_t random = seed(0);
	put(must(get(p.min)));
	uint64_t before = resident_bytes();
	for (uint64_t i = 0; i < p.slots; i++) {
		uint64_t size = size_of(next(&random), p.min, p.span);
		live[i] = memset(must(get(size)), 1, size);
		sizes[i] = (uint32_t)size;
		r.requested += size;
	}
	begin();
	double start = now();
	for (uint64_t i = 0; i < 2 * p.slots; i++) {
		uint64_t x = next(&random), slot = slot_of(x, p.slots), size = size_of(x, p.min, p.span);
		put(live[slot]);
		live[slot] = memset(must(get(size)), 1, size);
		r.requested += size - sizes[slot];
		sizes[slot] = (uint32_t)size;
	}
	r.ns = (now() - start) / r.ops;
	end();
	r.sum = r.requested;
	r.resident = resident_bytes() - before;
	return r;
}

// --- peak ----------------------------------------------------------------------

#define PEAK_PHASES 12
#define PEAK_THREADS 2

// A tide is the blocks of a thread.
typedef struct {
	void **blocks;
	uint32_t *sizes;
	uint64_t n, live, high, phase, ops, random;
} tide;

static tide tides[PEAK_THREADS];
static pthread_barrier_t tide_turns;

static uint64_t tide_size(tide *t) {
	uint64_t kind = slot_of(next(&t->random), 1000), x = next(&t->random);
	if (kind < 900) return size_of(x, 16 + 24 * t->phase, 480);
	return kind < 998 ? size_of(x, 512, 8 << 10) : size_of(x, 40 << 10, 600 << 10);
}

static void tide_add(tide *t) {
	uint64_t size = tide_size(t);
	t->blocks[t->n] = memset(must(get(size)), 1, size);
	t->sizes[t->n++] = (uint32_t)size;
	t->live += size;
	t->ops++;
}

static void tide_drop(tide *t) {
	uint64_t i = slot_of(next(&t->random), t->n), last = --t->n;
	t->live -= t->sizes[i];
	put(t->blocks[i]);
	t->blocks[i] = t->blocks[last];
	t->sizes[i] = t->sizes[last];
}

static uint64_t tides_most;
static void *tide_member(void *arg) {
	tide *t = arg;
	for (; t->phase < PEAK_PHASES; t->phase++) {
		while (t->live < t->high) tide_add(t);
		for (uint64_t i = 3 * t->n; i > 0; i--)
			for (tide_drop(t); t->live < t->high;) tide_add(t);
		if (pthread_barrier_wait(&tide_turns) == PTHREAD_BARRIER_SERIAL_THREAD) {
			uint64_t live = tides[0].live + tides[1].live;
			if (live > tides_most) tides_most = live;
		}
		pthread_barrier_wait(&tide_turns);
		while (t->n > 0 && t->live > t->high / 3) tide_drop(t);
		pthread_barrier_wait(&tide_turns);
	}
	return NULL;
}

static result run_peak(void) {
	result r = {.ops = PEAK_PHASES};
	for (int i = 0; i < PEAK_THREADS; i++) {
		uint64_t high = p.peak / PEAK_THREADS;
		tides[i] = (tide){table(high / 128 * sizeof(void *)), table(high / 128 * sizeof(uint32_t)), .high = high, .random = seed(i)};
	}
	pthread_barrier_init(&tide_turns, NULL, PEAK_THREADS);
	put(must(get(16)));
	uint64_t before = reset_peak();
	pthread_t other;
	begin();
	double start = now();
	if (pthread_create(&other, NULL, tide_member, &tides[1])) die("no thread");
	tide_member(&tides[0]);
	pthread_join(other, NULL);
	r.ns = (now() - start) / PEAK_PHASES;
	end();
	r.peak = (double)(peak_bytes() - before) / tides_most;
	r.sum = tides_most + tides[0].ops + tides[1].ops;
	return r;
}

// --- replay --------------------------------------------------------------------

enum { END, MALLOC, CALLOC, REALLOC, FREE };

typedef struct {
	uint32_t block, size, old;
	uint8_t kind;
} call;

static struct {
	call *calls;
	void **blocks;
	uint64_t num_calls, next, most_live;
} trace;

static uint64_t leb128(FILE *f) {
	uint64_t x = 0;
	for (int c = 128, shift = 0; c & 128; shift += 7) {
		if ((c = getc(f)) == EOF) die("the trace has no end");
		x |= (uint64_t)(c & 127) << shift;
	}
	return x;
}

static uint32_t block_after(uint32_t last, FILE *f) {
	uint64_t x = leb128(f);
	return last + (uint32_t)(x >> 1 ^ -(x & 1));
}

// read_trace reads a file of record.c, and frees the blocks that are left in the end.
static void read_trace(void) {
	char command[4096];
	const char *dir = getenv("FREEHOLD_TRACES");
	snprintf(command, sizeof command, "gzip -dc '%s/%s.gz'", dir ? dir : "traces", p.trace);
	FILE *f = popen(command, "r");
	if (!f) die("cannot read the trace");
	const uint64_t most_calls = 1 << 27, most_blocks = 1 << 24; // only what is used is touched
	int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	trace.calls = mmap(NULL, most_calls * sizeof(call), prot, flags, -1, 0);
	uint32_t *sizes = mmap(NULL, 2 * most_blocks * sizeof *sizes, prot, flags, -1, 0);
	if (trace.calls == MAP_FAILED || sizes == MAP_FAILED) die("mmap failed");
	uint32_t *unused = sizes + most_blocks, num_unused = 0, num_blocks = 0, last = 0;
	uint64_t live = 0;
	for (int kind; (kind = getc(f)) != END;) {
		uint32_t size = 0;
		if (kind == MALLOC || kind == CALLOC) {
			size = leb128(f);
			size += !size;
			last = num_unused ? unused[--num_unused] : num_blocks++;
		} else if (kind == REALLOC || kind == FREE) {
			last = block_after(last, f);
			if (last >= num_blocks || !sizes[last]) die("a block of the trace is not live");
			if (kind == REALLOC) size = leb128(f);
			else unused[num_unused++] = last;
		} else die("no such call in the trace");
		trace.calls[trace.num_calls++] = (call){last, size, sizes[last], kind};
		live += (uint64_t)size - sizes[last];
		sizes[last] = size;
		if (live > trace.most_live) trace.most_live = live;
		if (num_blocks == most_blocks || trace.num_calls + num_blocks == most_calls) die("the trace is too long");
	}
	if (pclose(f)) die("cannot read the trace");
	for (uint32_t i = 0; i < num_blocks; i++)
		if (sizes[i]) trace.calls[trace.num_calls++] = (call){i, 0, 0, FREE};
	trace.blocks = table((num_blocks + 1) * sizeof(void *));
}

static void replay_loop(state *s, uint64_t n) {
	for (uint64_t i = 0; i < n; i++) {
		call *c = &trace.calls[trace.next];
		if (++trace.next == trace.num_calls) trace.next = 0;
		void **at = &trace.blocks[c->block];
		switch (c->kind) {
		case MALLOC: *at = must(malloc(c->size)); break;
		case CALLOC: *at = must(calloc(1, c->size)); break;
		case REALLOC: *at = must(realloc(*at, c->size)); break;
		default:
			free(*at);
			*at = NULL;
			continue;
		}
		volatile char *b = *at;
		if (c->size > c->old) {
			for (uint64_t j = c->old; j < c->size; j += PAGE_STEP) b[j] = 1;
			b[c->size - 1] = 1;
		}
		s->sum += c->size;
	}
}

static result run_replay(void) {
	state first = {0};
	read_trace();
	free(must(malloc(16)));
	uint64_t before = reset_peak();
	replay_loop(&first, trace.num_calls);
	double peak = (double)(peak_bytes() - before) / trace.most_live;
	result r = run_threads((looper){NULL, replay_loop});
	r.peak = peak;
	return r;
}

// --- main ----------------------------------------------------------------------

static int is(const char *name) { return !strcmp(p.bench, name); }

static result run(void) {
	if (is("Pair")) return run_threads((looper){NULL, pair_loop});
	if (is("Zeroed")) return run_threads((looper){NULL, zeroed_loop});
	if (is("Mixed")) return run_threads((looper){mixed_fresh, mixed_loop});
	if (is("Scatter")) return run_threads((looper){scatter_fresh, scatter_loop});
	if (is("Larson")) return larson_begin(), run_threads((looper){larson_fresh, larson_loop});
	if (is("Mstress")) return mstress_begin(), run_threads((looper){mstress_fresh, mstress_loop});
	if (is("Handover")) return run_handover(produce_batch, BATCH_SIZE, consume);
	if (is("Xmalloc")) return xmalloc_begin(), run_handover(xmalloc_batch, XMALLOC_BLOCKS, free_batches);
	if (is("Peak")) return run_peak();
	if (is("Replay")) return run_replay();
	if (is("Grow")) return growth(strcmp(p.by, "copy") ? step_realloc : step_copy);
	if (is("Memory") || is("Huge")) return run_live();
	if (is("MemoryChurn")) return run_churn();
	die("no such benchmark");
	return (result){0};
}

// parse_name takes a name such as Mixed/size=16-4096/goroutines=2 apart.
static void parse_name(char *name) {
	p.bench = strtok(name, "/");
	for (char *part; (part = strtok(NULL, "/"));) {
		unsigned long from, to;
		int n = sscanf(part, "size=%lu-%lu", &from, &to);
		if (n >= 1) p.min = from, p.max = n == 2 ? to : from;
		else if (sscanf(part, "goroutines=%d", &p.threads) != 1 && sscanf(part, "read=%d", &p.read) != 1 &&
			sscanf(part, "by=%15s", p.by) != 1 && sscanf(part, "live=%luMiB", &p.peak) != 1 &&
			sscanf(part, "trace=%63s", p.trace) != 1) die("no such part of a name");
	}
	if (p.threads > MAX_THREADS) die("too many goroutines");
	p.span = p.max - p.min + 1;
	p.peak <<= 20;
}

int main(int argc, char **argv) {
	print_version();
	if (argc == 1) return 0;
	for (int i = 1; i + 1 < argc; i += 2) {
		const char *flag = argv[i];
		uint64_t n = strtoull(argv[i + 1], NULL, 10);
		if (!strcmp(flag, "-bench")) parse_name(argv[i + 1]);
		else if (!strcmp(flag, "-blocks")) p.slots = n;
		else if (!strcmp(flag, "-warm")) p.warm = n * 1e6;
		else if (!strcmp(flag, "-run")) p.run = n * 1e6;
		else if (!strcmp(flag, "-ops")) p.ops = n;
		else if (!strcmp(flag, "-top")) p.top = n;
		else die("no such flag");
	}

	result r = run();
	printf("Benchmark%s %llu %.4f ns/op %.4f cpu-ns/op", p.bench, (unsigned long long)r.ops, r.ns, cpu / (r.ops ? r.ops : 1));
	if (r.requested)
		printf(" %.6f resident/requested %.4f overhead-B/block", (double)r.resident / r.requested,
			((double)r.resident - (double)r.requested) / p.slots);
	if (r.peak) printf(" %.6f peak/live", r.peak);
	if (p.ops) printf(" %llu sum", (unsigned long long)(r.sum % (1ull << 52)));
	putchar('\n');
	return 0;
}
