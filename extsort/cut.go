// Cut: parts of the output that can be merged apart.
//
//	run 0  |---------|-----------|------|
//	run 1  |----|----------|------------|
//	run 2  |------------|-----|---------|
//	        part 0     part 1   part 2
//
// A splitter is a key, taken from the marks of the runs. A splitter cuts each run at
// the first record not less than it. With many equal keys, it names one record: run
// and offset break ties.

package extsort

import (
	"cmp"
	"io"
	"slices"
	"sort"
)

type splitter struct {
	key    []byte // cut to less than maxKeyBytes
	run    int
	at     int64 // of the record in its run
	exact  bool  // equal keys are split by run and place
	weight int64 // bytes from the splitter to the next one of its run
}

const maxSplitters = 1 << 16

// splitters returns the keys that cut runs into parts of about partBytes.
func splitters(l *layout, runs []*run, partBytes int64) []splitter {
	var total, marks int64
	for _, r := range runs {
		total += r.bytes
		marks += int64(r.marks(partBytes))
	}
	every := int(marks/maxSplitters) + 1
	all := make([]splitter, 0, marks/int64(every)+int64(len(runs)))
	for i, r := range runs {
		n := r.marks(partBytes)
		for j := 0; j < n; j += every {
			s := r.mark(j, n)
			s.run = i
			s.exact = len(s.key) < maxKeyBytes && !l.unique
			s.key = s.key[:min(len(s.key), maxKeyBytes-1)]
			s.weight = r.bytes * int64(min(every, n-j)) / int64(n)
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b splitter) int {
		return cmp.Or(l.compare(a.key, b.key), cmp.Compare(a.run, b.run), cmp.Compare(a.at, b.at))
	})
	chosen := all[:0]
	var size, done int64
	for _, s := range all {
		if size >= partBytes && total-done > partBytes/2 && (s.exact || len(chosen) == 0 || l.compare(chosen[len(chosen)-1].key, s.key) != 0) {
			chosen = append(chosen, s)
			size = 0
		}
		size += s.weight
		done += s.weight
	}
	return slices.Clip(chosen)
}

// marks returns how many places of r can be splitters.
func (r *run) marks(partBytes int64) int {
	if r.file != nil {
		return r.endMark - r.firstMark
	}
	return int(min(int64(len(r.entries)), r.bytes/max(partBytes/64, 1)+1))
}

// mark returns place i of n.
func (r *run) mark(i, n int) splitter {
	if r.file != nil {
		m := r.firstMark + i
		return splitter{key: r.x.key(m), at: r.x.at(m).at}
	}
	at := int64(len(r.entries)) * int64(i) / int64(n)
	e := r.entries[at]
	return splitter{key: r.text[e.At:][:e.N], at: at}
}

// before reports whether a record of run i with that key comes before s, for a
// record that is not s.
func (s *splitter) before(l *layout, i int, key []byte) bool {
	c := l.compare(key, s.key)
	return c < 0 || c == 0 && s.exact && i < s.run
}

// cutAt returns where s cuts run i. The window is for a part of the run's file.
func (s *splitter) cutAt(l *layout, i int, r *run, window []byte) (int64, error) {
	if s.exact && i == s.run {
		return s.at, nil
	}
	if r.file == nil {
		n := sort.Search(len(r.entries), func(j int) bool {
			e := r.entries[j]
			return !s.before(l, i, r.text[e.At:][:e.N])
		})
		return int64(n), nil
	}
	n := sort.Search(r.endMark-r.firstMark, func(j int) bool { return !s.before(l, i, r.x.key(r.firstMark+j)) })
	if n == 0 {
		return r.from, nil
	}
	from, to := r.x.at(r.firstMark+n-1).at, r.to
	if r.firstMark+n < r.endMark {
		to = r.x.at(r.firstMark + n).at
	}
	var records fileReader
	if err := records.open(l, r.file, from, to, window); err != nil {
		return 0, err
	}
	for at := from; ; {
		key, stored, err := records.next()
		if err == io.EOF {
			return to, nil
		}
		if err != nil || !s.before(l, i, key) {
			return at, err
		}
		at += int64(len(stored))
	}
}

// begin and end are the ends of a run, in the unit of a splitter's at.
func (r *run) begin() int64 {
	if r.file == nil {
		return 0
	}
	return r.from
}

func (r *run) end() int64 {
	if r.file == nil {
		return int64(len(r.entries))
	}
	return r.to
}
