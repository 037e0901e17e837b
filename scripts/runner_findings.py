"""What the in-page runner says of small mistakes in L2's kernel: run, not written down.

python scripts/runner_findings.py            write snippets/generated/runner_findings.json
python scripts/runner_findings.py --check    fail where it is not what would be written
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.generated import ROOT, write_or_check
from scripts.run_program import program
from tests.runner.helpers import in_page

FINDINGS = ROOT / "snippets/generated/runner_findings.json"
# Lines of the program, and what a reader might write in their place.
LOAD_K = "            k_ptr + {}, stride_k_n, offs_n, offs_d, mask_n, SWAP_K_STRIDES"
EDITS = (
    ("    for page in range(page_end - page_begin):",
     "    for page in range(page_end - page_begin + 1):"),
    ("    tl.store(lse_ptr + out, lse, mask=mask_g)",
     "    tl.store(lse_ptr + out, lse)"),
    (LOAD_K.format("page_id * stride_k_page"), LOAD_K.format("page_id * PAGE_SIZE * stride_k_page")),
    ("        mask_n = page * PAGE_SIZE + offs_n < seq_len",
     "        mask_n = page * PAGE_SIZE + offs_n <= seq_len"),
    ("    m_i = tl.full([BLOCK_G], -float(\"inf\"), tl.float32)",
     "    m_i = -float(\"inf\")"),
    ("        s = tl.dot(q, k_t, input_precision=\"ieee\") * sm_scale  # [BLOCK_G, PAGE_SIZE]",
     "        s = tl.dot(q, k_t) * sm_scale"),
)  # fmt: skip
PAGE = """
import json
from scripts.runner import session
result = []
for source in json.load(open(sys.argv[2], encoding="utf-8")):
    report = session.run(source)
    result.append([*([report["error"]] if report["error"] else []), *report["warnings"]])
"""


def findings() -> list[dict]:
    """One edit a row: line, before, after, and texts of what is found, each by language."""
    source = program("l2_paged_decode")
    edited = []
    for before, after in EDITS:
        if source.count(before + "\n") != 1:
            raise SystemExit(f"the program of l2_paged_decode has this line not once: {before.strip()}")
        edited.append(source.replace(before, after))
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "sources.json"
        given.write_text(json.dumps(edited), encoding="utf-8")
        found = in_page(PAGE, arguments=(str(given),), timeout=300)
    return [
        {
            "line": source.splitlines().index(before) + 1,
            "before": before.partition("  #")[0].strip(),
            "after": after.strip(),
            "texts": [one["texts"] for one in said],
        }
        for (before, after), said in zip(EDITS, found, strict=True)
    ]


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail where it differs")
    args = parser.parse_args()
    text = json.dumps(findings(), indent=1, ensure_ascii=False) + "\n"
    return write_or_check({FINDINGS: text}, [], args.check, "python scripts/runner_findings.py")


if __name__ == "__main__":
    sys.exit(main())
