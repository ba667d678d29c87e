"""``import --pipeline``: the pipeline of a CI service for what was imported."""

from pathlib import Path
from typing import Literal

from pulumi_hosting.installation import pipeline_files
from pulumi_hosting.reports.account_import import Steps

Service = Literal["github", "gitlab"]
SCOPE = "prod"
"""As the workflow has it: a run on a person's machine must not be another owner."""
_PLACES = {
    "github": ("github-actions.yml", ".github/workflows/hosting.yml"),
    "gitlab": ("gitlab-ci.yml", ".gitlab-ci.yml"),
}


def pipeline_of(directory: Path, form: str, service: Service) -> tuple[Steps, dict[Path, str]]:
    """The last step, and the files: in the repository that ``directory`` is in, itself if it is in none."""
    place = directory.resolve()
    found = next((folder for folder in (place, *place.parents) if (folder / ".git").exists()), place)
    root, is_there = directory if found == place else found, (found / ".git").exists()
    source = pipeline_files()
    template, target = _PLACES[service]
    text = (source / template).read_text(encoding="utf-8")
    text = text.replace("PROJECT: .", f"PROJECT: {place.relative_to(found).as_posix()}")
    text = text.replace('HOSTING_MAX_CHARGE: "25.00"', 'HOSTING_MAX_CHARGE: "0.00"')
    if form == "ansible":
        for stack in ("STACK: ${{ matrix.stack }}", "STACK: prod"):
            text = text.replace(stack, "PLAYBOOK: site.yml")
        text = text.replace("STACK: [prod]", "PLAYBOOK: [site.yml]").replace("$STACK", "$PLAYBOOK")
    scripts = [*source.glob("*.py"), source / "requirements.txt"]
    files = {root / target: text}
    files |= {root / "pipeline" / file.name: file.read_text(encoding="utf-8") for file in sorted(scripts)}
    taken = {"native": "import_", "dynamic": "adopt_id"}.get(form)
    without = (
        f"first delete {taken}=… in the program: rehearsals do not have these objects. " if taken else ""
    )
    does = f"{without}Then commit. It needs keys, environments and a wheel: docs/gitops.md, from step 2 on"
    return ((f"{'' if is_there else 'git init && '}git add -A", does),), files
