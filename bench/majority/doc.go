// Package majority has things other than locks on a majority of independent servers, by packages conn, quorum and resp
// alone: a leader by a script of its own, and a register that is read and repaired. Its tests run them on real servers.
package majority
