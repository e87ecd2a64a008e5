package main

import (
	"context"
	"fmt"
	"strings"
)

const aboutCompletion = `
Completion prints a script for a shell, which completes commands and their settings:

  source <(redlock completion bash)
  redlock completion zsh > "${fpath[1]}/_redlock"
  redlock completion fish > ~/.config/fish/completions/redlock.fish`

// shells has the text before the commands, the text for each command with its settings, and the text after them.
var shells = map[string]struct{ begin, each, end string }{
	"bash": {"_redlock() {\n  local words='%s'\n  (( COMP_CWORD > 1 )) && case ${COMP_WORDS[1]} in\n",
		"    %s) words='%s' ;;\n", "    *) words= ;;\n  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\ncomplete -o default -F _redlock redlock\n"},
	"zsh": {"#compdef redlock\nif (( CURRENT == 2 )); then\n  compadd %s\nelif [[ $PREFIX == -* ]]; then\n  case $words[2] in\n",
		"    %s) compadd -- %s ;;\n", "  esac\nelse\n  _files\nfi\n"},
	"fish": {"complete -c redlock -n __fish_use_subcommand -xa '%s'\n",
		"complete -c redlock -n '__fish_seen_subcommand_from %s' -a '%s'\n", ""},
}

func completion(_ context.Context, env *environment, args []string) error {
	s := newSettings(env, "completion bash|zsh|fish", aboutCompletion)
	rest, err := s.parse(args)
	if err != nil {
		return err
	}
	shell, known := shells[strings.Join(rest, " ")]
	if !known {
		return usage("completion wants bash, zsh or fish")
	}
	var names []string
	for _, sub := range subcommands {
		names = append(names, sub.name)
	}
	fmt.Fprintf(env.out, shell.begin, strings.Join(names, " "))
	for _, sub := range subcommands {
		var flags []string
		for i := range table {
			if table[i].isOf(sub.name) {
				flags = append(flags, "-"+table[i].name)
			}
		}
		fmt.Fprintf(env.out, shell.each, sub.name, strings.Join(flags, " "))
	}
	fmt.Fprint(env.out, shell.end)
	return nil
}
