// Package realredis starts real Redis or Valkey servers for tests and for the
// benchmarks, stops and continues them, kills them, and brings them back on
// the same port.
//
// It takes redis-server or valkey-server from PATH; the environment variable
// REDLOCK_REDIS_SERVER may name another program, with arguments. Where there
// is no server a test is skipped, unless REDLOCK_REQUIRE_SERVERS is 1, which
// turns that into a failure.
//
// The servers keep nothing on disk, listen on loopback only, and do not
// outlive the process that started them (on Linux not even if that is killed).
package realredis
