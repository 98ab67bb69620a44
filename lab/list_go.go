package main

import "runtime"

var goContender = contender{
	name:  "go",
	title: "Go heap",
	frees: "the list is dropped and collected, all at once",
	open:  func() (list, error) { return &goList{}, nil },
}

// A goNode holds what an offNode holds, but for the kind of link.
type goNode struct {
	key     uint64
	payload [40]byte
	next    *goNode
}

// goList is a list of ordinary Go values.
type goList struct{ head *goNode }

func (l *goList) build(n int) error {
	for i := range n {
		l.head = &goNode{key: uint64(i), next: l.head}
	}
	return nil
}

func (l *goList) walk() (sum uint64) {
	for p := l.head; p != nil; p = p.next {
		sum += p.key
	}
	return sum
}

func (l *goList) free() {
	l.head = nil
	runtime.GC() // the only way to take the list back
}

func (l *goList) offHeap() int64 { return -1 }
func (l *goList) end() error     { return nil }
