// The tests of arrow-go, on freehold.

package arrow_test

import (
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

// goAllocator replaces arrow-go's default allocator, which nearly all of its tests use.
const goAllocator = `package memory

import (
	"github.com/freehold-go/freehold"
	freeholdarrow "github.com/freehold-go/freehold/adapters/arrow"
)

type GoAllocator struct{}

var offHeap = freeholdarrow.New(freehold.Default())

func NewGoAllocator() *GoAllocator { return &GoAllocator{} }

func (*GoAllocator) Allocate(size int) []byte             { return offHeap.Allocate(size) }
func (*GoAllocator) Reallocate(size int, b []byte) []byte { return offHeap.Reallocate(size, b) }
func (*GoAllocator) Free(b []byte)                        { offHeap.Free(b) }
`

// lateReads are tests that read memory after its release. The collector keeps the memory for
// them; the edits make them copy it first.
var lateReads = []struct{ file, old, new string }{
	{"arrow/internal/testing/gen/random_array_gen.go", "lengths.NullBitmapBytes()),", "append([]byte(nil), lengths.NullBitmapBytes()...)),"},
	{"arrow/internal/testing/gen/random_array_gen.go", "lengths.Data().Buffers()[1].Bytes()),", "append([]byte(nil), lengths.Data().Buffers()[1].Bytes()...)),"},
	{"arrow/csv/reader_test.go", "append(strings, rec.Column(1).(*array.String).Value(0))", "append(strings, string([]byte(rec.Column(1).(*array.String).Value(0))))"},
	{"parquet/pqarrow/encode_arrow_test.go", "defer buf.Release()\n\treturn buf.Bytes()", "defer buf.Release()\n\treturn append([]byte(nil), buf.Bytes()...)"},
	{"parquet/file/streaming_page_test.go", "got = append(got, bin.Value(i))\n\t\t\t\t}\n\t\t\t\tchunk.Release()", "got = append(got, bytes.Clone(bin.Value(i)))\n\t\t\t\t}\n\t\t\t\tchunk.Release()"},
}

// withoutFiles are tests that need files outside of arrow-go's module: parquet-testing and
// arrow-testing.
const withoutFiles = "^(TestParquetTestingCSVWriter|TestCustomTypeConversion|Example_reader|TestArrowReaderAdHocRead.*|TestBadReader|TestByteStreamSplitEncodingFileRead|" +
	"TestDeltaByteArray|TestFileEncryptionDecryption|TestLZ4Raw.*|TestListColumns|TestRleBooleanEncodingFileRead|TestArrowReaderCanceledContext)$"

// The quarantine fills freed buffers, so a test that reads one fails.
func TestArrowsTests(t *testing.T) {
	t.Setenv("FREEHOLD_DEBUG", "quarantine=20000000")
	m := suite.Copy(t, "github.com/apache/arrow-go/v18")
	m.Write(t, "arrow/memory/go_allocator.go", goAllocator)
	for _, r := range lateReads {
		m.Edit(t, r.file, r.old, r.new)
	}
	m.Test(t, 10, "./arrow/memory")
	if !testing.Short() {
		m.Test(t, 1000, "-skip", withoutFiles, "./arrow", "./arrow/array/...", "./arrow/arrio", "./arrow/bitutil", "./arrow/compute/...", "./arrow/csv",
			"./arrow/extensions", "./arrow/ipc", "./arrow/math", "./arrow/memory/...", "./arrow/scalar", "./arrow/tensor", "./parquet/...")
	}
}
