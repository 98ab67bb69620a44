package main

import (
	"io"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// completionCommand prints a script that makes a shell complete freehold's commands and flags. The
// shell asks the program, and package cli answers.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCommand) Help() string {
	return examples(
		"source <(freehold completion bash)                      # in ~/.bashrc, with freehold in the PATH",
		"source <(freehold completion zsh)                       # in ~/.zshrc, after compinit",
		"freehold completion fish | source                       # in ~/.config/fish/config.fish",
	)
}

// completions has a script for each shell. Where freehold has no answer, the shell completes files.
var completions = map[string]string{
	"bash": "complete -o bashdefault -o default -C freehold freehold\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o bashdefault -o default -C freehold freehold\n",
	"fish": `complete -c freehold -a '(begin
    set -lx COMP_LINE (commandline -cp)
    freehold
end)'
`,
}

func (c *completionCommand) Run(s cli.Streams) error {
	_, err := io.WriteString(s.Out, completions[c.Shell])
	return err
}
