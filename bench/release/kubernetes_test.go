package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// TestKubernetes: the manifests have no field that Kubernetes does not know, their parts fit each other, and redlock knows the
// arguments that they give it.
func TestKubernetes(t *testing.T) {
	names, err := filepath.Glob("kubernetes/*.yaml")
	require.NoError(t, err)
	require.Len(t, names, 3)
	kinds := map[string]int{}
	var labels []map[string]string // of pods
	var selectors []map[string]string
	var pods []core.PodSpec
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, document := range bytes.Split(text, []byte("\n---\n")) {
			var kind struct{ APIVersion, Kind string }
			require.NoError(t, yaml.Unmarshal(document, &kind))
			kinds[kind.Kind]++
			decode := func(to any) {
				t.Helper()
				require.NoError(t, yaml.UnmarshalStrict(document, to), name)
			}
			switch kind.APIVersion + " " + kind.Kind {
			case "apps/v1 Deployment":
				var d apps.Deployment
				decode(&d)
				require.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
				pods, labels = append(pods, d.Spec.Template.Spec), append(labels, d.Spec.Template.Labels)
			case "batch/v1 CronJob":
				var c batch.CronJob
				decode(&c)
				pods = append(pods, c.Spec.JobTemplate.Spec.Template.Spec)
			case "policy/v1 PodDisruptionBudget":
				var b policy.PodDisruptionBudget
				decode(&b)
				selectors = append(selectors, b.Spec.Selector.MatchLabels)
			case "v1 Service":
				var s core.Service
				decode(&s)
				selectors = append(selectors, s.Spec.Selector)
			default:
				t.Errorf("%s: an unknown kind: %v", name, kind)
			}
		}
	}
	require.Equal(t, map[string]int{"Deployment": 2, "CronJob": 1, "PodDisruptionBudget": 1, "Service": 1}, kinds)
	for _, s := range selectors {
		require.Contains(t, labels, s)
	}
	m := makeRelease(t)
	program := filepath.Join(t.TempDir(), "redlock")
	require.NoError(t, os.WriteFile(program, m.programs[here], 0o755))
	used := 0
	for _, pod := range pods {
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			words := append(c.Command, c.Args...)
			if len(words) > 0 && words[0] == "redlock" {
				words = words[1:]
				words[len(words)-1] = "/bin/true" // its own program is in its image
			}
			if !strings.Contains(c.Image, "redlock:") && len(c.Command) == 0 {
				continue
			}
			used++
			require.Equal(t, "redlock", c.VolumeMounts[0].Name)
			require.Equal(t, pod.Volumes[0].Name, c.VolumeMounts[0].Name)
			require.Equal(t, int32(0o440), *pod.Volumes[0].Secret.DefaultMode)
			// The settings are read before the file, which is not here.
			env := []string{} // and nothing of the test's own
			for _, v := range c.Env {
				env = append(env, v.Name+"="+v.Value)
			}
			run := func() ([]byte, error) {
				cmd := exec.Command(program, words...)
				cmd.Env = env
				return cmd.CombinedOutput()
			}
			out, err := run()
			for errors.Is(err, syscall.ETXTBSY) { // a program that another test starts has not closed its file yet
				out, err = run()
			}
			require.Contains(t, string(out), "/etc/redlock/redlock.conf", "%s: %v", words, err)
			require.NotContains(t, string(out), "setting", "%s", words)
		}
	}
	require.Equal(t, 3, used)
	require.Error(t, yaml.UnmarshalStrict([]byte("apiVersion: v1\nkind: Service\nspec: {selektor: {}}"), &core.Service{}))
}
