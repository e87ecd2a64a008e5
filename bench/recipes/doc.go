// Package recipes connects redlock to the tools that programs use. Each file is to be copied, and stands
// alone unless its comment says otherwise; its test shows it at work. README.md lists them.
package recipes
