package place

import (
	"cmp"
	"errors"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// mask has a bit for each processor, as the kernel wants it.
type mask [16]uint64

func maskOf(processors []int) (m mask) {
	for _, n := range processors {
		if n < len(m)*64 {
			m[n/64] |= 1 << (n % 64)
		}
	}
	return m
}

func (m mask) processors() (all []int) {
	for i, word := range m {
		for ; word != 0; word &= word - 1 {
			all = append(all, i*64+bits.TrailingZeros64(word))
		}
	}
	return all
}

// affinity gets or sets the processors of the thread that calls it.
func affinity(call uintptr, m *mask) error {
	_, _, errno := syscall.RawSyscall(call, 0, unsafe.Sizeof(*m), uintptr(unsafe.Pointer(m)))
	if errno != 0 {
		return os.NewSyscallError("affinity", errno)
	}
	return nil
}

// available are the processors of this process, those of one core beside each other.
func available() []int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var m mask
	if affinity(syscall.SYS_SCHED_GETAFFINITY, &m) != nil {
		return nil
	}
	all := m.processors()
	core := func(n int) (socket, core int) {
		read := func(file string) int {
			text, _ := os.ReadFile("/sys/devices/system/cpu/cpu" + strconv.Itoa(n) + "/topology/" + file)
			id, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			return id
		}
		return read("physical_package_id"), read("core_id")
	}
	slices.SortStableFunc(all, func(a, b int) int {
		sa, ca := core(a)
		sb, cb := core(b)
		return cmp.Or(cmp.Compare(sa, sb), cmp.Compare(ca, cb))
	})
	return all
}

// on runs do, and what it starts, on some processors.
func on(processors []int, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before mask
	chosen := maskOf(processors)
	if err := affinity(syscall.SYS_SCHED_GETAFFINITY, &before); err != nil {
		return err
	}
	if err := affinity(syscall.SYS_SCHED_SETAFFINITY, &chosen); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, affinity(syscall.SYS_SCHED_SETAFFINITY, &before))
}

// restart begins the program again. A program keeps the processors of the thread that calls exec, so all of its
// threads have them, and GOMAXPROCS is their number.
func restart(h halves) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Setenv(env, h.String()); err != nil {
		return err
	}
	return on(h.clients, func() error { return syscall.Exec(self, os.Args, os.Environ()) })
}
