"""Write the pages: `python -m agent.reference`."""

from pathlib import Path

from agent.reference import api, settings, trace

PAGES = {"api": api.page, "settings": settings.page, "trace": trace.page}
DOCS = Path(__file__).parents[2] / "docs"

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / f"{name}.md").write_text(page())
