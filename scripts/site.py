"""What the site needs beside docs, which are pages of a forge first: see mkdocs.yml."""

import posixpath
import re
import shutil
import subprocess
from pathlib import Path

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File

log = get_plugin_logger("site")
CODE = re.compile(r"(?ms)(^```.*?^```$|`[^`\n]+`)")
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")
HTML_LINK = re.compile(r'((?:href|src|srcset)=")docs/([^"]+")')
BADGES = re.compile(r"(?m)^\[!\[.*badge.*$")
MARK = re.compile(r"(?m)^<!-- [\w ]+ -->$")  # around what tests write


def outside_code(change, markdown):
    parts = CODE.split(markdown)
    parts[::2] = map(change, parts[::2])
    return "".join(parts)


def on_config(config):
    """The packages' own documentation becomes pages too."""
    root = Path(config.config_file_path).parent
    pages = root / ".site/packages"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    subprocess.run(["go", "run", "scripts/packages.go", pages], cwd=root, check=True)
    config.nav.append({"Reference": [{p.stem.replace(".", "/"): "reference/" + p.name} for p in sorted(pages.iterdir(), key=lambda p: p.stem.split("."))]})


def on_files(files, config):
    for page in sorted((Path(config.config_file_path).parent / ".site/packages").iterdir()):
        files.append(File.generated(config, "reference/" + page.name, abs_src_path=str(page)))


def on_pre_build(config):
    """The links of pages outside of docs lead to files too."""
    root = Path(config.config_file_path).parent
    for page in [*root.glob("*.md"), *root.glob("examples/**/*.md"), *root.glob("lab/**/*.md")]:
        for match in LINK.finditer(CODE.sub("", page.read_text(encoding="utf-8"))):
            if not (page.parent / match[2]).exists():
                log.warning("%s has a link to %s, which is not there", page.relative_to(root), match[2])


def on_page_markdown(markdown, page, config, files):
    root = Path(config.config_file_path).parent
    if page.file.src_uri.startswith("reference/"):
        return markdown
    folder = posixpath.dirname("docs/" + page.file.src_uri)
    start = page.file.src_uri == "README.md"
    if start:  # the start is the repository's, without the badges of other hosts
        markdown = BADGES.sub("", (root / "README.md").read_text(encoding="utf-8"))
        markdown = HTML_LINK.sub(lambda match: match[1] + match[2].replace(".md", "/"), markdown)

    def outward(match):
        """A link to a file of the repository that is no page leads to the forge."""
        before, target, after = match.groups()
        path = posixpath.normpath(posixpath.join("" if start else folder, target))
        is_folder = (root / path).is_dir()
        if path.startswith("docs/"):
            return before + posixpath.relpath(path, folder) + ("/README.md" if is_folder else "") + after
        if not (root / path).exists():
            log.warning("%s has a link to %s, which is not there", page.file.src_uri, target)
        return f"{before}{config.repo_url.rstrip('/')}/{'tree' if is_folder else 'blob'}/main/{path}{after}"

    return outside_code(lambda text: MARK.sub("", LINK.sub(outward, text)), markdown)
