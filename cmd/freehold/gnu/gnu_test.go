package gnu

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/sysmem"
)

// sorted returns what lines are in the order of flags.
func sorted(args []string, input string) (string, error) {
	var flags struct {
		Order
		Unique         Switch `short:"u"`
		Stable         Switch `short:"s"`
		ZeroTerminated Switch `short:"z"`
	}
	parser, err := kong.New(&flags)
	if err != nil {
		return "", err
	}
	if _, err := parser.Parse(args); err != nil {
		return "", err
	}
	key, err := flags.KeyFunc()
	if err != nil {
		return "", err
	}
	end := "\n"
	if flags.ZeroTerminated {
		end = "\x00"
	}
	compare := func(a, b string) (c int) {
		if key != nil {
			c = bytes.Compare(key(nil, []byte(a)), key(nil, []byte(b)))
		}
		if c == 0 && (key == nil || !bool(flags.Stable || flags.Unique)) {
			c = strings.Compare(a, b)
		}
		if flags.Reverse {
			c = -c
		}
		return c
	}
	lines := strings.Split(strings.TrimSuffix(input, end), end)
	slices.SortStableFunc(lines, compare)
	if flags.Unique {
		lines = slices.CompactFunc(lines, func(a, b string) bool { return compare(a, b) == 0 })
	}
	return strings.Join(lines, end) + end, nil
}

const hugeNumber = "9223372036854775807" // math.MaxInt64

var digits126 = strings.Repeat("9", 126)

// What GNU sort 9.1 writes in the C locale.
var sortTable = []struct {
	why   string
	args  []string
	input string
	want  string
}{
	// Where keys begin and end.
	{"F.0 is the end of field F", []string{"-s", "-k2,2.0"}, "x b\ny a\n", "y a\nx b\n"},
	{"F.0 is not beyond it", []string{"-s", "-k1,1.0"}, "a 2\na 1\n", "a 2\na 1\n"},
	{"a b of the second place skips blanks there", []string{"-s", "-k1.1,2.1b"}, "a  a\na   b\n", "a   b\na  a\n"},
	{"one of the first place does not", []string{"-s", "-k1.1b,2.1"}, "a  a\na   b\n", "a  a\na   b\n"},
	{"a b of the first place skips blanks there", []string{"-s", "-k2.1b,2.1b"}, "x   b\nx a\n", "x a\nx   b\n"},
	{"a newline is a blank", []string{"-z", "-s", "-k2"}, "x\nb\x00y\na\x00", "y\na\x00x\nb\x00"},
	{"a tab is a blank", []string{"-s", "-k2"}, "x\tb\ny\ta\n", "y\ta\nx\tb\n"},
	{"a character far beyond the line is its end", []string{"-s", "-k3." + hugeNumber}, "a b d\na b c\n", "a b d\na b c\n"},
	{"so it is of the second place", []string{"-s", "-k1,3." + hugeNumber}, "a b d\na b c\n", "a b c\na b d\n"},
	{"a field far beyond the line is empty", []string{"-s", "-k" + hugeNumber + "9"}, "b\na\n", "b\na\n"},
	{"numbers may follow blanks", []string{"-s", "-k \t2,\n2"}, "x b\ny a\n", "y a\nx b\n"},
	{"a key that ends before it begins is empty", []string{"-s", "-k3,1"}, "x b\ny a\n", "x b\ny a\n"},
	{"a field ends before its separator", []string{"-s", "-t:", "-k1,1"}, "ab:\na:\na\x01:\n", "a:\na\x01:\nab:\n"},

	// Which characters count.
	{"-i drops what is beyond ~", []string{"-i", "-s"}, "b\n\x7fa\n", "\x7fa\nb\n"},
	{"-i keeps ~", []string{"-i", "-s"}, "a~\na\n", "a\na~\n"},
	{"-i keeps a space", []string{"-i", "-s"}, "b\n b\na\n", " b\na\nb\n"},
	{"-i drops a tab", []string{"-i", "-s"}, "b\n\tc\na\n", "a\nb\n\tc\n"},
	{"-f folds z", []string{"-f", "-s"}, "z\nZ\n", "z\nZ\n"},
	{"-f folds a", []string{"-f", "-s"}, "a\nA\n", "a\nA\n"},
	{"-f leaves {", []string{"-f", "-s"}, "{\nz\n[\n", "z\n[\n{\n"},
	{"-d keeps Z", []string{"-d", "-s"}, "Z\nA\n", "A\nZ\n"},
	{"-d keeps A", []string{"-d", "-s"}, "B\nAb\n", "Ab\nB\n"},
	{"-d keeps z", []string{"-d", "-s"}, "z\na\n", "a\nz\n"},
	{"-d keeps a", []string{"-d", "-s"}, "b\nab\n", "ab\nb\n"},
	{"-d keeps 0", []string{"-d", "-s"}, "a\n0b\n", "0b\na\n"},
	{"-d keeps 9", []string{"-d", "-s"}, "a\n9b\n", "9b\na\n"},
	{"-d keeps a tab", []string{"-d", "-s"}, "a\n\tb\n", "\tb\na\n"},
	{"-d drops what is beside them", []string{"-d", "-s"}, "/b\n:a\n@c\n[a\n`b\n{a\n", ":a\n[a\n{a\n/b\n`b\n@c\n"},

	// Numbers.
	{"zeros after a fraction do not count", []string{"-n", "-u"}, "0\n0.00\n-0.0\n.0\n", "0\n"},
	{"nor do they behind other digits", []string{"-n", "-u"}, "1.50\n1.5\n01.500\n", "1.50\n"},
	{"a number of 126 digits", []string{"-n", "-s"}, "1" + strings.Repeat("0", 126) + "\n" + digits126 + "\n" + digits126[1:] + "\n",
		digits126[1:] + "\n" + digits126 + "\n1" + strings.Repeat("0", 126) + "\n"},
	{"a negative one", []string{"-n", "-s"}, "-" + digits126 + "\n-1" + strings.Repeat("0", 126) + "\n", "-1" + strings.Repeat("0", 126) + "\n-" + digits126 + "\n"},
	{"a pair of zeros is no end", []string{"-k1,1n", "-k2,2", "-s"}, "1000001 a\n1000000 b\n100 z\n", "100 z\n1000000 b\n1000001 a\n"},
	{"fractions that begin with zeros", []string{"-n", "-s"}, "0.01\n0.001\n0.1\n0.0101\n", "0.001\n0.01\n0.0101\n0.1\n"},
	{"a minus is one character, before the digits", []string{"-n", "-s"}, "- 5\n--5\n-.5\n-5\n", "-5\n-.5\n- 5\n--5\n"},
	{"a number ends", []string{"-n", "-s"}, "2x9\n1,5\n1.2.9\n1.1\n", "1,5\n1.1\n1.2.9\n2x9\n"},

	// The whole order.
	{"-r of a key alone is its own", []string{"-k1,1r", "-k2,2n"}, "a 2\na 1\nb 1\n", "b 1\na 1\na 2\n"},
	{"-r is not that of a key with options, but of the last resort", []string{"-r", "-k1,1b"}, "a 1\nb 1\na 2\n", "a 2\na 1\nb 1\n"},

	// Each flag.
	{"", []string{"-n"}, "10\n9\n-1\n-0\n0.5\n.25\nx\n 3\n", "-1\n-0\nx\n.25\n0.5\n 3\n9\n10\n"},
	{"", []string{"-n"}, "100000000000000000000000000000000000000001\n100000000000000000000000000000000000000000.9\n", "100000000000000000000000000000000000000000.9\n100000000000000000000000000000000000000001\n"},
	{"", []string{"-n"}, "9\n10\n007\n", "007\n9\n10\n"},
	{"", []string{"-rn"}, "1\n10\n9\n", "10\n9\n1\n"},
	{"", []string{"-n", "-s"}, "1 b\n1 a\n0\n", "0\n1 b\n1 a\n"},
	{"", []string{"-n", "-u"}, "1 b\n1 a\n01\n0\n", "0\n1 b\n"},
	{"", []string{"-f"}, "b\nA\na\nB\n", "A\na\nB\nb\n"},
	{"", []string{"-fs"}, "b\nA\na\nB\n", "A\na\nb\nB\n"},
	{"", []string{"-b"}, "  b\n a\nc\n", " a\n  b\nc\n"},
	{"", []string{"-k2"}, "a 2\nb 1\n", "b 1\na 2\n"},
	{"", []string{"-k", "2,2n"}, "a 10\nb 9\n", "b 9\na 10\n"},
	{"", []string{"-k2,2nr", "-k1,1"}, "b 1\na 1\nc 2\n", "c 2\na 1\nb 1\n"},
	{"", []string{"-t,", "-k2"}, "a,2\nb,1\nc\n", "c\nb,1\na,2\n"},
	{"", []string{"-t=", "-k2"}, "a=2\nb=1\n", "b=1\na=2\n"},
	{"", []string{"-k1.2,1.3"}, "xbc\nxab\n", "xab\nxbc\n"},
	{"", []string{"-r", "-k1,1n"}, "1 a\n2 b\n1 b\n", "1 b\n1 a\n2 b\n"},
	{"", []string{"-k1,1r"}, "a 1\nb 1\na 0\n", "b 1\na 0\na 1\n"},
	{"", []string{"-k2,1"}, "b 1\na 2\n", "a 2\nb 1\n"},
	{"", []string{"-d"}, "-b\na\n", "a\n-b\n"},
	{"", []string{"-i"}, "\x01b\na\n", "a\n\x01b\n"},
	{"", []string{"-k+2,+2"}, "a 2\nb 1\n", "b 1\na 2\n"},
	{"", []string{"-t,", "-t,", "-k2"}, "a,2\nb,1\n", "b,1\na,2\n"},
}

func TestOrder(t *testing.T) {
	for _, tt := range sortTable {
		if got, err := sorted(tt.args, tt.input); err != nil || got != tt.want {
			t.Errorf("%s: %q of %q gave %q, %v, want %q", tt.why, tt.args, tt.input, got, err, tt.want)
		}
	}
}

// Flags that GNU sort refuses, too.
var refusals = []struct {
	args []string
	want string
}{
	{[]string{"-k1,0"}, "fields are counted from 1"},
	{[]string{"-k1,1.x"}, "a number is missing after the period"},
	{[]string{"-k1.x"}, "a number is missing after the period"},
	{[]string{"-k1,1q"}, "its options are of"},
	{[]string{"-t", ""}, "the separator is missing"},
	{[]string{"-ni"}, "options -in are incompatible"},
	{[]string{"-k1n", "-k2nd"}, "options -dn are incompatible"},
	{[]string{"-t:", "-t,"}, "only one is allowed"},
	{[]string{"-k", "0"}, "fields are counted from 1"},
	{[]string{"-k", "x"}, "a number is missing"},
	{[]string{"-k", "1.0"}, "characters are counted from 1"},
	{[]string{"-k", "1,"}, "a number is missing after the comma"},
	{[]string{"-k", "1g"}, "its options are of b, d, f, i, n and r; GNU sort's g,"},
	{[]string{"-k", "1,1V"}, "its options are of b, d, f, i, n and r; GNU sort's g,"},
	{[]string{"-k", "0:8"}, "OFFSET:LENGTH is a key of --fixed"},
	{[]string{"-t", "ab"}, "the separator is one character"},
	{[]string{"-dn"}, "options -dn are incompatible"},
}

func TestRefusals(t *testing.T) {
	for _, tt := range refusals {
		if _, err := sorted(tt.args, "a\n"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.want)
		}
	}
}

// What the tables want is what GNU sort does.
func TestTablesAreOfGNU(t *testing.T) {
	path, err := exec.LookPath("sort")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU coreutils")) {
		t.Skip("the system's sort is another one")
	}
	run := func(args []string, input string) (string, int) {
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		cmd.Stdin = strings.NewReader(input)
		out, _ := cmd.Output()
		return string(out), cmd.ProcessState.ExitCode()
	}
	for _, tt := range sortTable {
		if got, code := run(tt.args, tt.input); code != 0 || got != tt.want {
			t.Errorf("%q of %q: it gives %q, exit code %d, and the table has %q", tt.args, tt.input, got, code, tt.want)
		}
	}
	for _, tt := range refusals {
		if _, code := run(tt.args, "a\n"); code != 2 && !strings.Contains(tt.want, "GNU sort's g") {
			t.Errorf("%q: it ends with %d", tt.args, code)
		}
	}
}

// Keys cost memory. Whole lines have none, in either direction.
func TestWholeLinesHaveNoKey(t *testing.T) {
	for _, o := range []Order{{}, {Reverse: true}} {
		if key, err := o.KeyFunc(); err != nil || key != nil {
			t.Errorf("%+v: %v, with a key", o, err)
		}
	}
}

// No key of a number begins another number's key.
func TestKeysOfNumbersBeginNoOthers(t *testing.T) {
	const alphabet = "-. 00123456789"
	rng := rand.New(rand.NewPCG(1, 2))
	number := func() []byte {
		b := make([]byte, rng.IntN(200)>>rng.IntN(8))
		for i := range b {
			b[i] = alphabet[rng.IntN(len(alphabet))]
		}
		return b
	}
	for range 20_000 {
		a, b := number(), number()
		x, y := appendNumber(nil, a), appendNumber(nil, b)
		if !bytes.Equal(x, y) && (bytes.HasPrefix(x, y) || bytes.HasPrefix(y, x)) {
			t.Errorf("the key of %q and that of %q: one begins the other", a, b)
		}
	}
}

func TestSizes(t *testing.T) {
	const least = extsort.MinMemoryBytes
	total, _ := sysmem.Memory()
	tenth := 10 * (float64(total) / 100)
	if tenth > math.MaxInt/2 {
		tenth = 0
	}
	tests := []struct {
		text Size
		want int // 0 means an error
	}{
		{"262144b", least}, {"262143b", 0},
		{"256", least}, {"255", 0}, {"256K", least}, {"256k", least}, {"256KiB", least},
		{"1M", 1 << 20}, {"1m", 1 << 20}, {"1MiB", 1 << 20}, {".5M", 1 << 19}, {"0.25M", least},
		{"0.5G", 1 << 29}, {"0.5g", 1 << 29}, {"0.5GiB", 1 << 29}, {"0.000244140625T", 1 << 28}, {"0.000244140625t", 1 << 28}, {"0.000244140625TiB", 1 << 28},
		{"10%", int(tenth)},
		{"0", 0}, {"", -1}, {"M", 0}, {"1..5M", 0}, {"-1M", 0}, {"1E", 0}, {"1MM", 0}, {"99999999T", 0},
	}
	for _, tt := range tests {
		got, err := tt.text.Bytes()
		switch {
		case tt.want == -1:
			if err != nil || got < leastDefault {
				t.Errorf("the default is %d, %v, want %d at least", got, err, leastDefault)
			}
		case (err == nil) != (tt.want != 0) || err == nil && got != tt.want:
			t.Errorf("-S %s: %d, %v, want %d", tt.text, got, err, tt.want)
		}
	}
}
