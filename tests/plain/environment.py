"""Make a user's environment: README's own install lines, run as they stand, and nothing more.

python tests/plain/environment.py            # .venv, with the python3 that README names
python tests/plain/environment.py 3.13       # .venvs/plain-3.13, where python3.13 is installed

An environment that was made of the same files stays. It needs nothing but a Python, as it runs
before anything is installed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("adaptive_vtt", "strategies", "surrogates", "experiments")
STAMP = ".made-of"


def folder_of(version: str | None) -> Path:
    """Return where the environment of a Python lies; None: of the one that README names."""
    return ROOT / ".venv" if version is None else ROOT / ".venvs" / f"plain-{version}"


def install_lines() -> list[str]:
    """Return the commands of README's section "Install"."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^## Install\n.*?^```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit("README.md: expected a sh block below '## Install', found none")
    return found[1].splitlines()


def variables(version: str | None) -> dict[str, str]:
    """Return the environment's variables, in which pyenv's shims find the Python of a version."""
    return {**os.environ, **({} if version is None else {"PYENV_VERSION": version})}


def present(version: str) -> bool:
    """Return whether this Python runs here: a shim may be there without its Python."""
    words = [f"python{version}", "-V"]
    try:
        return subprocess.run(words, env=variables(version), capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def content() -> str:
    """Return a hash of all that an installation is made of."""
    digest = hashlib.blake2b("\n".join(install_lines()).encode(), digest_size=16)
    files = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]
    for package in PACKAGES:
        files += sorted(p for p in (ROOT / package).rglob("*") if p.suffix != ".pyc")
    for path in filter(Path.is_file, files):
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def make(version: str | None = None) -> Path:
    """Make the environment anew unless it was made of the files as they are; return its folder."""
    folder, lines, made_of = folder_of(version), install_lines(), content()
    stamp = folder / STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == made_of:
        return folder
    python = os.environ.get("PYTHON", "python3") if version is None else f"python{version}"
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    place = str(folder.relative_to(ROOT))
    script = "\n".join(lines).replace("python3 ", f"{python} ").replace(".venv", place)
    # Python compiles what it imports; pip would compile all of torch in a minute. "no" is pip's way
    # to turn an option on whose name begins with "no".
    pip = {"PIP_QUIET": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "no"}
    subprocess.run(["bash", "-ec", script], cwd=ROOT, env=variables(version) | pip, check=True)
    stamp.write_text(made_of, encoding="utf-8")
    print(f"{place}: README's install lines took {time.monotonic() - began:.0f} s")
    return folder


def main() -> None:
    """Make the environment of the Python named, or say that this Python is not installed."""
    version = sys.argv[1] if len(sys.argv) > 1 else None
    if version is not None and not present(version):
        print(f"skipped: no python{version} here to try README's install lines with")
        return
    make(version)


if __name__ == "__main__":
    main()
