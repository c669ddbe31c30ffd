"""What every form is: one page with everything inside, to be opened in any browser."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ..utils.files import write_text
from .item_pictures import Picture

HERE = Path(__file__).parent
STYLE = HERE.parent / "report" / "page.css"


def write_form(path: Path, template: Path, content: Any, **values: Any) -> None:
    """Writes a form: ``template``, which extends shared_form.html and has its script beside it.

    ``content``: JSON values that the scripts work on; ``values``: what the template shows.
    """
    from markupsafe import Markup

    from ..report.section import data
    from ..utils.html_templates import templates_of

    scripts = (HERE / "shared_form.js", template.with_suffix(".js"))
    page = templates_of(template.parent, HERE).get_template(template.name)
    html = page.render(
        data=data("form-data", content),
        style=Markup(STYLE.read_text(encoding="utf-8")),
        script=Markup("\n".join(script.read_text(encoding="utf-8") for script in scripts)),
        **values,
    )
    write_text(path, html)


def store(kind: str, about: Any, person: str) -> str:
    """Where a browser keeps answers: apart by ``kind``, by JSON values ``about`` the audit, and by
    whose they are."""
    text = json.dumps(about, sort_keys=True)
    return f"{kind}/{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}/{person}"


def add_picture(picture: Picture, pictures: dict[str, str]) -> str:
    """Adds a picture's address to ``pictures``, each only once; its name there."""
    name = hashlib.blake2b(picture.data, digest_size=8).hexdigest()
    pictures.setdefault(name, picture.address)
    return name
