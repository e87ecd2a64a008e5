// Package metrics has the numbers a client reports about itself: durations counted in fixed
// buckets, and all counts as text for Prometheus.
//
// The engine and the lines count into a [Histogram], at the cost of an addition or two and no
// allocation. The root package's Stats, a snapshot of all counts, is converted to this package's
// [Stats] with the same fields, and written by [Write].
//
// Names are part of the API: they start with "redlock_", have the unit at their end, and do not
// change. A new metric gets a new name. The lists are in write.go and text.go.
package metrics
