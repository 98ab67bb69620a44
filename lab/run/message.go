// Messages from a program that measures to the one that has started it: lines of JSON on its
// standard output, any number of them and then its result.

package run

import (
	"encoding/json"
	"io"
	"sync"
)

// A Message is one line.
type Message struct {
	Progress float64 `json:"progress,omitempty"` // a fraction of 1
	Text     string  `json:"text,omitempty"`     // beside Progress

	Part   json.RawMessage `json:"part,omitempty"` // of a result, for when it never comes
	Result json.RawMessage `json:"result,omitempty"`

	Failed      string `json:"failed,omitempty"`      // why Result is not complete
	Unavailable string `json:"unavailable,omitempty"` // why there is none on this machine
}

// A Writer writes messages. Calls are safe for concurrent use. An error means that the parent is
// gone. It then ends the program by other means.
type Writer struct {
	mu *sync.Mutex
	e  *json.Encoder
}

func NewWriter(w io.Writer) Writer { return Writer{new(sync.Mutex), json.NewEncoder(w)} }

func (w Writer) write(m Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.e.Encode(m)
}

func (w Writer) Progress(fraction float64, text string) {
	w.write(Message{Progress: fraction, Text: text})
}

func (w Writer) Part(part any) { w.write(Message{Part: raw(part)}) }

func (w Writer) Unavailable(why string) { w.write(Message{Unavailable: why}) }

// Result ends the messages. failed is why the result is not complete, nil if it is.
func (w Writer) Result(result any, failed error) {
	m := Message{Result: raw(result)}
	if failed != nil {
		m.Failed = failed.Error()
	}
	w.write(m)
}

func raw(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // figures are finite, and keys are strings
	}
	return text
}
