// Beamsort sorts the lines of files by their bytes, on any runner of Apache Beam:
//
//	beamsort --input '/data/*.txt' --output /data/sorted
//	beamsort --input '/nfs/*.txt' --output /nfs/sorted --runner flink --endpoint localhost:8099 --environment_type LOOPBACK
//	beamsort --input 'gs://b/*.txt' --output gs://b/sorted --runner dataflow --project p --region r --staging_location gs://b/staging
//
// Without --runner it runs in this process. The output files are numbered in their order.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"
	"github.com/freehold-go/freehold/beamsort"
)

func main() {
	var o beamsort.Options
	input := flag.String("input", "", "`glob` of the files to sort")
	output := flag.String("output", "", "`prefix` of the names of the sorted files")
	flag.IntVar(&o.Parts, "parts", 16, "write `n` files")
	flag.IntVar(&o.MemoryBytes, "memory", 256<<20, "sort each part in `bytes` of memory")
	flag.StringVar(&o.Temp, "temp", "", "`folder` for temporary files that all workers share (default: beside the output)")
	flag.StringVar(&o.LocalTemp, "local_temp", "", "`folder` on each worker for parts that exceed the memory (default: the system's)")
	flag.Parse()
	beam.Init()
	if *input == "" || *output == "" {
		log.Fatal("beamsort: --input and --output are needed")
	}
	p, s := beam.NewPipelineWithRoot()
	beamsort.SortFiles(s, *input, *output, &o)
	if err := beamx.Run(context.Background(), p); err != nil {
		log.Fatalf("beamsort: %v", err)
	}
}
