// Package errno names errors of connections as the system gives them. On Windows the constants of package syscall are
// numbers that no socket returns.
package errno
