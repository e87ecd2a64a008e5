// Package realredis starts real Redis or Valkey servers for tests and for the benchmarks, stops and
// continues them, kills them, and brings them back on the same port.
//
// It takes redis-server or valkey-server from PATH; the environment variable REDLOCK_REDIS_SERVER
// may name another program, with arguments. Without a server a test is skipped; with
// REDLOCK_REQUIRE_SERVERS=1 it fails. REDLOCK_VALKEY9_SERVER and REDLOCK_REDIS8_SERVER name servers
// of further kinds, for tests that ask for one; without them these tests are skipped.
//
// The servers listen on loopback only. They keep nothing on disk unless asked to, and then no
// longer than until they are closed. They do not outlive the process that started them (on Linux
// not even if it is killed).
package realredis
