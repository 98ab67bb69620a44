// Profile: off-heap memory in the format of go tool pprof.

// Package profile writes profiles of off-heap memory for go tool pprof: live and allocated blocks
// and bytes by call stack, as Go's heap profile has them.
//
//	import "github.com/freehold-go/freehold/profile"
//
//	http.Handle("GET /debug/pprof/offheap", profile.Handler())
//
//	go tool pprof http://localhost:6060/debug/pprof/offheap
//
// Importing the package turns sampling on, at track.DefaultSampleRate. Package track tells its cost
// and its precision. To set another rate, start the program with FREEHOLD_DEBUG=profile=BYTES, or
// call track.SetSampleRate.
//
// Each sample has the label heap, the name of its heap. Samples of blocks from a freehold.Tagged
// also have the label tag, its path. Both are for pprof's -tagfocus, -tagroot and -tags. The sample
// types and their order are Go's heap profile's, so pprof compares and merges the two.
package profile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/freehold-go/freehold/track"
	pb "github.com/google/pprof/profile"
)

func init() {
	if track.SampleRate() == 0 {
		track.SetSampleRate(track.DefaultSampleRate)
	}
}

// Write writes the profile of all off-heap memory to w, compressed. The error is w's.
func Write(w io.Writer) error { return offHeap().Write(w) }

// WriteProcess writes one profile of all of the process's memory to w, compressed: Go's heap
// profile, with the label heap=go, and the off-heap profile of [Write]. Go's part is as of the last
// garbage collection. The error is w's.
func WriteProcess(w io.Writer) error {
	p, err := process()
	if err != nil {
		return err
	}
	return p.Write(w)
}

// process returns the profile of the process.
func process() (*pb.Profile, error) {
	var b bytes.Buffer
	if err := pprof.Lookup("heap").WriteTo(&b, 0); err != nil {
		return nil, fmt.Errorf("freehold: profile: the Go heap: %w", err)
	}
	p, err := pb.Parse(&b)
	if err != nil {
		return nil, fmt.Errorf("freehold: profile: the Go heap: %w", err)
	}
	for _, s := range p.Sample {
		s.Label = map[string][]string{"heap": {"go"}}
	}
	p, err = pb.Merge([]*pb.Profile{p, offHeap()})
	if err != nil {
		return nil, fmt.Errorf("freehold: profile: %w", err)
	}
	return p, nil
}

// offHeap returns the profile of off-heap memory.
func offHeap() *pb.Profile {
	b := newBuilder()
	for _, u := range track.Profile() {
		b.add(u)
	}
	return b.p
}

// builder makes a profile, with one location for each frame and one function for each
// name.
type builder struct {
	p         *pb.Profile
	locations map[runtime.Frame]*pb.Location // by program counter, function and line
	functions map[string]*pb.Function
}

func newBuilder() *builder {
	size := &pb.ValueType{Type: "space", Unit: "bytes"}
	file, _ := os.Executable()
	return &builder{
		p: &pb.Profile{
			SampleType: []*pb.ValueType{
				{Type: "alloc_objects", Unit: "count"},
				{Type: "alloc_space", Unit: "bytes"},
				{Type: "inuse_objects", Unit: "count"},
				{Type: "inuse_space", Unit: "bytes"},
			},
			DefaultSampleType: "inuse_space",
			PeriodType:        size,
			Period:            int64(max(track.SampleRate(), 1)),
			TimeNanos:         time.Now().UnixNano(),
			Mapping: []*pb.Mapping{{
				ID: 1, File: file, HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true,
			}},
		},
		locations: map[runtime.Frame]*pb.Location{},
		functions: map[string]*pb.Function{},
	}
}

func (b *builder) add(u track.Usage) {
	s := &pb.Sample{
		Value: []int64{u.AllocObjects, u.AllocBytes, u.InUseObjects(), u.InUseBytes()},
		Label: map[string][]string{"heap": {u.Heap}},
	}
	if u.Tag != "" {
		s.Label["tag"] = []string{u.Tag}
	}
	frames := runtime.CallersFrames(u.Stack)
	for range u.Stack {
		f, more := frames.Next()
		s.Location = append(s.Location, b.location(f))
		if !more {
			break
		}
	}
	if len(u.Stack) == 0 {
		s.Location = []*pb.Location{b.location(runtime.Frame{Function: "(other)"})}
	}
	b.p.Sample = append(b.p.Sample, s)
}

func (b *builder) location(f runtime.Frame) *pb.Location {
	key := runtime.Frame{PC: f.PC, Function: f.Function, Line: f.Line}
	l := b.locations[key]
	if l == nil {
		l = &pb.Location{
			ID:      uint64(len(b.p.Location)) + 1,
			Mapping: b.p.Mapping[0],
			Address: uint64(f.PC),
			Line:    []pb.Line{{Function: b.function(f), Line: int64(f.Line)}},
		}
		b.locations[key] = l
		b.p.Location = append(b.p.Location, l)
	}
	return l
}

func (b *builder) function(f runtime.Frame) *pb.Function {
	fn := b.functions[f.Function]
	if fn == nil {
		fn = &pb.Function{ID: uint64(len(b.p.Function)) + 1, Name: f.Function, SystemName: f.Function, Filename: f.File}
		b.functions[f.Function] = fn
		b.p.Function = append(b.p.Function, fn)
	}
	return fn
}
