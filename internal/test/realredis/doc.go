// Package realredis starts real Redis or Valkey servers for tests and for the
// benchmarks, stops and continues them, kills them, and brings them back on
// the same port.
//
// It takes redis-server or valkey-server from PATH; the environment variable
// REDLOCK_REDIS_SERVER may name another program, with arguments. Where there
// is no server a test is skipped, unless REDLOCK_REQUIRE_SERVERS is 1, which
// turns that into a failure. REDLOCK_VALKEY9_SERVER and REDLOCK_REDIS8_SERVER
// name servers of further kinds, for tests that ask for one; where they are not
// set these tests are skipped.
//
// The servers listen on loopback only, keep nothing on disk unless they are
// asked to, and then no longer than until they are closed, and do not outlive
// the process that started them (on Linux not even if that is killed).
package realredis
