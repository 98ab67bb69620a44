// Record: a library to preload that records a program's calls of malloc, for the
// benchmark Replay.
//
//	cc -O2 -shared -fPIC -o record.so record.c
//	LD_PRELOAD=$PWD/record.so RECORD=/tmp/perl perl script.pl
//	gzip -9n < /tmp/perl.1234 > ../traces/perl.gz
//
// Each process writes RECORD.PID; a child records only after exec. The calls of
// several threads are one sequence, and an aligned allocation is recorded as
// malloc. glibc alone has the functions that this file calls.
//
// The file is a sequence of calls, each a byte and numbers in LEB128:
//
//	1 malloc   size         a new block
//	2 calloc   size         a new block
//	3 realloc  block size
//	4 free     block
//	0          the end
//
// A new block takes the number that was freed last, or else the lowest that was never
// used. So there are as many numbers as blocks were live at once. A number is
// written as its difference from the number in the call before, as zigzag, so that
// neighbours that are freed in order compress well.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum { MALLOC = 1, CALLOC, REALLOC, FREE };

#define MOST_BLOCKS (1 << 24)
#define MOST_BYTES ((size_t)4 << 30) // of the file, which is sparse

static unsigned char *out, *begin; // out is NULL while nothing is recorded
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

// The numbers of live blocks, by address: a hash table with linear probing.
static struct { uintptr_t addr; uint32_t block; } *places;
static uint32_t *unused, num_unused, next_block, last_block;

static size_t home(uintptr_t addr) { return (addr >> 4) * 0x9E3779B97F4A7C15u >> 39; } // 25 bits
#define NUM_PLACES ((size_t)1 << 25)
#define NEXT(i) (((i) + 1) % NUM_PLACES)

static void insert(uintptr_t addr, uint32_t block) {
	size_t i = home(addr);
	while (places[i].addr) i = NEXT(i);
	places[i].addr = addr;
	places[i].block = block;
}

// take removes the number of the block at addr. It returns 0 if there is none: the
// block is older than the record.
static int take(uintptr_t addr, uint32_t *block) {
	size_t i = home(addr);
	for (; places[i].addr != addr; i = NEXT(i))
		if (!places[i].addr) return 0;
	*block = places[i].block;
	for (size_t j = NEXT(i); places[j].addr; j = NEXT(j)) // close the gap
		if ((j - home(places[j].addr)) % NUM_PLACES >= (j - i) % NUM_PLACES) {
			places[i] = places[j];
			i = j;
		}
	places[i].addr = 0;
	return 1;
}

static void number(uint64_t x) {
	for (; x >= 128; x >>= 7) *out++ = x | 128;
	*out++ = x;
}

static void write_block(uint32_t block) {
	int64_t d = (int64_t)block - last_block;
	number((uint64_t)d << 1 ^ (uint64_t)(d >> 63));
	last_block = block;
}

static void created(int call, void *b, size_t size) {
	if (!b || !out) return;
	pthread_mutex_lock(&mu);
	if (out) {
		*out++ = call;
		number(size);
		last_block = num_unused ? unused[--num_unused] : next_block++;
		insert((uintptr_t)b, last_block);
		if (next_block == MOST_BLOCKS || out > begin + MOST_BYTES - 64) {
			fputs("record: too many blocks or calls\n", stderr);
			_exit(1);
		}
	}
	pthread_mutex_unlock(&mu);
}

void *malloc(size_t n) {
	void *b = __libc_malloc(n);
	created(MALLOC, b, n);
	return b;
}

void *calloc(size_t n, size_t size) {
	void *b = __libc_calloc(n, size);
	created(CALLOC, b, n * size);
	return b;
}

void *memalign(size_t align, size_t n) {
	void *b = __libc_memalign(align, n);
	created(MALLOC, b, n);
	return b;
}

void *aligned_alloc(size_t align, size_t n) { return memalign(align, n); }

int posix_memalign(void **b, size_t align, size_t n) {
	void *got = memalign(align, n);
	if (!got) return ENOMEM;
	*b = got;
	return 0;
}

// The address that free gives back may be another thread's at once, so it is
// recorded before.
void free(void *b) {
	uint32_t block;
	if (b && out) {
		pthread_mutex_lock(&mu);
		if (out && take((uintptr_t)b, &block)) {
			*out++ = FREE;
			write_block(block);
			unused[num_unused++] = block;
		}
		pthread_mutex_unlock(&mu);
	}
	__libc_free(b);
}

void *realloc(void *b, size_t n) {
	if (!b) return malloc(n);
	if (!n) {
		free(b);
		return NULL;
	}
	if (!out) return __libc_realloc(b, n);
	pthread_mutex_lock(&mu);
	uint32_t block;
	int known = out && take((uintptr_t)b, &block);
	void *got = __libc_realloc(b, n);
	if (known) {
		insert((uintptr_t)(got ? got : b), block);
		if (got) {
			*out++ = REALLOC;
			write_block(block);
			number(n);
		}
	}
	pthread_mutex_unlock(&mu);
	return got;
}

static void *own(size_t bytes, int flags, int file) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
	if (p == MAP_FAILED) {
		perror("record");
		_exit(1);
	}
	return p;
}

static int file;
static void stop(void) { out = NULL; }

// A program that ends without destructors leaves zeros behind the calls.
__attribute__((destructor)) static void end(void) {
	pthread_mutex_lock(&mu);
	if (out && ftruncate(file, out - begin)) perror("record");
	stop();
	pthread_mutex_unlock(&mu);
}

__attribute__((constructor)) static void start(void) {
	char path[4096];
	if (!getenv("RECORD")) return;
	snprintf(path, sizeof path, "%s.%d", getenv("RECORD"), getpid());
	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (file < 0 || ftruncate(file, MOST_BYTES)) {
		perror(path);
		_exit(1);
	}
	int anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	places = own(NUM_PLACES * sizeof *places, anonymous, -1);
	unused = own(MOST_BLOCKS * sizeof *unused, anonymous, -1);
	begin = own(MOST_BYTES, MAP_SHARED | MAP_NORESERVE, file);
	pthread_atfork(NULL, NULL, stop);
	out = begin;
}
