"""Chooses wheels: for each requirement the newest one that fits, or older ones where requirements conflict."""

import html.parser
import json
import sys
import sysconfig
import urllib.parse

from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from wheels import HostFile, Refused, Wheel

PACKAGES = 500
STEPS = 20_000
PYTHON = "%d.%d.%d" % sys.version_info[:3]
ABI = sysconfig.get_config_var("PYODIDE_ABI_VERSION")
PLATFORMS = [f"pyemscripten_{ABI}_wasm32", f"pyodide_{ABI}_wasm32"]
TAGS = {
    tag: -place
    for place, tag in enumerate(
        [
            *cpython_tags(sys.version_info[:2], platforms=PLATFORMS),
            *compatible_tags(sys.version_info[:2], "cp314", PLATFORMS),
        ]
    )
}
FITTING = "cp%d%d-cp%d%d-%s" % (*sys.version_info[:2], *sys.version_info[:2], PLATFORMS[0])


class Candidate:
    """One wheel of one version."""

    def __init__(self, filename, identity, *, url=None, sha256=None, metadata=None, python="", yanked=False):
        self.filename, self.identity = filename, identity
        self.url, self.sha256, self.metadata_sha256 = url, sha256, metadata
        self.python, self.yanked = python, yanked
        name, self.version, self.build, self.tags = parse_wheel_filename(filename)
        self.name = canonicalize_name(name)
        self.rank = max((TAGS[tag] for tag in self.tags if tag in TAGS), default=None)
        self.wheel = self.found = None

    def fits(self):
        if self.rank is None:
            return False
        try:
            return SpecifierSet(self.python).contains(PYTHON, prereleases=True)
        except InvalidSpecifier:
            return False

    def order(self):
        # Among wheels of one version, prefer the folder's, then those compiled for this interpreter.
        return self.version, self.url is None, self.rank, self.build


class Sources:
    """The folder of wheels and the index, as the host lets us see them."""

    def __init__(self, ask, folder, has_index):
        self.ask, self.has_index, self.known, self.folder = ask, has_index, {}, {}
        for filename, identity in folder:
            candidate = made(filename, identity)
            if candidate:
                self.folder.setdefault(candidate.name, []).append(candidate)

    def candidates(self, name):
        if name not in self.known:
            found = [*self.folder.get(name, []), *(self.page(name) if self.has_index else [])]
            self.known[name] = sorted(
                found, key=lambda each: each.fits() and each.order() or (Version("0"),), reverse=True
            )
            if not found:
                where = " and ".join(["the folder of wheels"] * bool(self.folder) + ["the index"] * self.has_index)
                raise Refused(f"{name}: there is no wheel for it in {where or 'the folder of wheels, which is empty'}.")
        return self.known[name]

    def page(self, name):
        answer, file = self.open({"op": "page", "name": name})
        if file is None:
            return []
        text = b"".join(iter(lambda: file.read(1 << 19), b"")).decode("utf-8", "replace")
        try:
            links = json_links(text) if "json" in answer["type"] else html_links(text)
            found = [made(base=answer["url"], **link) for link in links]
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
            raise Refused(f"The index has no readable page for {name}.") from None
        return [each for each in found if each and each.name == name]

    def open(self, request):
        answer, _ = self.ask(request)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer, HostFile(self.ask, answer["file"], answer["size"]) if "file" in answer else None

    def wheel(self, candidate):
        if candidate.wheel is None:
            candidate.wheel = Wheel(candidate.filename, self.fetch(candidate, "", candidate.sha256))
        return candidate.wheel

    def fetch(self, candidate, ending, sha256):
        if candidate.url is None:
            return self.open({"op": "wheel", "name": candidate.filename})[1]
        if sha256 is None:
            raise Refused(f"The index gives no SHA-256 for {candidate.filename}, so the file cannot be verified.")
        return self.open({"op": "download", "url": candidate.url + ending, "sha256": sha256})[1]

    def metadata(self, candidate):
        """The requirements of a wheel, and the extras that it has."""
        if candidate.found is None:
            if candidate.url is not None and candidate.metadata_sha256:
                file = self.fetch(candidate, ".metadata", candidate.metadata_sha256)
                text = b"".join(iter(lambda: file.read(1 << 19), b""))
            else:
                text = self.wheel(candidate).metadata()
            candidate.found = read_metadata(candidate, text)
        return candidate.found


def made(filename, identity=None, *, base=None, url=None, sha256=None, **rest):
    """A candidate; `None` if the file is not a wheel. A URL may be relative to its page."""
    try:
        if base is not None:
            url = urllib.parse.urldefrag(urllib.parse.urljoin(base, url)).url
        return Candidate(filename, identity or f"sha256:{sha256}", url=url, sha256=sha256, **rest)
    except ValueError:
        return None


def json_links(text):
    for file in json.loads(text)["files"]:
        metadata = file.get("core-metadata") or file.get("dist-info-metadata")
        yield {
            "filename": str(file["filename"]),
            "url": str(file["url"]),
            "sha256": text_or_none(file["hashes"].get("sha256")),
            "metadata": text_or_none(metadata.get("sha256")) if isinstance(metadata, dict) else None,
            "python": file.get("requires-python") or "",
            "yanked": bool(file.get("yanked")),
        }


def html_links(text):
    links = []

    class Page(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            given = dict(attributes)
            if tag != "a" or not given.get("href"):
                return
            place, _, fragment = given["href"].partition("#")
            metadata = given.get("data-core-metadata") or given.get("data-dist-info-metadata") or ""
            links.append(
                {
                    "filename": urllib.parse.unquote(place.rpartition("/")[2]),
                    "url": place,
                    "sha256": urllib.parse.parse_qs(fragment).get("sha256", [None])[0],
                    "metadata": metadata.partition("sha256=")[2] or None,
                    "python": given.get("data-requires-python") or "",
                    "yanked": "data-yanked" in given,
                }
            )

    page = Page()
    page.feed(text)
    page.close()
    return links


def text_or_none(value):
    return value if isinstance(value, str) else None


def read_metadata(candidate, text):
    raw, _ = parse_email(text)
    if canonicalize_name(raw.get("name", "")) != candidate.name or str(candidate.version) != normal(
        raw.get("version", "")
    ):
        raise Refused(f"{candidate.filename} contains a different package or version than its name says.")
    try:
        needed = [Requirement(each) for each in raw.get("requires_dist", [])]
        python = SpecifierSet(raw.get("requires_python", ""))
    except (InvalidRequirement, InvalidSpecifier) as error:
        raise Refused(f"{candidate.filename} has invalid metadata: {error}") from None
    candidate.python = candidate.python or str(python)
    return needed, {canonicalize_name(each) for each in raw.get("provides_extra", [])}


def normal(version):
    try:
        return str(Version(version))
    except InvalidVersion:
        return ""


def parse(texts):
    for text in texts:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise Refused(f"{text!r} is not a valid requirement: {str(error).splitlines()[0]}") from None
        if requirement.url:
            raise Refused(
                f"{text!r} is a URL; use the name of the package, and add its wheel to the folder or the index."
            )
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement, "requested"


class Search:
    """A backtracking search: returns to the last choice when a requirement cannot be met."""

    def __init__(self, sources):
        self.sources, self.steps = sources, 0

    def solve(self, wanted):
        """The wheels for these requirements."""
        # A choice: the wheels chosen, the requirements pending, and the wheels not yet tried for the first of them.
        chosen, limits, pending, choices, problem = {}, {}, list(wanted), [], None
        while True:
            self.steps += 1
            if self.steps > STEPS or len(chosen) > PACKAGES:
                raise Refused(f"No set of at most {PACKAGES} wheels was found in {STEPS} steps. {problem or ''}")
            if not pending:
                return [candidate for candidate, _ in chosen.values()]
            requirement, _ = pending[0]
            name = canonicalize_name(requirement.name)
            limits = {**limits, name: [*limits.get(name, []), pending[0]]}
            if name in chosen:
                tries = iter([chosen[name][0]] if meets(chosen[name][0], limits[name]) else [])
            else:
                tries = iter(self.fitting(name, limits[name]))
            choices.append((chosen, limits, pending, name, tries))
            while True:
                if not choices:
                    raise Refused(problem)
                chosen, limits, pending, name, tries = choices[-1]
                taken = next(filter(None, (self.take(each, chosen, pending) for each in tries)), None)
                if taken is not None:
                    break
                problem = problem or self.conflict(name, limits[name])
                choices.pop()
            chosen, pending = taken

    def take(self, candidate, chosen, pending):
        """The chosen and pending sets with this wheel added; `None` if its metadata requires another Python."""
        requirement, _ = pending[0]
        needed, offered = self.sources.metadata(candidate)
        if not candidate.fits():
            return None
        _, before = chosen.get(candidate.name, (None, None))
        extras = {canonicalize_name(each) for each in requirement.extras} & offered
        new = ({""} | extras) - (before or set())
        added = [
            (each, f"{candidate.name} {candidate.version}")
            for each in needed
            if any(
                each.marker is None
                and extra == ""
                or each.marker is not None
                and each.marker.evaluate({"extra": extra})
                for extra in new
            )
        ]
        return {**chosen, candidate.name: (candidate, (before or set()) | new)}, pending[1:] + added

    def fitting(self, name, limits):
        return [each for each in self.sources.candidates(name) if each.fits() and meets(each, limits)]

    def conflict(self, name, limits):
        asked = ", ".join(sorted({f"{requirement.name}{requirement.specifier} ({by})" for requirement, by in limits}))
        candidates = self.sources.candidates(name)
        if not any(each.fits() for each in candidates):
            return (
                f"{name}: no wheel fits this interpreter, Python {PYTHON} in WebAssembly. Available: "
                f"{listed(candidates)}. Provide a wheel whose name ends in py3-none-any.whl or {FITTING}.whl."
            )
        versions = sorted({each.version for each in candidates if each.fits()}, reverse=True)
        return f"{name}: no version meets {asked}. Available: {', '.join(map(str, versions[:10]))}."


def meets(candidate, limits):
    specifiers = [requirement.specifier for requirement, _ in limits]
    if candidate.yanked and not any(each.operator in ("==", "===") for specifier in specifiers for each in specifier):
        return False
    # Pre-releases count only if the requirement asks for one.
    early = candidate.version.is_prerelease and not any(specifier.prereleases for specifier in specifiers)
    return not early and all(specifier.contains(candidate.version, prereleases=True) for specifier in specifiers)


def listed(candidates):
    names = [each.filename for each in candidates[:3]]
    return ", ".join(names) + (f" and {len(candidates) - 3} more" if len(candidates) > 3 else "")
