// Package beamsort sorts data sets beyond the memory of a worker in Apache Beam's Go SDK.
//
//   - [SortValues] iterates over the values of one key in order, in a DoFn behind a GroupByKey.
//   - [SortFiles] sorts the lines of files into parts that are in order too.
//
// Both sort by [extsort], in bounded memory outside of the Go heap, and spill to temporary
// files. They run on any runner: embedded on Prism, on Flink, Spark or Dataflow. The command
// below cmd/beamsort is SortFiles with a flag for the runner.
package beamsort
