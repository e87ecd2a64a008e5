package workload

import (
	"hash/fnv"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Register is a resource that locks protect: for each key it refuses a token below the largest that it has seen. It is memory that
// all client processes share, which no fault touches. Keys are told apart by a hash.
type Register []atomic.Uint64

const registered = 1 << 16 // keys

// OpenRegister maps the register of a run, which is a file.
func OpenRegister(path string) (Register, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(registered * 8); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, registered*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&b[0])), registered), nil
}

// place is that of a key.
func place(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return h.Sum32() % registered
}

// Write shows a token, and reports whether the register accepts it.
func (r Register) Write(key string, token uint64) (accepted bool) {
	for largest := &r[place(key)]; ; {
		if seen := largest.Load(); token < seen {
			return false
		} else if largest.CompareAndSwap(seen, token) {
			return true
		}
	}
}
