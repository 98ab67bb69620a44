// What jemalloc tells through mallctl, wherever that function was found.

#include <stddef.h>
#include <stdint.h>

typedef int freehold_mallctl(const char *, void *, size_t *, void *, size_t);

// Bytes; -1 is a figure that there is not.
struct freehold_stats {
	int64_t allocated, active, metadata, resident, mapped, retained;
};

static int64_t freehold_figure(freehold_mallctl *ctl, const char *name) {
	size_t n, size = sizeof n;
	return ctl(name, &n, &size, NULL, 0) == 0 ? (int64_t)n : -1;
}

static void freehold_jemalloc_stats(freehold_mallctl *ctl, struct freehold_stats *s) {
	uint64_t epoch = 1; // any write brings the figures up to date
	ctl("epoch", NULL, NULL, &epoch, sizeof epoch);
	s->allocated = freehold_figure(ctl, "stats.allocated");
	s->active = freehold_figure(ctl, "stats.active");
	s->metadata = freehold_figure(ctl, "stats.metadata");
	s->resident = freehold_figure(ctl, "stats.resident");
	s->mapped = freehold_figure(ctl, "stats.mapped");
	s->retained = freehold_figure(ctl, "stats.retained");
}

// 4096 stands for all arenas.
static void freehold_jemalloc_trim(freehold_mallctl *ctl) {
	ctl("thread.tcache.flush", NULL, NULL, NULL, 0);
	ctl("arena.4096.purge", NULL, NULL, NULL, 0);
}

static const char *freehold_jemalloc_version(freehold_mallctl *ctl) {
	const char *v = "";
	size_t size = sizeof v;
	ctl("version", &v, &size, NULL, 0);
	return v;
}

// Whether plain malloc is worth trying: the alignment is one that it mostly
// gives, or always. What it returns is checked all the same.
#define FREEHOLD_PLAIN(size, align) \
	((align) <= sizeof(void *) || ((align) <= _Alignof(max_align_t) && (align) <= (size)))
#define FREEHOLD_ALIGNED(p, align) (((uintptr_t)(p) & ((align) - 1)) == 0)
