// The same tree on the Go heap, for comparison.

package main

// A goNode is a Node as one writes it without freehold.
type goNode struct {
	kind   Kind
	key    string
	text   string
	number float64

	first *goNode
	next  *goNode
}

func parseGo(text string) (*goNode, error) {
	b := goBuilder{reader{source: text}}
	var root *goNode
	if err := b.values(&root, 0); err != nil {
		return nil, err
	}
	return root, nil
}

type goBuilder struct{ reader }

func (b *goBuilder) values(link **goNode, closing byte) (err error) {
	for b.next(closing) {
		n := &goNode{kind: b.kind, key: b.key.String()}
		*link = n
		link = &n.next
		switch n.kind {
		case Number:
			n.number = b.number
		case String:
			n.text = b.text.String()
		case Array:
			err = b.values(&n.first, ']')
		case Object:
			err = b.values(&n.first, '}')
		}
		if err != nil {
			return err
		}
	}
	return b.err
}

// String returns the value of q, as a part of the source if possible.
func (q quoted) String() string {
	if q.raw == "" || q.plain {
		return q.raw
	}
	return string(q.appendTo(make([]byte, 0, len(q.raw))))
}
