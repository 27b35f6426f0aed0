"""Fetch a base model from the hub: `python -m app.embedded.download REPO REVISION DIRECTORY`; prints the commit.

Weights come as safetensors only: a pickle runs code when it is loaded.
"""

import argparse
from pathlib import Path

WANTED = ("*.safetensors", "*.json", "*.jinja", "LICENSE*", "merges.txt")


def download(repo: str, revision: str, target: Path) -> str:
    """Fetch weights, tokenizer and settings of `repo` to `target`; return the commit that `revision` meant."""
    from huggingface_hub import HfApi, snapshot_download

    commit = HfApi().model_info(repo, revision=revision).sha or revision
    snapshot_download(repo, revision=commit, local_dir=str(target), allow_patterns=list(WANTED))
    return commit


def main() -> None:
    """Read the command line and download."""
    parser = argparse.ArgumentParser(description="Download a base model.")
    parser.add_argument("repo")
    parser.add_argument("revision")
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    print(download(arguments.repo, arguments.revision, arguments.target))


if __name__ == "__main__":
    main()
