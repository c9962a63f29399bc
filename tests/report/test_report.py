import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import popcd
from popcd.cli import main
from popcd.experiments.paper import MIXTURE_1, POP_1, specifications
from popcd.experiments.store import Job, Store
from popcd.report.document import Heading, Table, Text, html, write_markdown
from popcd.report.figures import image, tiles
from popcd.report.reproduction import document

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of made-up results of Figures 1 and 3 and of Table 1, with machines."""
    store = Store.open(tmp_path_factory.mktemp("results") / "out", "quick")
    rng = np.random.default_rng(0)
    for experiment in ("figure1", "figure3", "table1"):
        for spec in specifications(experiment, "quick"):
            for seed in range(2):
                if experiment == "table1":
                    numbers = dict.fromkeys(("bias_corrected", "bias_stderr", "variance_stderr", "noise_floor"), 1e-4)
                    result = {"bias": rng.random(), "variance": rng.random(), "ess": 9.0, "truth": "exact", **numbers}
                else:
                    spec = replace(spec, iterations=300, evaluate_every=100)
                    result = {"curve": {"log_likelihood": sorted(-10 * rng.random(3))}}
                store.write(Job(spec, seed), {"rows": 32, "sha256": "ab" * 32}, result, seconds=36.0)
            if experiment == "figure1" and spec.algorithm in (POP_1, MIXTURE_1):
                popcd.save(popcd.RBM.create(16, 16), store.model(f"{spec.name}-seed-0"))
    (store.directory / "notes.md").write_text("A <b>reader's</b> words.\n\n- one\n- two\n")
    return store.directory


@pytest.fixture(scope="module")
def page(folder):
    result = CliRunner().invoke(main, ["report", str(folder)])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{folder / 'report.html'}\n"
    return (folder / "report.html").read_text()


def test_the_page_is_well_formed_and_needs_nothing_else(page):
    class Balance(HTMLParser):
        open, sources = [], []

        def handle_starttag(self, tag, attributes):
            found = dict(attributes)
            self.sources += [found[name] for name in ("src", "href") if name in found]
            if tag not in ("meta", "link", "img"):
                self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert all(source.startswith("data:") for source in balance.sources)
    assert "@import" not in page
    assert "url(" not in page


def test_the_page_has_claims_figures_table_machines_and_settings(page):
    for words in (
        "s claims</h2>",
        "not run",
        "Figure 1",
        "Figure 3",
        "Table 1",
        "Filters and samples",
        "Settings",
        "SHA-256",
    ):
        assert words in page
    assert "A &lt;b&gt;reader&#x27;s&lt;/b&gt; words." in page
    assert page.count("<img") == 2 + 2 * 2 * 2
    assert "0.0243" in page  # a published figure


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
@pytest.mark.parametrize("width", [400, 1200])
def test_a_browser_shows_all_images_and_nothing_overflows(page, tmp_path, width):
    """The page in a frame of a phone's width, which a script around it measures."""
    script = """
      const frame = document.querySelector('iframe');
      frame.onload = () => {
        const inside = frame.contentDocument;
        const images = [...inside.images].map(image => image.naturalWidth);
        document.title = 'done';
        document.querySelector('pre').textContent = JSON.stringify(
          {width: inside.documentElement.scrollWidth, images, headings: inside.querySelectorAll('h2').length});
      };
      frame.srcdoc = PAGE;
    """.replace("PAGE", json.dumps(page).replace("</", "<\\/"))
    around = tmp_path / "around.html"
    frame = f'<iframe style="width:{width}px;height:800px;border:0"></iframe><pre></pre>'
    around.write_text(f'<meta charset="utf-8">{frame}<script>{script}</script>')
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=10000"]
    done = subprocess.run(
        [CHROMIUM, *flags, f"--user-data-dir={tmp_path}/profile", "--dump-dom", around.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "CONSOLE" not in done.stderr
    found = json.loads(re.search(r"<pre>(\{.*?\})</pre>", done.stdout).group(1))
    assert found["width"] <= width
    assert len(found["images"]) == 10
    assert min(found["images"]) > 0
    assert found["headings"] >= 6


def test_markdown_has_the_same_parts_and_its_pictures_beside_it(folder, tmp_path):
    target = tmp_path / "docs" / "page.md"
    assert CliRunner().invoke(main, ["report", str(folder), "--out", str(target)]).exit_code == 0
    text = target.read_text()
    for name in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (target.parent / name).read_bytes().startswith(b"\x89PNG")
    assert "# Population Contrastive Divergence" in text
    assert "| the paper says | where | here | measured |" in text


def test_damaged_results_are_left_out_and_counted(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    next(copy.glob("table1/*.json")).write_text("{")
    assert CliRunner().invoke(main, ["report", str(copy)]).exit_code == 0
    assert "1 damaged files are left out" in (copy / "report.html").read_text()


def test_bad_folders_and_endings_are_named(tmp_path):
    result = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert result.exit_code == 1
    assert "expected the --out folder of popcd reproduce" in result.output
    result = CliRunner().invoke(main, ["report", str(tmp_path), "--out", "page.pdf"])
    assert result.exit_code == 2
    assert "must end in .html or .md" in result.output


def test_text_of_people_and_of_tables_is_escaped():
    page = html("<t>", [Heading("a < b"), Text("x & y\nz\n\n- <i>\n- j"), Table(("<c>",), [("<v>",)])])
    for words in (
        "<title>&lt;t&gt;",
        "<h2>a &lt; b</h2>",
        "<p>x &amp; y z</p>",
        "<li>&lt;i&gt;</li><li>j</li>",
        "&lt;c&gt;",
        "&lt;v&gt;",
    ):
        assert words in page


def test_the_same_figure_gives_the_same_bytes():
    one, two = (image(tiles(np.eye(4), (2, 2), 2, "t", symmetric=True), kind) for kind in ("png", "png"))
    assert one == two
    one, two = (image(tiles(np.eye(4), (2, 2), 2, "t", symmetric=True), kind) for kind in ("svg", "svg"))
    assert one == two


def test_markdown_tables_line_up(tmp_path):
    write_markdown(tmp_path / "a.md", [Table(("name", "n"), [("x", "1")])])
    assert (tmp_path / "a.md").read_text() == "| name | n |\n| --- | ---: |\n| x | 1 |\n"


def test_the_committed_page_is_made_from_the_committed_results(tmp_path):
    root = Path(__file__).parents[2]
    write_markdown(tmp_path / "reproduction.md", document(root / "results"))
    assert (tmp_path / "reproduction.md").read_text() == (root / "docs" / "reproduction.md").read_text()
    for picture in (tmp_path / "reproduction").iterdir():
        assert (root / "docs" / "reproduction" / picture.name).exists()
