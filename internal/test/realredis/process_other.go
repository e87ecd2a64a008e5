//go:build !unix

package realredis

import (
	"errors"
	"os"
	"os/exec"
)

func dieWithParent(*exec.Cmd) {}

func freeze(*os.Process) error { return errors.ErrUnsupported }

func unfreeze(*os.Process) error { return errors.ErrUnsupported }
