// Beamsort sorts the lines of files by their bytes, on any runner of Apache Beam:
//
//	beamsort --input '/data/*.txt' --output /data/sorted
//	beamsort --input '/nfs/*.txt' --output /nfs/sorted --runner flink --endpoint localhost:8099 --environment_type LOOPBACK
//	beamsort --input 'gs://b/*.txt' --output gs://b/sorted --runner dataflow --project p --region r --staging_location gs://b/staging
//
// It runs in this process without --runner. The output is files whose names say their order.
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
	input := flag.String("input", "", "the files to sort, a `glob`")
	output := flag.String("output", "", "the `prefix` of the sorted files' names")
	flag.IntVar(&o.Parts, "parts", 16, "write `n` files")
	flag.IntVar(&o.MemoryBytes, "memory", 256<<20, "sort a part in `bytes` of memory")
	flag.StringVar(&o.Temp, "temp", "", "a `folder` that all workers share; beside the output without")
	flag.StringVar(&o.LocalTemp, "local_temp", "", "a worker's `folder` for parts larger than the memory")
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
