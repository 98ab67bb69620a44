package main

import "github.com/freehold-go/freehold"

type offNode struct {
	key     uint64
	payload [40]byte
	next    freehold.Ptr[offNode]
}

// offList is a list whose nodes come from the functions below.
type offList struct {
	get     func() (*offNode, error) // a zero node
	put     func(*offNode)           // takes one back; nil where they go all at once
	putAll  func()                   // takes all back; nil where they go one by one
	bytes   func() int64             // in live blocks, by the allocator's own figures
	closing func() error             // an error if a node is left

	head freehold.Ptr[offNode]
}

func (l *offList) build(n int) error {
	for i := range n {
		p, err := l.get()
		if err != nil {
			return err
		}
		p.key, p.next = uint64(i), l.head
		l.head = freehold.PtrTo(p)
	}
	return nil
}

func (l *offList) walk() (sum uint64) {
	for p := l.head.Get(); p != nil; p = p.next.Get() {
		sum += p.key
	}
	return sum
}

func (l *offList) free() {
	p := l.head.Get()
	l.head = freehold.Ptr[offNode]{}
	if l.put == nil {
		l.putAll()
		return
	}
	for p != nil {
		next := p.next.Get()
		l.put(p)
		p = next
	}
}

func (l *offList) offHeap() int64 { return l.bytes() }
func (l *offList) end() error     { return l.closing() }
