// Package beamsort sorts in Apache Beam's Go SDK what no worker's memory holds.
//
//   - [SortValues] passes over the values of one key in order, in a DoFn behind a GroupByKey.
//   - [SortFiles] sorts the lines of files to parts that are in order too.
//
// Both sort by [extsort], in memory that is bounded and outside of the Go heap,
// and take temporary files for what does not fit. They run on any runner:
// embedded on Prism, on Flink, Spark or Dataflow. The command below
// cmd/beamsort is SortFiles with a flag for the runner.
package beamsort
