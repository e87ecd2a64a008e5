// Package metrics has what a client reports about itself as numbers: durations that are counted in
// fixed buckets, and all counts as text that Prometheus reads.
//
// The engine and the lines count into a [Histogram], which costs them an addition or two and no
// allocation. The root package's Stats, a snapshot of all counts, is converted to this package's
// [Stats], which has the same fields, and is written by [Write].
//
// Names are part of the API: they start with "redlock_", have the unit at their end, and do not
// change. What is new gets a new name. The table families in write.go is the list.
package metrics
