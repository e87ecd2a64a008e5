// Package errno names errors of connections as the system gives them. On Windows the constants of package syscall are
// numbers never returned by a socket.
package errno
