#!/usr/bin/env python3
"""Checks deploy/ against published schemas, and its commands against the binary: deploy.py REGRETTA [DEPLOY]

Needs kubernetes-validate and check-jsonschema from PyPI. kubectl or kustomize and systemd-analyze are used where
they are at hand; what was not checked is said. Nothing is built, installed or started.
"""
import importlib.resources
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib

import jsonschema
import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The first with everything that the manifests use switched on, and the newest at hand.
VERSIONS = ("1.29", kubernetes_validate.latest_version())
# Seconds that a command may take after SIGTERM; a worker's are its --grace.
DRAIN = {"coordinator": 14, "worker": 10, "run": 7, "merge": 0}
# What is put in for values that are known only where the command runs.
STAND_INS = {
    "$(REGRETTA_STORE)": "s3://bucket/prefix",
    "${COORDINATOR}": "https://localhost:7070",
    "${STATE_DIRECTORY}": "/var/lib/regretta",
    "${CACHE_DIRECTORY}": "/var/cache/regretta",
    "${CREDENTIALS_DIRECTORY}": "/run/credentials",
    "%H-%i": "host-1",
}
# systemd-analyze's exposure, in tenths.
EXPOSURE = 15

problems = []


def problem(where, what):
    problems.append(f"{where}: {what}")


def documents(path):
    try:
        return [document for document in yaml.safe_load_all(path.read_text()) if document]
    except yaml.YAMLError as error:
        problem(path, " ".join(str(error).split()))
        return []


def validate(where, document):
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            place = ".".join(map(str, error.path))
            problem(where, f"{document['kind']} (Kubernetes {version}): {place}: {error.message[:300]}")
        except kubernetes_validate.SchemaNotFoundError as error:
            problem(where, error.message)


def named_files(folder, kustomization):
    """What a kustomization names: manifests, and patches and files of generators."""
    manifests = kustomization.get("resources", [])
    others = [patch["path"] for patch in kustomization.get("patches", []) if "path" in patch]
    for generator in kustomization.get("configMapGenerator", []) + kustomization.get("secretGenerator", []):
        others += [name.split("=")[-1] for name in generator.get("files", [])]
    for name in manifests + others:
        if not (folder / name).exists():
            problem(folder / "kustomization.yaml", f"{name} is named and not there")
    for path in folder.iterdir():
        if path.name != "kustomization.yaml" and path.name not in manifests + others:
            problem(path, "no kustomization names it")
    return [folder / name for name in manifests if (folder / name).is_file()]


def resolve(folder):
    """The manifests as they would be applied; None without kustomize."""
    tool = ["kustomize", "build"] if shutil.which("kustomize") else ["kubectl", "kustomize"]
    if not shutil.which(tool[0]):
        return None
    built = subprocess.run([*tool, str(folder)], capture_output=True, text=True)
    if built.returncode:
        problem(folder, built.stderr.strip())
        return []
    return [document for document in yaml.safe_load_all(built.stdout) if document]


def kubernetes(deploy):
    folders = sorted(path.parent for path in deploy.glob("kubernetes/**/kustomization.yaml"))
    if not folders:
        problem(deploy, "there is no kustomization")
    manifests = resolved = 0
    for folder in folders:
        kustomization = documents(folder / "kustomization.yaml")[0]
        for path in named_files(folder, kustomization):
            for document in documents(path):
                validate(path, document)
                manifests += 1
        applied = resolve(folder)
        if applied is None:
            print(f"not checked: {folder.name} as applied, with its patches: neither kustomize nor kubectl is here")
            continue
        for document in applied:
            validate(f"{folder} as applied", document)
            resolved += 1
        coherent(f"{folder} as applied", applied)
    print(f"{len(folders)} kustomizations: {manifests} manifests, {resolved} as applied, Kubernetes {' and '.join(VERSIONS)}")


def pod_templates(applied):
    return [d for d in applied if "template" in d.get("spec", {})]


def coherent(where, applied):
    """Names and labels that refer to each other, and what every pod must have."""
    labels = [d["spec"]["template"]["metadata"]["labels"] for d in pod_templates(applied)]
    for document in applied:
        name, spec = f"{where}: {document['kind']} {document['metadata']['name']}", document.get("spec", {})
        selector = spec.get("podSelector", spec.get("selector"))
        if selector is not None:
            wanted = selector.get("matchLabels", selector)
            if not any(wanted.items() <= there.items() for there in labels):
                problem(name, f"no pod has the labels {wanted}")
        if document["kind"] == "StatefulSet":
            services = [d["metadata"]["name"] for d in applied if d["kind"] == "Service"]
            if spec["serviceName"] not in services:
                problem(name, f"there is no service {spec['serviceName']}")
    for document in pod_templates(applied):
        name = f"{where}: {document['kind']} {document['metadata']['name']}"
        pod = document["spec"]["template"]["spec"]
        context = pod.get("securityContext", {})
        if not context.get("runAsNonRoot") or context.get("seccompProfile") != {"type": "RuntimeDefault"}:
            problem(name, "the pod needs runAsNonRoot and seccompProfile RuntimeDefault")
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        volumes |= {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
        for container in pod.get("initContainers", []) + pod["containers"]:
            container_is_sound(f"{name}: {container['name']}", pod, container, volumes)
            parts = [v["value"] for v in container.get("env", []) if v["name"] == "PARTS"]
            if parts and parts != [str(document["spec"].get("completions"))]:
                problem(name, f"PARTS is {parts[0]}, completions {document['spec'].get('completions')}")


def container_is_sound(name, pod, container, volumes):
    context, resources = container.get("securityContext", {}), container.get("resources", {})
    wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    for key, value in wanted.items():
        if context.get(key) != value:
            problem(name, f"securityContext.{key} should be {value}")
    for kind in ("requests", "limits"):
        if not {"cpu", "memory"} <= resources.get(kind, {}).keys():
            problem(name, f"resources.{kind} need cpu and memory")
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in volumes:
            problem(name, f"there is no volume {mount['name']}")
    argv = container_command(name, container)
    if not argv:
        return
    options = dict(word.lstrip("-").split("=", 1) for word in argv if word.startswith("--") and "=" in word)
    drain = int(options.get("grace", DRAIN.get(argv[0], 0)))
    if pod.get("terminationGracePeriodSeconds", 30) < drain + 5:
        problem(name, f"terminationGracePeriodSeconds has no margin over the {drain} s that it takes to end")
    probes = [container.get(kind, {}) for kind in ("startupProbe", "readinessProbe", "livenessProbe")]
    if "tls-cert" in options and argv[0] == "coordinator" and any("grpc" in probe for probe in probes):
        problem(name, "a gRPC probe cannot speak TLS")
    ports = {str(port["containerPort"]) for port in container.get("ports", [])}
    listening = {options[key].rpartition(":")[2] for key in ("listen", "metrics") if key in options}
    if ports != listening:
        problem(name, f"ports {sorted(ports)} are declared, and {sorted(listening)} are listened on")


def container_command(where, container):
    """The arguments of regretta; None where the container runs something else."""
    argv = container.get("command", ["regretta"]) + container.get("args", [])
    if argv[0] != "sh":
        return argv[1:]
    script = argv[-1]
    if subprocess.run(["sh", "-n", "-c", script], capture_output=True).returncode:
        problem(where, "the script is no shell")
        return None
    if not re.fullmatch(r"exec regretta [^;&|\n]*\n?", script):
        return None
    # The shell itself says what it makes of the first index.
    values = {v["name"]: v["value"] for v in container.get("env", []) if "value" in v}
    shown = script.replace("exec regretta", "printf '%s\\n'", 1)
    environment = {"PATH": os.environ["PATH"], "JOB_COMPLETION_INDEX": "0", **values}
    answer = subprocess.run([*argv[:-1], shown], env=environment, capture_output=True, text=True)
    if answer.returncode:
        problem(where, answer.stderr.strip())
    return answer.stdout.splitlines()


def containers(node):
    """Everything in a manifest that has a command or arguments, in patches too."""
    if isinstance(node, dict):
        if isinstance(node.get("args", node.get("command")), list):
            yield node
        node = list(node.values())
    for child in node if isinstance(node, list) else []:
        yield from containers(child)


def text_commands(path):
    """Lines that call regretta: of code in Markdown, and of anything else that is not YAML."""
    text = re.sub(r"\\\n\s*", " ", path.read_text())
    for line in text.splitlines():
        if line.lstrip().startswith("#") or path.suffix == ".md" and not line.startswith("    "):
            continue
        if line.startswith("RUN ["):
            line = shlex.join(json.loads(line.removeprefix("RUN ")))
        try:
            words = shlex.split(line.partition("ExecStart=")[2] or line)
        except ValueError:
            continue
        for at, word in enumerate(words[:-1]):
            # At the start of a line or of a command; elsewhere it is a namespace or a folder.
            begins = at == 0 or words[at - 1] in ("exec", "run", "|", "&&", ";")
            called = word.rsplit("/", 1)[-1] in ("regretta", "regretta.sif")
            if not (begins and called and re.fullmatch(r"-?[a-z-]+", words[at + 1])):
                continue
            end = next((i for i, w in enumerate(words) if i > at and w in ("|", "&&", ";", ">", "&")), len(words))
            yield words[at + 1 : end]


def commands(deploy):
    """Every call of regretta in the folder, with where it stands."""
    for path in sorted(p for p in deploy.rglob("*") if p.is_file() and p.suffix != ".toml"):
        if path.suffix != ".yaml":
            yield from ((path, argv) for argv in text_commands(path))
        elif path.name == "compose.yaml":
            for service in documents(path)[0]["services"].values():
                yield path, service["command"]
                test = service.get("healthcheck", {}).get("test", [])
                yield from [(path, test[2:])] if test[:2] == ["CMD", "regretta"] else []
        elif path.name != "kustomization.yaml":
            found = (container_command(path, c) for document in documents(path) for c in containers(document))
            yield from ((path, argv) for argv in found if argv)


def flags(deploy, binary):
    """The binary reads every command's arguments; --help at the end keeps it from acting on them."""
    seen = {}
    for path, argv in commands(deploy):
        argv = [word for word in argv if word not in ("$OPTIONS", "...")]
        for placeholder, value in STAND_INS.items():
            argv = [word.replace(placeholder, value) for word in argv]
        seen.setdefault(tuple(argv), path)
    for argv, path in seen.items():
        answer = subprocess.run([binary, *argv, "--help"], capture_output=True, text=True)
        if answer.returncode:
            problem(path, f"regretta {shlex.join(argv)}: {answer.stderr.splitlines()[0]}")
    if not {"coordinator", "worker", "run", "merge", "study", "cert"} <= {argv[0] for argv in seen}:
        problem(deploy, "commands were overlooked")
    print(f"{len(seen)} different commands, their flags read by {binary}")


def compose(deploy):
    path = deploy / "compose.yaml"
    vendored = importlib.resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    schema, file = json.loads(vendored.read_text()), documents(path)[0]
    for error in jsonschema.validators.validator_for(schema)(schema).iter_errors(file):
        problem(path, f"{'.'.join(map(str, error.path))}: {error.message[:300]}")
    for name, service in file["services"].items():
        if not service.keys() & {"image", "build"} or "command" not in service:
            problem(path, f"{name} needs an image and a command")
        missing = set(service.get("depends_on", [])) - file["services"].keys()
        missing |= set(service.get("secrets", [])) - file.get("secrets", {}).keys()
        missing |= {v.split(":")[0] for v in service.get("volumes", []) if v[0] not in "./"} - file.get("volumes", {}).keys()
        if missing:
            problem(path, f"{name} names {sorted(missing)}, which is not declared")
    print(f"compose.yaml: {len(file['services'])} services, the Compose specification's schema")


def images(deploy):
    """Both images get every crate of the workspace."""
    members = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]
    ignore, recipe = (ROOT / ".dockerignore").read_text().split(), (deploy / "apptainer.def").read_text()
    for member in [*members, "Cargo.toml", "Cargo.lock", ".cargo"]:
        if f"!{member}" not in ignore:
            problem(ROOT / ".dockerignore", f"{member} does not reach the image")
        if f"\n    {member} /src/{member}\n" not in recipe:
            problem(deploy / "apptainer.def", f"{member} does not reach the image")
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    for path in [deploy / "compose.yaml", *deploy.glob("kubernetes/**/kustomization.yaml")]:
        for tag in re.findall(r"(?:image: regretta:|newTag: )(\S+)", path.read_text()):
            if tag != version:
                problem(path, f"the image is of version {tag}, the workspace of {version}")
    print(f"images: {len(members)} crates, version {version}")


def systemd(deploy, binary):
    if not shutil.which("systemd-analyze"):
        print("not checked: the units, for want of systemd-analyze")
        return
    units = sorted(deploy.glob("systemd/*.service"))
    with tempfile.TemporaryDirectory() as folder:
        for unit in units:
            copy = pathlib.Path(folder, unit.name)
            copy.write_text(unit.read_text().replace("/usr/local/bin/regretta", os.path.abspath(binary)))
            # Unknown keys are only warnings, with exit code 0.
            verified = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True)
            if verified.returncode or verified.stderr.strip():
                problem(unit, verified.stderr.strip())
            rating = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", copy]
            rated = subprocess.run(rating, capture_output=True, text=True)
            if rated.returncode:
                problem(unit, (rated.stdout + rated.stderr).strip().splitlines()[-1])
    print(f"{len(units)} units: systemd-analyze verify, exposure at most {EXPOSURE / 10}")


def study(deploy, binary):
    for path in deploy.rglob("study.toml"):
        planned = subprocess.run([binary, "plan", path], capture_output=True, text=True)
        if planned.returncode:
            problem(path, planned.stderr.strip())
        print(f"{path.name}: planned")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    binary, deploy = sys.argv[1], pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else ROOT / "deploy"
    if not os.access(binary, os.X_OK):
        sys.exit(f"{binary} cannot be run; build it first: cargo build --release")
    kubernetes(deploy)
    compose(deploy)
    images(deploy)
    systemd(deploy, binary)
    study(deploy, binary)
    flags(deploy, binary)
    for line in problems:
        print(f"wrong: {line.replace(f'{ROOT}/', '')}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
