package main

import (
	"context"
	"fmt"
	"strings"
)

// joinComma joins the elements of a setting that is a list.
func joinComma(list []string) string { return strings.Join(list, ",") }

const aboutCompletion = `
Completion prints a script for a shell:

  source <(redlock completion bash)
  redlock completion zsh > "${fpath[1]}/_redlock"
  redlock completion fish > ~/.config/fish/completions/redlock.fish`

func completion(_ context.Context, env *environment, args []string) error {
	s := newSettings(env, "completion bash|zsh|fish", aboutCompletion)
	rest, err := s.parse(args)
	if err != nil {
		return err
	}
	var names []string
	for _, sub := range subcommands {
		names = append(names, sub.name)
	}
	words := strings.Join(names, " ")
	switch strings.Join(rest, " ") {
	case "bash":
		fmt.Fprintf(env.out, "complete -W %q redlock\n", words)
	case "zsh":
		fmt.Fprintf(env.out, "#compdef redlock\n_arguments '1:command:(%s)' '*::argument:_files'\n", words)
	case "fish":
		fmt.Fprintf(env.out, "complete -c redlock -n __fish_use_subcommand -xa %q\n", words)
	default:
		return usage("completion wants bash, zsh or fish")
	}
	return nil
}
