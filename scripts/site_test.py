"""Tests of site.py, in the environment of make site: python3 scripts/site_test.py"""

import importlib.util
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace as New

spec = importlib.util.spec_from_file_location("pages", Path(__file__).with_name("site.py"))
pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pages)

README = """[![test](https://f/badge.svg)](https://f/test)
<a href="docs/x.md"><img src="docs/x.png"></a> [x](docs/x.md) [guides](docs/guides) [more](SECURITY.md)
"""


class Site(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ["README.md", "SECURITY.md", "docs/README.md", "docs/x.md", "docs/guides/README.md", "pkg/p.go"]:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text("")
        (self.root / "README.md").write_text(README)
        self.config = New(config_file_path=str(self.root / "mkdocs.yml"), repo_url="https://f/r/")

    def site(self, page, markdown=""):
        return pages.on_page_markdown(markdown, New(file=New(src_uri=page)), self.config, None)

    def test_links(self):
        for page, markdown, want in [
            ("x.md", "[a](guides/README.md#b)", "[a](guides/README.md#b)"),
            ("x.md", "[a](guides)", "[a](guides/README.md)"),
            ("guides/README.md", "[a](../x.md)", "[a](../x.md)"),
            ("x.md", "[a](../SECURITY.md#b)", "[a](https://f/r/blob/main/SECURITY.md#b)"),
            ("x.md", "[a](../pkg)", "[a](https://f/r/tree/main/pkg)"),
            ("x.md", "[a](https://g/h)", "[a](https://g/h)"),
            ("x.md", "`[a](../pkg)`", "`[a](../pkg)`"),
            ("x.md", "```\n[a](../pkg)\n```\n", "```\n[a](../pkg)\n```\n"),
            ("x.md", "<!-- guard -->\na\n<!-- end of guard -->", "\na\n"),
            ("reference/x.md", "[a](../../pkg)", "[a](../../pkg)"),
        ]:
            self.assertEqual(self.site(page, markdown), want)

    def test_start(self):
        want = '\n<a href="x/"><img src="x.png"></a> [x](x.md) [guides](guides/README.md) [more](https://f/r/blob/main/SECURITY.md)\n'
        self.assertEqual(self.site("README.md"), want)

    def test_missing(self):
        with self.assertLogs("mkdocs.plugins"):
            self.site("x.md", "[a](../none.md)")
        with self.assertNoLogs("mkdocs.plugins"):
            pages.on_pre_build(self.config)
        (self.root / "SECURITY.md").write_text("[a](docs/none.md)")
        with self.assertLogs("mkdocs.plugins"):
            pages.on_pre_build(self.config)


unittest.main()
