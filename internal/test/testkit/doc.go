// Package testkit has the shared parts of all packages' tests: bounded waiting, both socket paths,
// processes of their own, a log sink, a text client, counts of goroutines and descriptors. It
// imports no package of the project, so each of them can use it in its own tests. Package cluster,
// below, adds fake masters with a client of them.
package testkit
