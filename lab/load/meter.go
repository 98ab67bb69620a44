package load

import (
	"slices"
	"sync"
	"time"

	"github.com/freehold-go/freehold/lab/process"
	"github.com/freehold-go/freehold/lab/run"
)

// A Sample has the memory of the process at one moment.
type Sample struct {
	Seconds float64 `json:"s"`
	RSS     int64   `json:"rss"`
	Live    int64   `json:"live"`
}

// A meter samples resident memory over time, in little memory of its own: when
// maxSamples are held every second one goes, and from then on one of two is kept.
//
// mu guards everything below it.
type meter struct {
	start time.Time
	live  func() int64

	mu      sync.Mutex
	samples []Sample
	taken   int
	every   int   // of those taken one is kept
	peak    int64 // largest RSS since takePeak
}

const maxSamples = 2048

// newMeter returns a meter; live returns the bytes in live chunks.
func newMeter(live func() int64) *meter {
	return &meter{start: time.Now(), live: live, every: 1, samples: make([]Sample, 0, maxSamples)}
}

// take samples once.
func (m *meter) take() Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Sample{Seconds: time.Since(m.start).Seconds(), RSS: run.Resident(), Live: m.live()}
	m.peak = max(m.peak, s.RSS)
	if m.taken++; m.taken%m.every != 0 {
		return s
	}
	if len(m.samples) == maxSamples {
		for i := range maxSamples / 2 {
			m.samples[i] = m.samples[2*i]
		}
		m.samples = m.samples[:maxSamples/2]
		m.every *= 2
	}
	m.samples = append(m.samples, s)
	return s
}

// takePeak returns the largest RSS seen since the last call.
func (m *meter) takePeak() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	peak := m.peak
	m.peak = 0
	return peak
}

// held returns the samples so far.
func (m *meter) held() []Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.samples)
}

// watch samples until stop is called, and calls each after every sample.
func (m *meter) watch(each func(Sample)) (stop func()) {
	return process.Every(20*time.Millisecond, func() { each(m.take()) })
}
