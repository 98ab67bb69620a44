package track_test

import (
	"fmt"
	"runtime"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/track"
)

func ExampleProfile() {
	defer track.SetSampleRate(track.SetSampleRate(1)) // every block, so that the figures are exact
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
	defer h.Close()

	b, err := h.Alloc(1000, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Free(b)

	for _, u := range track.Profile() {
		if u.Heap == "index" {
			frame, _ := runtime.CallersFrames(u.Stack).Next()
			fmt.Println(u.InUseBytes(), "bytes in", u.InUseObjects(), "block by", frame.Function)
		}
	}
	// Output: 1000 bytes in 1 block by github.com/freehold-go/freehold/track_test.ExampleProfile
}

func ExampleLeaks() {
	defer track.SetSampleRate(track.SetSampleRate(1)) // FREEHOLD_DEBUG=leak does so from the start
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "cache"})
	defer h.Close()

	pages := freehold.NewTagged(h, "pages")
	for range 3 {
		freehold.Must(pages.Alloc(4096, 8)) // and nothing frees it
	}
	for _, l := range track.Leaks() {
		if l.Heap == "cache" {
			fmt.Println(l.Blocks, "blocks,", l.Bytes, "bytes for", l.Tag)
		}
	}
	// Output: 3 blocks, 12288 bytes for pages
}

func ExampleAtExit() {
	defer track.AtExit() // in main: writes what FREEHOLD_DEBUG=leak and stats ask for
	// Output:
}
