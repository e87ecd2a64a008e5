package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// style is how a driver looks on every plot, on a light and on a dark ground:
// ours in a red that is no other's, and bolder; the yardsticks without colour,
// and dashed; relatives in shades of one colour.
type style struct {
	driver      string
	light, dark string
	width       float64
	dashes      string
}

// styles are those of the drivers that are known, and behind them some for
// those that are not.
var styles = []style{
	{"redlock", "#d81159", "#ff4d8d", 3, ""},
	{"redlock-portable", "#e8749d", "#ffa3c2", 2, ""},
	{"redlock-async", "#8c0f4a", "#d9659b", 2, "2 3"},
	{"redlock-submit", "#8c0f4a", "#d9659b", 2, "8 3"},
	{"redlock-scripted", "#c2607f", "#e38aa8", 2, "2 3"},
	{"floor", "#222222", "#f2f2f2", 2, "7 4"},
	{"floor-goroutines", "#777777", "#aaaaaa", 2, "7 4"},
	{"floor-native", "#4d5a66", "#c3ced8", 2, "2 3"},
	{"autopipeline", "#1565c0", "#5aa2f5", 2, ""},
	{"autopipeline-quorum", "#56a5ec", "#a8d0fb", 2, ""},
	{"redsync-goredis", "#2e7d32", "#58b85d", 1.6, ""},
	{"redsync-goredis-ff", "#74b877", "#a9dcab", 1.6, ""},
	{"redsync-redigo", "#d35400", "#ff8a3c", 1.6, ""},
	{"redsync-redigo-ff", "#e8a33d", "#ffcf86", 1.6, ""},
	{"redsync-rueidis", "#6a1b9a", "#b06be0", 1.6, ""},
	{"redsync-rueidis-ff", "#b168c4", "#d9abe6", 1.6, ""},
	{"redislock", "#8d6e63", "#c0a095", 1.6, "2 3"},
	{"rueidislock", "#5f7d8c", "#9ab8c6", 1.6, "2 3"},
	{"", "#d81159", "#ff4d8d", 2.5, ""},
	{"", "#1565c0", "#5aa2f5", 2, ""},
	{"", "#2e7d32", "#58b85d", 2, ""},
	{"", "#d35400", "#ff8a3c", 2, ""},
	{"", "#6a1b9a", "#b06be0", 2, ""},
	{"", "#777777", "#aaaaaa", 2, "7 4"},
}

// class is the class of a driver that is the i-th of a plot.
func class(driver string, i int) string {
	if at := slices.IndexFunc(styles, func(s style) bool { return s.driver == driver }); at >= 0 {
		return fmt.Sprint("d", at)
	}
	unknown := slices.IndexFunc(styles, func(s style) bool { return s.driver == "" })
	return fmt.Sprint("d", unknown+i%(len(styles)-unknown))
}

// sheet is the style sheet of plots, on a page or alone.
func sheet() string {
	var light, dark, rest strings.Builder
	for i, s := range styles {
		fmt.Fprintf(&light, "--d%d:%s;", i, s.light)
		fmt.Fprintf(&dark, "--d%d:%s;", i, s.dark)
		fmt.Fprintf(&rest, ".d%d{color:var(--d%d)}.d%d .line{stroke-width:%g;stroke-dasharray:%s}\n", i, i, i, s.width, cmp.Or(s.dashes, "none"))
	}
	return ":root{color-scheme:light dark;--ink:#222;--soft:#666;--grid:#e6e6e6;--ground:#fff;--mark:#fdeaf1;--shade:#d32f2f1f;" + light.String() + "}\n" +
		"@media (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a3a8ae;--grid:#33373d;--ground:#15181c;--mark:#3a1c2a;--shade:#ff6b6b2b;" + dark.String() + "}}\n" +
		`.plot{background:var(--ground);font:11px system-ui,sans-serif}
.plot text{fill:var(--ink)} .plot .title{font-size:15px;font-weight:600} .plot .soft{fill:var(--soft);font-size:12px}
.plot .end{text-anchor:end} .plot .middle{text-anchor:middle}
.plot .grid{stroke:var(--grid)} .plot .axis{stroke:var(--soft);fill:none} .plot .shade{fill:var(--shade)}
.plot .line{stroke:currentColor;fill:none;stroke-linejoin:round} .plot .band{fill:currentColor;opacity:.16} .crowd .band{opacity:.07}
.plot .bar{stroke:currentColor;stroke-width:2;opacity:.5} .plot circle{fill:currentColor}
` + rest.String()
}
